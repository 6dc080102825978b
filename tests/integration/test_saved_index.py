"""The saved index: the next start opens it, unless it is not what the database holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tamis import Event, Subscription
from tamis.service import live_index, saved_index
from tamis.service.live_index import LiveIndex
from tamis.service.saved_index import SavedIndex, start_saving
from tamis.storage import ChangeLog, Database, Saved, SubscriptionStore
from tamis.storage.direct import Direct, statement
from tests.integration.test_live_index import save_many, saved, wait_until

EVENT = Event("e", {"x": -1})
ANOTHER_TIME = statement("UPDATE changes SET at = 'then' WHERE sequence = :sequence RETURNING id")


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_index, "_MANY", 500)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    """For what does not depend on the database: half the time."""
    made = Database(f"sqlite:///{tmp_path}/tamis.db")
    made.migrate()
    yield made
    made.close()


@contextmanager
def running(database: Database, folder: Path) -> Iterator[LiveIndex]:
    made = LiveIndex(database, folder)
    made.start()
    try:
        wait_until(lambda: made.is_ready)
        yield made
    finally:
        made.close()


def save(database: Database, folder: Path) -> None:
    process = start_saving(database, folder)
    assert process.wait() == 0
    process.communicate()


def n_built(index: LiveIndex) -> int:
    """How many were indexed in this process, and not mapped from files."""
    return len(index.index._archive.recent)


def note(folder: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((folder / "saved.json").read_text())
    return held


def test_the_next_start_opens_it_and_sees_what_changed(database: Database, tmp_path: Path) -> None:
    folder, store = tmp_path / "index", SubscriptionStore(database)
    save_many(database, 1_000)
    with running(database, folder) as index:
        assert (len(index), n_built(index), index.sequence) == (1_000, 0, 1_000)
        store.delete("s1")
        assert len(index.match(EVENT)) == 999
    assert note(folder)["sequence"] == 1_000
    store.adjust("s2", is_paused=True)
    store.change("s3", lambda one: saved("s3", "x = 7"))
    store.create(saved("new", "x = -1"))
    store.create(saved("s1", "x < 0"))
    with running(database, folder) as index:
        assert n_built(index) == 3  # s3, new and s1
        found = index.match(EVENT, owner="zoe")
        assert len(found) == len(set(found)) == 999
        assert {"s1", "new"} <= set(found)
        assert not {"s2", "s3"} & set(found)
        assert index.match(Event("e", {"x": 7}), owner="zoe").count("s3") == 1


def test_addresses_stay_in_the_database(sqlite: Database, tmp_path: Path) -> None:
    delivery = {"webhook": "https://h.example/secret"}
    one = Subscription(
        "s", "x = 1", owner="zoe", delivery=delivery, location=(4.9, 52.4), radius_m=5
    )
    SubscriptionStore(sqlite).create(Saved(one, "x = 1"))
    save(sqlite, tmp_path / "index")
    written = [file.read_bytes() for file in (tmp_path / "index").rglob("*") if file.is_file()]
    assert len(written) > 20
    assert not any(b"h.example" in held for held in written)


def test_few_are_not_worth_saving(sqlite: Database, tmp_path: Path) -> None:
    save_many(sqlite, 499)
    with running(sqlite, tmp_path / "index") as index:
        assert n_built(index) == 499
    assert not (tmp_path / "index").exists()


def test_it_is_saved_anew_when_much_has_changed(sqlite: Database, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with running(sqlite, folder) as index:
        save_many(sqlite, 600)
        wait_until(lambda: (folder / "saved.json").exists())
        wait_until(lambda: n_built(index) == 0)  # memory that is given back
        first = note(folder)
        assert (first["sequence"], len(index.match(EVENT))) == (600, 600)
        save_many(sqlite, 550)
        wait_until(lambda: note(folder)["sequence"] == 1_150)
        wait_until(lambda: n_built(index) == 0)
        assert len(index.match(EVENT)) == 600
        kept = {one.name for one in folder.iterdir()}
        assert kept == {"lock", "saved.json", note(folder)["directory"]}


def test_what_cannot_be_trusted_is_built_anew(sqlite: Database, tmp_path: Path) -> None:
    folder, changes = tmp_path / "index", ChangeLog(sqlite)
    save_many(sqlite, 1_000)
    save(sqlite, folder)
    file, held = folder / "saved.json", note(folder)
    for told in (
        "[]", "{}", file.read_text()[:20], json.dumps(held | {"tamis": "99.0"}),
        json.dumps(held | {"sequence": [1]}), json.dumps(held | {"directory": "none"}),
        "[" * 100_000, '{"directory": "x", "sequence": 1e999}', "\0",
        json.dumps(held | {"sequence": 10**30}), json.dumps(held | {"sequence": -1}),
    ):  # fmt: skip
        file.write_text(told)
        assert SavedIndex(folder, changes).open() is None
    file.write_text(json.dumps(held))
    manifest = folder / held["directory"] / "manifest.json"
    kept = manifest.read_text()
    manifest.write_text('{"a":' * 50_000)
    assert SavedIndex(folder, changes).open() is None
    manifest.write_text(kept)
    array = folder / held["directory"] / "rows.priority.npy"
    whole = array.read_bytes()
    for damaged in (whole[:-1] + b"\7", whole[:-1], b""):
        array.write_bytes(damaged)
        assert SavedIndex(folder, changes).open() is None
    array.write_bytes(whole)
    assert SavedIndex(folder, changes).open() is not None
    array.unlink()
    with running(sqlite, folder) as index:
        assert len(index.match(EVENT)) == 1_000
        assert n_built(index) == 0  # it was saved anew
    assert note(folder)["directory"] != held["directory"]


def test_a_database_that_was_put_back_is_another(database: Database, tmp_path: Path) -> None:
    """Its sequences are given to other changes."""
    folder, changes = tmp_path / "index", ChangeLog(database)
    save_many(database, 1_000)
    save(database, folder)
    assert SavedIndex(folder, changes).open() is not None

    def change_time(direct: Direct) -> None:
        assert direct.all(ANOTHER_TIME, {"sequence": 1_000})

    database.change(change_time)
    assert SavedIndex(folder, changes).open() is None
    empty = Database(f"sqlite:///{tmp_path}/empty.db")
    empty.migrate()
    assert SavedIndex(folder, ChangeLog(empty)).open() is None
    empty.close()


def test_where_it_cannot_be_saved_the_service_goes_on(sqlite: Database, tmp_path: Path) -> None:
    (tmp_path / "index").write_text("not a folder")
    save_many(sqlite, 1_000)
    with running(sqlite, tmp_path / "index") as index:
        assert len(index.match(EVENT)) == n_built(index) == 1_000


def test_nobody_goes_on_saving_for_a_service_that_has_ended(
    sqlite: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    def start(*given: Any) -> Any:
        started.append(saved_index.start_saving(*given))
        return started[0]

    monkeypatch.setattr(live_index, "start_saving", start)
    save_many(sqlite, 1_000)
    index = LiveIndex(sqlite, tmp_path / "index")
    index.start()
    wait_until(lambda: bool(started))
    index.close()
    assert started[0].returncode is not None
    # Nor for one that was killed: its end of the pipe is closed for it.
    process = start_saving(sqlite, tmp_path / "other")
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 1
    assert not (tmp_path / "other" / "saved.json").exists()
