"""Group commit: the changes of many threads in few transactions, each with its own outcome."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tamis.storage.direct import Direct, SqliteDirect, statement
from tamis.storage.group_commit import GroupCommit

INSERT = statement("INSERT INTO kept (id) VALUES (:id)")
COUNT = statement("SELECT count(*) FROM kept")


class Store:
    """A table in SQLite that is written through a group; its commits can be held up or fail."""

    def __init__(self, path: Path) -> None:
        self.driver = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.driver.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY)")
        self.n_commits = 0
        self.may_commit = threading.Event()
        self.may_commit.set()
        self.failure: Exception | None = None
        self.group = GroupCommit(self.transact)

    def transact(self, work: Callable[[SqliteDirect], None]) -> None:
        direct = SqliteDirect(self.driver)
        direct.begin()
        try:
            work(direct)
            self.may_commit.wait(60)
            if self.failure is not None:
                raise self.failure
            direct.commit()
        except BaseException:
            if self.driver.in_transaction:
                self.driver.execute("ROLLBACK")
            raise
        self.n_commits += 1

    @property
    def ids(self) -> list[int]:
        return [id for (id,) in self.driver.execute("SELECT id FROM kept ORDER BY id")]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    made = Store(tmp_path / "kept.db")
    yield made
    made.driver.close()


def insert(id: int) -> Callable[[Direct], int]:
    def work(direct: Direct) -> int:
        direct.later(INSERT, {"id": id})
        return id

    return work


def gathered(store: Store, works: list[Callable[[Direct], Any]]) -> list[Any]:
    """What comes of works that all wait while another commits: results and errors."""
    store.may_commit.clear()
    with ThreadPoolExecutor(len(works) + 1) as threads:
        first = threads.submit(store.group.change, insert(1_000))
        while not store.driver.in_transaction:
            pass
        others = [threads.submit(store.group.change, work) for work in works]
        while len(store.group._waiting) < len(works):
            pass
        store.may_commit.set()
        assert first.result() == 1_000
        return [one.exception() or one.result() for one in others]


def test_those_who_wait_are_committed_together(store: Store) -> None:
    assert gathered(store, [insert(n) for n in range(20)]) == list(range(20))
    assert store.ids == [*range(20), 1_000]
    assert store.n_commits == 2


def test_who_fails_leaves_nothing_and_keeps_nobody(store: Store) -> None:
    def half(direct: Direct) -> None:
        direct.later(INSERT, {"id": 500})
        raise KeyError("half-way")

    found = gathered(store, [insert(1), half, insert(1_000), insert(2)])
    assert found[0] == 1
    assert found[3] == 2
    assert isinstance(found[1], KeyError)
    assert isinstance(found[2], sqlite3.IntegrityError)
    assert store.ids == [1, 2, 1_000]


def test_what_cannot_be_committed_failed_for_all(store: Store) -> None:
    def fail_next(direct: Direct) -> None:
        store.failure = OSError("the disk is full")

    found = gathered(store, [insert(1), fail_next, insert(2)])
    assert [str(one) for one in found] == ["the disk is full"] * 3
    assert store.ids == [1_000]
    store.failure = None
    assert store.group.change(insert(3)) == 3


def test_an_error_that_ends_the_transaction_is_everybodys(store: Store) -> None:
    def end(direct: Direct) -> None:
        store.driver.execute("ROLLBACK")  # as SQLite does by itself where a disk is full
        raise sqlite3.OperationalError("database or disk is full")

    found = gathered(store, [insert(1), end, insert(2)])
    assert all(isinstance(one, sqlite3.OperationalError) for one in found)
    assert store.ids == [1_000]


def test_one_sees_what_those_before_it_did(store: Store) -> None:
    def count(direct: Direct) -> int:
        return int(direct.all(COUNT, {})[0][0])

    assert gathered(store, [count, insert(1), count]) == [1, 1, 2]


def test_many_threads_again_and_again(store: Store) -> None:
    def change(number: int) -> bool:
        try:
            return bool(store.group.change(insert(number % 1_500)) == number % 1_500)
        except sqlite3.IntegrityError:
            return False

    with ThreadPoolExecutor(16) as threads:
        done = list(threads.map(change, range(2_000)))
    assert sum(done) == 1_500
    assert store.ids == list(range(1_500))
    assert not store.group._has_leader
