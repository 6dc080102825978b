"""Changes of the event store that fail: nothing is lost, and the next try works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tamis import Event, Subscription
from tamis.errors import FilterTooComplex
from tamis.events import EventStore, collection, head
from tamis.events import store as store_module
from tamis.events.collection import Collection
from tamis.model import events_to_arrow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HEAD = 64
Change = Callable[[EventStore], object]


def named(names: str, n: int) -> list[Event]:
    return [Event(f"{names}{i}", {"x": i / 2, "new": [i, "a"]}) for i in range(n)]


def insert(id: str) -> Change:
    return lambda store: store.insert(Event(id, {"x": "again"}), NOON + MINUTE)


def insert_many(n: int) -> Change:
    return lambda store: store.insert_many([*named("new", n), Event("old", {})], NOON + MINUTE)


def insert_table(store: EventStore) -> None:
    made = [Event(f"new{n}", {"x": n}) for n in range(store_module.MIN_TABLE)]
    store.insert_many(events_to_arrow(made), NOON)


def expire(store: EventStore) -> None:
    store.expire(NOON + 9 * MINUTE)


SEGMENT, MERGE = (Collection, "_segment"), (Collection, "_united")
DIRECTORY, ENCODE = (collection, "directory_of"), (head, "flags_of")
# What fails, how full the head is, and the change.
WAYS: dict[str, tuple[tuple[Any, str], int, Change]] = {
    "sealing": (SEGMENT, HEAD, insert("new")),
    "sealing what has expired": (SEGMENT, HEAD, insert("old")),
    "sealing for several": (SEGMENT, HEAD, insert_many(5)),
    "several in the head": (ENCODE, HEAD - 9, insert_many(8)),
    "a segment of many": (SEGMENT, 9, insert_many(HEAD)),
    "a segment of a table": (SEGMENT, 9, insert_table),
    "merging by a writer": (MERGE, HEAD, insert("new")),
    "merging for many": (MERGE, 9, insert_many(HEAD)),
    "publishing": (DIRECTORY, HEAD, insert("old")),
    "publishing many": (DIRECTORY, 9, insert_many(HEAD)),
    "expiring": (SEGMENT, 9, expire),
}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "HEAD_EVENTS", HEAD)
    monkeypatch.setattr(head, "_MANY", 4)


def filled(n_head: int) -> EventStore:
    """A store of three segments, with one of which four are merged, and a head."""
    store = EventStore()
    for t in range(3):
        until = NOON + (9 + t) * MINUTE
        made = [Event(f"{t}.{n}", {"x": n}, until=until if n > 9 else None) for n in range(40)]
        store.insert_many(made, NOON)
    store.insert(Event("old", {"x": 0}, until=NOON + MINUTE), NOON)
    for n in range(n_head - 1):
        store.insert(Event(f"h{n}", {"x": n, "t": "abc"[n % 3]}), NOON)
    assert store.stats()["n_segments"] == 3
    assert store.stats()["n_head_events"] == n_head
    return store


def seen(store: EventStore) -> list[Any]:
    """All that can be known of a store."""
    texts = ("TRUE", "x < 7", "t = 'a'", "t IS NULL", "new IS NOT NULL", "x = 'again'")
    found = [store.match(Subscription("s", text), NOON) for text in texts]
    return [found, [store[id] for id in found[0]], len(store), store.stats()]


def no_memory(*_: object) -> None:
    raise MemoryError


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_lost_if_a_change_fails(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (owner, name), n_head, change = WAYS[way]
    store, other = filled(n_head), filled(n_head)
    before = seen(store)
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, no_memory)
            with pytest.raises(MemoryError):
                change(store)
        assert seen(store) == before
    for one in (store, other):
        change(one)
        for n in range(3 * HEAD):
            one.insert(Event(f"more{n}", {"x": 3}), NOON)
    assert seen(store)[:3] == seen(other)[:3] != before[:3]


def test_nothing_is_lost_if_saving_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = filled(9)
    before = seen(store)
    with monkeypatch.context() as patch:
        patch.setattr(Collection, "_segment", no_memory)
        with pytest.raises(MemoryError):
            store.save(tmp_path / "events")
    assert seen(store) == before
    store.save(tmp_path / "events")
    assert seen(EventStore.open(tmp_path / "events"))[:3] == seen(store)[:3] == before[:3]


@pytest.mark.parametrize("failing", [MERGE, DIRECTORY], ids=["merging", "taking over"])
def test_nothing_is_lost_if_a_merge_beside_fails(
    failing: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "MAX_AT_ONCE", 0)
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    store = filled(9)
    real = getattr(*failing)

    def no_memory_beside(*given: Any) -> Any:
        if threading.current_thread().name == "tamis-merge":
            raise MemoryError
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(*failing, no_memory_beside)
        store.insert_many(named("new", HEAD), NOON)
        store._collection.wait_for_merging()
    assert [one.exc_type for one in told] == [MemoryError]
    assert store.stats()["n_segments"] == 4 + 1  # the head did not have room for so many
    n_held = len(store.match(Subscription("s", "TRUE"), NOON))
    assert n_held == len(store) == 3 * 40 + 9 + HEAD
    store.insert_many(named("more", HEAD), NOON)
    store._collection.wait_for_merging()
    assert store.stats()["n_segments"] == 1
    assert len(store.match(Subscription("s", "TRUE"), NOON)) == len(store) == n_held + HEAD


def test_a_change_does_not_need_the_thread_that_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "MAX_AT_ONCE", 0)
    store = filled(9)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        store.insert_many(named("new", HEAD), NOON)
    assert "new1" in store
    store._collection.wait_for_merging()
    store.insert_many(named("more", HEAD), NOON)
    store._collection.wait_for_merging()
    assert store.stats()["n_segments"] == 1


def no_thread(_: object) -> None:
    raise RuntimeError("can't start new thread")


def test_a_filter_that_is_too_complex_does_no_harm() -> None:
    store = EventStore()
    text = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(12))
    with pytest.raises(FilterTooComplex):
        store.match(Subscription("s", text), NOON)
    for n in range(3 * HEAD):
        store.insert(Event(f"e{n}", {"x": n}), NOON)
    assert len(store.match(Subscription("s", "TRUE"), NOON)) == len(store) == 3 * HEAD
