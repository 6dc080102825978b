"""Readers beside moves: everybody is at one place at any moment, the old one or the new one."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from tamis import Index, Point, Subscription
from tamis.index import moving
from tests.contract.test_index_threads import readers

N_CHANGES = 4_000
N_IDS = 40
# Far from each other, one of them next to the antimeridian and one to a pole.
PLACES = [(179.9995, 10.0), (13.4, 52.5), (-70.0, 89.9999)]
EVENTS = [{"location": Point(*place), "x": 1.0} for place in PLACES]


@pytest.fixture(autouse=True)
def small_deltas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge often, so that there are many merges beside the readers."""
    monkeypatch.setattr(moving, "MIN_DELTA", 64)


def make_index() -> Index:
    index = Index()
    index.add_many(
        Subscription(
            f"s{n}", ("x < 5", "x < 5 AND NOT y = 1")[n % 2], n % 10,
            location=PLACES[0], radius_m=500, area=("circle", "square")[n // 2 % 2],
        )
        for n in range(N_IDS)
    )  # fmt: skip
    return index


def test_everybody_is_at_one_place() -> None:
    index = make_index()
    everybody = sorted(f"s{n}" for n in range(N_IDS))
    batch = EVENTS * 4  # enough for the way of many events
    n_checks = 0

    def a_batch_sees_one_moment() -> None:
        nonlocal n_checks
        found = list(index.match_batch(batch))
        for first in range(0, len(batch), len(EVENTS)):
            assert sorted(id for ids in found[first : first + 3] for id in ids) == everybody
            assert found[first : first + 3] == found[:3]
        n_checks += 1

    def several_places_at_once() -> None:
        # Of an event at all places, nobody is missed and nobody told twice.
        everywhere = {"location": [Point(*place) for place in PLACES], "x": 1.0}
        assert sorted(index.match(everywhere)) == everybody
        assert sorted(index.match_iter(everywhere)) == everybody

    with readers(a_batch_sees_one_moment, several_places_at_once):
        for change in range(N_CHANGES):
            index.move(f"s{change % N_IDS}", *PLACES[change // 7 % 3])
    index._engine.wait_for_merging()
    a_batch_sees_one_moment()
    assert n_checks > 1


def test_moves_of_many_are_seen_at_once() -> None:
    index = make_index()
    ids = [f"s{n}" for n in range(N_IDS)]

    def all_or_nobody() -> None:
        for event in EVENTS:
            assert len(index.match(event)) in (0, N_IDS)

    with readers(all_or_nobody, all_or_nobody):
        for change in range(N_CHANGES // 10):
            lon, lat = PLACES[change % 3]
            index.move_many(ids, np.full(N_IDS, lon), np.full(N_IDS, lat))
    assert sorted(index.match(EVENTS[(N_CHANGES // 10 - 1) % 3])) == sorted(ids)


def test_moves_adds_updates_and_removals_beside_readers() -> None:
    index = make_index()
    removed: set[str] = set()

    def nothing_removed_is_found() -> None:
        gone = set(removed)
        for event in EVENTS:
            found = index.match(event)
            assert len(found) == len(set(found))
            assert not gone & set(found)

    with readers(nothing_removed_is_found, nothing_removed_is_found):
        for n in range(N_CHANGES // 4):
            one = Subscription(f"n{n}", f"x < {n + 2}", location=PLACES[n % 3], radius_m=n % 900)
            index.add(one)
            index.move(one.id, *PLACES[(n + 1) % 3])
            if n % 3 == 0:
                index.update(Subscription(one.id, "x < 9", location=PLACES[2], radius_m=5))
            if n >= 50:
                index.remove(f"n{n - 50}")
                removed.add(f"n{n - 50}")
    assert len(index) == N_IDS + 50
    assert index.stats()["n_moving"] == N_IDS + 50


def test_memory_does_not_grow_with_moves() -> None:
    index = make_index()
    random = np.random.default_rng(3)
    largest = 0
    n_views: set[int] = set()
    for change in range(N_CHANGES):
        lon, lat = random.uniform(-180, 180), random.uniform(-90, 90)
        index.move(f"s{change % N_IDS}", lon, lat)
        n_views.add(index._engine.state.moving.n_entries)  # type: ignore[union-attr]
        largest = max(largest, index._engine.moving.memory_bytes())  # type: ignore[union-attr]
    index._engine.wait_for_merging()
    # The living, and two deltas as long as a writer may be ahead of the merging, twice the room.
    assert max(n_views) <= N_IDS + 2 * 2 * 64 * moving.MAX_WAITING
    assert largest < 400_000
    assert index._engine.state.n_rows == N_IDS
    assert sum(len(index.match({"location": index[f"s{n}"].location, "x": 1})) > 0
               for n in range(N_IDS)) == N_IDS  # fmt: skip


def test_old_arrays_are_let_go() -> None:
    index = make_index()
    state = index._engine.state
    held = state.moving
    assert held is not None
    before = index.match(EVENTS[0])
    for change in range(300):
        index.move(f"s{change % N_IDS}", *PLACES[1])
    index._engine.wait_for_merging()
    # Who still has the old state sees what was there then, whatever was merged meanwhile.
    rows = np.empty(N_IDS, np.int32)
    vector = index._columns.encode_quickly(EVENTS[0])
    assert vector is not None
    n_rows = held.match_plain(vector, state.version, lambda leader, there=None: True, rows, 0)
    assert sorted(f"s{row}" for row in rows[:n_rows]) == sorted(before)
    assert index.match(EVENTS[0]) == []
    old, engine = weakref.ref(held), weakref.ref(index._engine)
    gc.disable()
    try:
        del held, state
        assert old() is None
        del index
        assert engine() is None  # without the collector: an index may be large
    finally:
        gc.enable()


def test_a_merge_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    index = make_index()
    index._engine.wait_for_merging()
    raised: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    with monkeypatch.context() as broken:
        broken.setattr(moving, "merge", lambda *_: 1 / 0)
        for change in range(200):
            index.move(f"s{change % N_IDS}", *PLACES[1])
        index._engine.wait_for_merging()
    assert raised[0].exc_type is ZeroDivisionError
    for change in range(200):
        index.move(f"s{change % N_IDS}", *PLACES[2])
    index._engine.wait_for_merging()
    assert len(index.match(EVENTS[2])) == N_IDS
    assert not index.match(EVENTS[1])
