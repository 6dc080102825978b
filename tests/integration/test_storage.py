"""What is kept in a database, in SQLite and in PostgreSQL."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from tamis import Subscription
from tamis.errors import (
    DuplicateSubscription,
    LimitReached,
    StorageError,
    StorageUnavailable,
    UnknownSubscription,
    VersionConflict,
)
from tamis.spark import ChangeStore
from tamis.storage import ChangeLog, Database, Saved, SubscriptionStore
from tamis.storage.direct import Direct, statement
from tamis.storage.subscriptions import ANY
from tamis.storage.tables import METADATA
from tests.integration.postgresql import PostgreSQL


@pytest.fixture
def store(database: Database) -> SubscriptionStore:
    return SubscriptionStore(database)


def saved(id: str, filter: str = "price < 10", owner: str = "zoe") -> Saved:
    return Saved(Subscription(id, filter, owner=owner), filter)


def test_the_migrations_make_the_tables_the_code_knows(database: Database) -> None:
    with database.writing() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_migrating_twice_changes_nothing(database: Database, store: SubscriptionStore) -> None:
    store.create(saved("s1"))
    database.migrate()
    assert store.get("s1").version == 1
    assert ChangeLog(database).last() == 1


def test_a_database_of_a_newer_version_is_refused(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageError, match="newer version"):
        database.migrate()


@pytest.mark.parametrize("url", ["", "tamis.db", "mysql://x/y", "sqlite://", "sqlite:///:memory:"])
def test_an_address_that_is_none_of_a_database(url: str) -> None:
    with pytest.raises(StorageError, match="expected sqlite:///path or postgresql://"):
        Database(url)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="make it first"):
        Database(f"sqlite:///{tmp_path}/none/tamis.db")


def test_saved_changed_and_deleted(store: SubscriptionStore) -> None:
    given = Saved(
        Subscription(
            "sä/1", "brand = 'Škoda' AND price < 3300", 0, "zoe",
            {"schedule": "every hour"}, (13.4, 52.5), 500.0,
        ),
        "brand = 'Škoda' AND price < 3300",
    )  # fmt: skip
    made = store.create(given)
    assert made.version == 1
    assert store.get("sä/1") == made
    assert made.subscription == given.subscription
    paused = store.change("sä/1", lambda one: replace(one, is_paused=True))
    assert (paused.version, paused.is_paused) == (2, True)
    assert store.get("sä/1", owner="zoe") == paused
    store.delete("sä/1", if_etag=paused.etag)
    with pytest.raises(UnknownSubscription):
        store.get("sä/1")
    assert store.count() == 0


def test_an_id_is_taken_once(store: SubscriptionStore) -> None:
    store.create(saved("s1", owner="zoe"))
    with pytest.raises(DuplicateSubscription):
        store.create(saved("s1", owner="max"))
    assert store.count() == 1
    assert ChangeLog(store.database).last() == 1


def test_others_do_not_see_a_subscription(store: SubscriptionStore) -> None:
    store.create(saved("s1", owner="zoe"))
    with pytest.raises(UnknownSubscription):
        store.get("s1", owner="max")
    with pytest.raises(UnknownSubscription):
        store.change("s1", lambda one: one, owner="max")
    with pytest.raises(UnknownSubscription):
        store.delete("s1", owner="max")
    assert store.page("max") == []


def test_a_change_to_what_was_changed_meanwhile(store: SubscriptionStore) -> None:
    first = store.create(saved("s1")).etag
    store.change("s1", lambda one: replace(one, is_paused=True), if_etag=first)
    with pytest.raises(VersionConflict, match=f"has the ETag '2-.*, not '{first}'"):
        store.change("s1", lambda one: one, if_etag=first)
    with pytest.raises(VersionConflict):
        store.delete("s1", if_etag=first)
    assert store.get("s1").version == 2


def test_one_that_is_deleted_and_made_again_is_another(store: SubscriptionStore) -> None:
    first = store.create(saved("s1")).etag
    store.delete("s1", if_etag=ANY)
    again = store.create(saved("s1"))
    assert again.version == 1
    with pytest.raises(VersionConflict):
        store.put("s1", lambda before: again, if_etag=first)
    with pytest.raises(VersionConflict):
        store.adjust("s1", priority=1, if_etag=first)
    with pytest.raises(VersionConflict):
        store.delete("s1", if_etag=first)
    store.delete("s1", if_etag=again.etag)
    with pytest.raises(VersionConflict, match="no subscription 's1'"):
        store.put("s1", lambda before: again, if_etag=ANY)
    with pytest.raises(UnknownSubscription):
        store.delete("s1", if_etag=ANY)


def test_an_owner_has_as_many_as_are_allowed(store: SubscriptionStore) -> None:
    for number in range(3):
        store.create(saved(f"s{number}"), most=3)
    with pytest.raises(LimitReached, match="may have 3"):
        store.create(saved("s3"), most=3)
    store.create(saved("m1", owner="max"), most=3)
    store.delete("s0")
    store.create(saved("s3"), most=3)
    assert (store.count("zoe"), store.count("max"), store.count("eve")) == (3, 1, 0)


def test_pages_and_searches(store: SubscriptionStore) -> None:
    for number in range(7):
        store.create(saved(f"s{number}", f"price < {number}00 AND note = '50%_off'"))
    store.create(saved("other", owner="max"))
    first = store.page("zoe", most=4)
    rest = store.page("zoe", after=first[-1].id, most=4)
    assert [one.id for one in first + rest] == [f"s{number}" for number in range(7)]
    assert [one.id for one in store.page("zoe", search="PRICE < 3")] == ["s3"]
    assert len(store.page("zoe", search="50%_")) == 7
    assert store.page("zoe", search="5__") == []
    text = "brand = 'Škoda \\ \"S\"'"
    store.create(Saved(Subscription("ä", text, owner="zoe"), text))
    for search in ("Ä", "'ŠKODA", '"s"', "a \\ "):
        assert [one.id for one in store.page("zoe", search=search)] == ["ä"]
    tree = {"attribute": "stadt", "op": "=", "value": "x"}
    store.create(Saved(Subscription("json", tree, owner="zoe"), tree))
    assert [one.id for one in store.page("zoe", search='"Attribute":"stadt"')] == ["json"]


def test_the_log_tells_each_subscription_once_as_it_is_now(store: SubscriptionStore) -> None:
    log = ChangeLog(store.database)
    for id in ("a", "b", "c"):
        store.create(saved(id))
    store.delete("a")
    store.change("b", lambda one: replace(one, is_paused=True))
    found = log.after(0)
    assert [(one.sequence, one.id, one.row is None) for one in found] == [
        (3, "c", False),
        (4, "a", True),
        (5, "b", True),
    ]
    assert log.after(5) == []
    store.change("b", lambda one: replace(one, is_paused=False))
    assert [one.id for one in log.after(5)] == ["b"]
    sequence, held = store.snapshot()
    assert (sequence, sorted(one.id for one in held)) == (6, ["b", "c"])


def test_sequences_have_no_gaps_and_are_seen_in_their_order(store: SubscriptionStore) -> None:
    """Writers that fail and writers in a hurry; a reader that never misses one."""
    n_writers, n_each = 4, 25
    log, seen, is_over = ChangeLog(store.database), [0], threading.Event()

    def write(writer: int) -> None:
        chosen = random.Random(writer)
        for number in range(n_each):
            id = f"{writer}-{number}"
            store.create(saved(id))
            if chosen.random() < 0.3:
                with pytest.raises(DuplicateSubscription):
                    store.create(saved(id))  # taken back

    def follow() -> None:
        while not is_over.is_set() or log.last() > seen[-1]:
            seen.extend(one.sequence for one in log.after(seen[-1]))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(n_writers)]
    follower = threading.Thread(target=follow)
    for thread in (*writers, follower):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    follower.join()
    assert seen == list(range(n_writers * n_each + 1))


def test_who_waits_is_told_of_a_change(store: SubscriptionStore) -> None:
    log = ChangeLog(store.database)
    with log.watching() as watch:
        assert watch.wait(0, 0.1) == 0
        later = threading.Timer(0.3, lambda: store.create(saved("s1")))
        later.start()
        assert watch.wait(0, 60) == 1
        later.join()


def test_a_server_that_goes_away_and_comes_back(postgresql: PostgreSQL) -> None:
    database = Database(postgresql.new_database())
    database.migrate()
    store = SubscriptionStore(database)
    store.create(saved("s1"))
    with ChangeLog(database).watching() as watch:
        watch.wait(1, 0.1)
        postgresql.stop()
        try:
            with pytest.raises(StorageUnavailable, match="the database postgresql:"):
                store.get("s1")
        finally:
            postgresql.start()
        store.create(saved("s2"))
        until = time.monotonic() + 60
        while watch.wait(1, 1) != 2:
            assert time.monotonic() < until
    database.close()


def cut_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_connections_that_were_cut_are_no_trouble(postgresql: PostgreSQL) -> None:
    """What is read or written next goes over a new connection, and nobody is told."""
    url = postgresql.new_database()
    database = Database(url)
    database.migrate()
    store = SubscriptionStore(database)
    cut_connections(url)
    store.create(saved("s1"))
    cut_connections(url)
    assert store.get("s1").version == 1
    cut_connections(url)
    assert store.count() == 1
    cut_connections(url)
    with database.writing() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
    database.close()


@pytest.mark.parametrize(("is_last", "times"), [(False, 2), (True, 1)])
def test_what_may_have_been_committed_is_not_done_again(
    postgresql: PostgreSQL, is_last: bool, times: int
) -> None:
    database = Database(postgresql.new_database())
    calls = []

    def work(direct: Direct) -> None:
        calls.append(1)
        cut = statement("SELECT pg_terminate_backend(pg_backend_pid(), 60000)")
        (direct.later if is_last else direct.all)(cut, {})

    with pytest.raises(StorageUnavailable, match="went away"):
        database.change(work)
    assert len(calls) == times
    assert database.ask(statement("SELECT 1"), {}) == [(1,)]
    database.close()


def test_a_change_that_fails_leaves_nothing(database: Database) -> None:
    def work(direct: Direct) -> None:
        direct.all(statement("DELETE FROM counters RETURNING name"), {})
        direct.later(statement("DELETE FROM owners"), {})
        raise KeyError("no more")

    with pytest.raises(KeyError):
        database.change(work)
    assert ChangeLog(database).last() == 0
    with pytest.raises(ProgrammingError if not database.is_sqlite else StorageUnavailable):
        database.ask(statement("SELECT none FROM nothing"), {})


def test_only_those_who_may_are_adjusted(store: SubscriptionStore) -> None:
    first = store.create(saved("s1")).etag
    row = store.adjust("s1", priority=0, owner="zoe", if_etag=first)
    assert (row.priority, bool(row.is_paused), row.version) == (0, False, 2)
    row = store.adjust("s1", is_paused=True)
    assert (row.priority, bool(row.is_paused), row.version) == (0, True, 3)
    assert store.read("s1") == row
    for id, owner, error in (
        ("s2", None, UnknownSubscription),
        ("s1", "max", UnknownSubscription),
        ("s1", "zoe", VersionConflict),
    ):
        with pytest.raises(error):
            store.adjust(id, priority=1, owner=owner, if_etag=first)
        with pytest.raises(error):
            store.delete(id, owner=owner, if_etag=first)
    assert store.read("s1") == row
    assert ChangeLog(store.database).last() == 3


def test_the_pipeline_follows_the_log(store: SubscriptionStore, database_url: str) -> None:
    settings = {"schedule": "every hour", "webhook": "https://hooks.example/secret"}
    store.create(Saved(Subscription("s1", "price < 10", 1, "zoe", settings), "price < 10"))
    store.create(saved("s2"))
    store.delete("s2")
    first, second = ChangeStore(database_url).after(0)
    assert first.subscription == Subscription(
        "s1", "price < 10", 1, "zoe", {"schedule": "every hour"}
    )
    assert (second.sequence, second.id, second.subscription) == (3, "s2", None)
    assert not first.problem
    assert not second.problem


def test_a_row_nobody_can_read_is_a_change_with_a_problem(
    store: SubscriptionStore, database_url: str
) -> None:
    store.create(saved("s1"))
    with store.database.writing() as connection:
        connection.execute(text("UPDATE subscriptions SET filter = '{\"price\":'"))
    (change,) = ChangeStore(database_url).after(0)
    assert (change.sequence, change.id, change.subscription) == (1, "s1", None)
    assert change.problem
