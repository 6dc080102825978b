"""Readers beside a writer: every match sees all of a change or nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tamis import Event, Subscription
from tamis.events import EventStore, collection
from tests.contract.test_index_threads import readers

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
N_CHANGES = 300
ALL = Subscription("all", "x >= 0")
TEXTS = Subscription("texts", "kind LIKE 'k%' AND x IS NOT NULL")


@pytest.fixture(params=["by the writer", "beside the writer"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventStore]:
    """A store of small parts, so that they are sealed and merged while others read.

    Threads take turns so often that a reader comes in the middle of every kind of change.
    """
    monkeypatch.setattr(collection, "HEAD_EVENTS", 64)
    monkeypatch.setattr(collection, "MANY_DEAD", 4)
    if request.param == "beside the writer":
        monkeypatch.setattr(collection, "MAX_AT_ONCE", 0)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    made = EventStore()
    yield made
    sys.setswitchinterval(interval)
    made._collection.wait_for_merging()


def batch(n: int, until: datetime | None = None) -> list[Event]:
    return [Event(f"{n}.{i}", {"x": n, f"a{n % 50}": i, "kind": f"k{n}"}, until=until)
            for i in range(10)]  # fmt: skip


def test_many_are_inserted_at_once_or_not_at_all(store: EventStore) -> None:
    n_checks = 0

    def batches_are_whole() -> None:
        nonlocal n_checks
        for found in store.match_batch([ALL, TEXTS], NOON):
            numbers = [id.split(".")[0] for id in found]
            assert len(found) == len(set(found))
            assert len(found) == 10 * len(set(numbers))
        n_checks += 1

    with readers(batches_are_whole, batches_are_whole):
        for n in range(N_CHANGES):
            store.insert_many(batch(n), NOON)
    batches_are_whole()
    assert len(store.match(ALL, NOON)) == 10 * N_CHANGES
    assert n_checks > 1


def test_what_was_deleted_is_never_found_again(store: EventStore) -> None:
    gone: set[str] = set()

    def the_gone_stay_away() -> None:
        before = set(gone)
        assert not before & set(store.match(ALL, NOON))
        assert not any(id in store for id in sorted(before)[-5:])

    with readers(the_gone_stay_away, the_gone_stay_away):
        for n in range(N_CHANGES):
            store.insert_many(batch(n), NOON)
            if n >= 20:
                for event in batch(n - 20):
                    store.delete(event.id)
                    gone.add(event.id)
    assert len(store) == len(store.match(ALL, NOON)) == 200


def test_the_valid_stay_while_the_expired_are_swept(store: EventStore) -> None:
    store.insert_many([Event(f"stays{i}", {"x": i, "kind": "k"}) for i in range(300)], NOON)
    stays = {f"stays{i}" for i in range(300)}

    def all_that_stays_is_found() -> None:
        now = NOON + timedelta(minutes=N_CHANGES)
        assert set(store.match(ALL, now)) >= stays
        assert set(store.match(TEXTS, now)) >= stays
        assert store["stays7"].attributes["x"] == (7,)

    with readers(all_that_stays_is_found, all_that_stays_is_found):
        for n in range(N_CHANGES):
            now = NOON + timedelta(minutes=n)
            store.insert_many(batch(n, until=now + timedelta(minutes=3)), now)
            store.expire(now, limit=25)
    while store.expire(NOON + timedelta(minutes=2 * N_CHANGES)):
        pass
    assert len(store) == 300


def test_an_id_that_comes_again_is_there_throughout(store: EventStore) -> None:
    def it_is_there() -> None:
        assert "again" in store
        assert store["again"].id == "again"

    store.insert(Event("again", {"x": 0}, until=NOON + timedelta(minutes=1)), NOON)
    with readers(it_is_there, it_is_there):
        for n in range(1, 10 * N_CHANGES):
            now = NOON + timedelta(minutes=n)
            store.insert(Event("again", {"x": n}, until=now + timedelta(minutes=1)), now)
