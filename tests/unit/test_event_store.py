"""The event store by hand: borders, orders, times, tables, files, and leaves by the thousand."""

from __future__ import annotations

import gc
import math
import re
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Event, Point, Polygon, Range, Subscription, evaluate
from tamis.errors import (
    DuplicateEvent,
    FilterTooComplex,
    InvalidEvent,
    InvalidSubscription,
    InvalidValue,
    SnapshotError,
    UnknownEvent,
)
from tamis.events import EventStore, collection
from tamis.events import store as store_module
from tamis.events.arrow import NotPlain, table_of_arrow
from tamis.events.collection import MIN_MERGED, Collection, n_to_merge
from tamis.events.head import Head
from tamis.events.lanes import encode, encode_many
from tamis.events.layout import order_of
from tamis.events.question import Question
from tamis.events.table import table_of_events
from tamis.kernels.event_cells import GROUP, LEAF
from tamis.kernels.event_scan import Moment
from tamis.language import parse_filter
from tamis.language.tree import InRange, all_of
from tamis.model import events_from_arrow, events_to_arrow
from tamis.slots.lanes import LAT, LON, NUMBER, TEXT

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FAR = 2**53
BELOW_5 = math.nextafter(5.0, -math.inf)
# Whatever is held: each alone, and in one segment with all others.
HELD: list[Any] = [
    5, 5.0, BELOW_5, -0.0, FAR, FAR + 1, float(FAR + 2), -(2**63), math.inf, -math.inf, 5e-324,
    "5", "5.0", "abc", "ab", "", "é", "🚗", "2026-01-01", "9007199254740993", True, False,
    NOON, datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), Range(1, 5, "[)"), Range(5, None),
    Range(None, NOON), Range(), [1, 9], ["a", "zz"], ["abc", 7], [FAR + 1, "x"], None, math.nan,
    Point(0, 0), Point(180, 1), Point(-179.999, 0), Point(0, 90), Point(200, 1),
    [Point(0, 0), Point(9, 9)], Polygon([(0, 0), (1, 0), (0, 1)]),
]  # fmt: skip
ASKED = [
    "x < 5", "x <= 5", "x = 5", "x != 5", "x > 5", "NOT x < 5", "NOT x = 5", "x BETWEEN 2 AND 8",
    "x >= 2 AND x <= 8", "x > 5 AND x < 3", f"x = {FAR}", f"x = {FAR + 1}", f"x > {FAR}",
    f"x < {FAR + 1}", "x > -0.0", "x = 'abc'", "x != 'abc'", "x LIKE 'ab%'", "NOT x LIKE 'ab%'",
    "x LIKE '%'", "x LIKE 'q%'", "x = 'abc' AND x LIKE 'ab%'", "x IS NULL", "x IS NOT NULL",
    "x IN ('abc', 'ab', 'nobody')", "NOT x IN ('abc', 5)", "x IN (5, 'abc', TRUE)", "x", "NOT x",
    "x >= TIMESTAMP '2026-01-01'", "x < TIMESTAMP '2026-01-01T12:00:00Z'", "y IS NULL",
    "y IS NOT NULL", "y = 1", "NOT y = 1", "y LIKE 'a%'", "box(x, -1, -1, 1, 1)",
    "box(x, 179, -5, -179, 5)", "distance(x, 179.9, 0) <= 200000", "distance(x, 50, 89.9) < 20000",
    "within(x, 'POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))')", "NOT box(x, -1, -1, 1, 1)",
    "x = 5 OR x = 'abc' OR y IS NOT NULL", "x < 5 AND y IS NULL", "TRUE", "FALSE",
]  # fmt: skip


def everything() -> Subscription:
    return Subscription("all", "TRUE")


def sealed(events: list[Event]) -> EventStore:
    """A store with all events in one segment."""
    store = EventStore()
    store.insert_many(events, NOON)
    with store._collection.lock, store._collection.change(store._collection.state.clock):
        store._collection.seal(store._collection.state.clock)
    return store


@pytest.mark.parametrize("text", ASKED)
def test_every_kind_of_value_is_found_as_the_oracle_says(text: str) -> None:
    subscription = Subscription("s", text)
    events = [Event(f"e{n}", {"x": held}) for n, held in enumerate(HELD)]
    expected = [e.id for e in reversed(events) if evaluate(subscription.condition, e)]
    head, segment = EventStore(), sealed(events)
    head.insert_many(events, NOON)
    assert head.stats()["n_segments"] == 0
    assert segment.stats()["n_head_events"] == 0
    assert head.match(subscription, NOON) == expected
    assert segment.match(subscription, NOON) == expected
    for event in events:  # alone, so that columns hold nothing else
        alone = sealed([event])
        is_there = evaluate(subscription.condition, event)
        assert alone.match(subscription, NOON) == ([event.id] if is_there else [])


@pytest.mark.parametrize("held", HELD)
def test_events_are_rebuilt_as_they_were(held: Any) -> None:
    event = Event(
        "é", {"x": held, "n": 3, "f": 3.0, "t": "3"}, b"\x00\xff", NOON, NOON + MINUTE, (1.5, -2)
    )
    for other in ([], [Event("o", {"x": 1.5, "n": "text", "f": 7})]):
        back = sealed([event, *other])["é"]
        assert back == event
        for name, values in event.attributes.items():
            assert list(map(type, back.attributes[name])) == list(map(type, values))


def test_a_location_that_is_an_attribute_stays_one() -> None:
    store = sealed([Event("a", {"location": Point(1, 2)}), Event("b", {}, location=(1, 2))])
    assert store["a"].location is None
    assert store["b"].location == Point(1, 2)


# -- time


def test_an_event_is_valid_before_until() -> None:
    store = EventStore()
    store.insert(Event("e", {}, until=NOON + MINUTE), NOON)
    assert store.match(everything(), NOON + MINUTE - timedelta(microseconds=1)) == ["e"]
    assert store.match(everything(), NOON + MINUTE) == []


def test_what_has_expired_on_arrival_never_matches_and_leaves_its_id_free() -> None:
    store = EventStore()
    store.insert(Event("e", {"x": 1}, until=NOON), NOON)
    assert store.match(everything(), NOON) == []
    assert "e" not in store
    with pytest.raises(UnknownEvent, match="expired"):
        store.delete("e")
    assert len(store) == 1
    store.insert(Event("e", {"x": 2}), NOON)
    assert store["e"].attributes == {"x": (2,)}
    assert len(store) == 1


def test_time_never_goes_back() -> None:
    store = EventStore()
    store.insert(Event("short", {}, until=NOON + MINUTE), NOON)
    store.insert(Event("late", {}), NOON + 2 * MINUTE)
    assert store.match(everything(), NOON) == ["late"]
    store.insert(Event("skewed", {}, until=NOON + 3 * MINUTE), NOON)  # a clock that lags behind
    assert store.match(everything(), NOON) == ["late", "skewed"]


def test_the_clock_is_taken_where_no_time_is_given() -> None:
    store = EventStore()
    now = datetime.now(UTC)
    store.insert(Event("gone", {}, until=now - MINUTE))
    store.insert(Event("there", {}, until=now + 60 * MINUTE))
    assert store.match(everything()) == ["there"]
    with pytest.raises(InvalidValue, match="expected a datetime"):
        store.match(everything(), now="noon")  # type: ignore[arg-type]


def test_a_sweep_is_bounded_and_returns_memory() -> None:
    store = EventStore()
    n = 20_000
    store.insert_many(
        [Event(f"e{i}", {"x": float(i)}, until=NOON + (i % 4 + 1) * MINUTE) for i in range(n)], NOON
    )
    before = store.stats()["memory"]
    now = NOON + 3 * MINUTE
    assert store.expire(now, limit=1_000) == 1_000
    assert len(store) == n - 1_000
    n_dropped = 1_000
    while more := store.expire(now):
        n_dropped += more
    assert n_dropped == 3 * n // 4
    assert len(store) == n // 4 == len(store.match(everything(), now))
    assert store.stats()["memory"] < before / 2
    assert store.expire(NOON + 9 * MINUTE) == n // 4
    assert store.stats()["n_segments"] == 0


def with_a_full_head() -> EventStore:
    """A store of 150 events in the head, 100 of which expire in a minute."""
    store = EventStore()
    for n in range(150):
        store.insert(Event(f"e{n}", {"x": n}, until=NOON + MINUTE if n % 3 else None), NOON)
    return store


def expire_most(store: EventStore) -> None:
    assert store.expire(NOON + MINUTE) == 100


def delete_most(store: EventStore) -> None:
    for n in range(150):
        if n % 3:
            store.delete(f"e{n}")


@pytest.mark.parametrize("drop", [expire_most, delete_most])
def test_the_head_lets_go_of_what_died(drop: Callable[[EventStore], None]) -> None:
    store = with_a_full_head()
    early = store._collection.state
    drop(store)
    place = early.place_of("e7", early.clock)
    assert place is not None  # for who still looks at it
    assert place.part.event(place.row).attributes == {"x": (7,)}
    assert len(store._collection.state.head.events) <= 75
    assert len(store) == store.stats()["n_head_events"] == 50
    left = [f"e{n}" for n in range(147, -1, -3)]
    assert store.match(everything(), NOON + MINUTE) == left
    store.insert(Event("last", {"x": 0}), NOON + MINUTE)
    assert store.match(everything(), NOON + MINUTE) == ["last", *left]  # arrivals are kept


def test_what_the_head_let_go_of_is_freed_at_once() -> None:
    store = with_a_full_head()
    old = weakref.ref(store._collection.state.head)
    gc.disable()
    try:
        expire_most(store)
        assert old() is None
    finally:
        gc.enable()


def test_a_head_with_few_dead_stays() -> None:
    store = with_a_full_head()
    head = store._collection.state.head
    assert store.expire(NOON + MINUTE, limit=74) == 74  # less than half
    assert store._collection.state.head is head
    few = EventStore()
    for n in range(63):
        few.insert(Event(f"e{n}", {}, until=NOON + MINUTE), NOON)
    head = few._collection.state.head
    assert few.expire(NOON + MINUTE) == 63
    assert few._collection.state.head is head


def test_a_new_head_is_forgotten_if_its_change_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_a_full_head()
    head = store._collection.state.head
    with monkeypatch.context() as patch:
        patch.setattr(Collection, "publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.expire(NOON + MINUTE)
    assert store._collection.state.head is store._collection._head is head
    assert len(store) == len(store.match(everything(), NOON)) == 150
    expire_most(store)
    assert len(store) == len(store.match(everything(), NOON + MINUTE)) == 50


def test_merging_drops_what_has_expired() -> None:
    store = EventStore()
    for round in range(40):
        now = NOON + round * MINUTE
        until = now + MINUTE
        made = [Event(f"{round}.{i}", {"x": i}, until=until) for i in range(1_500)]
        store.insert_many(made, now)
        assert len(store.match(everything(), now)) == 1_500
    assert store.stats()["n_segments"] <= MIN_MERGED
    assert len(store) < 10_000


@pytest.mark.parametrize("n_more", [1, 2_500])
def test_texts_between_others_are_found_when_events_beside_them_are_gone(
    n_more: int, tmp_path: Path
) -> None:
    store = EventStore()
    gone = [Event(f"gone{i}", {"tag": f"t{i}"}, until=NOON + MINUTE) for i in range(n_more)]
    store.insert_many([*gone, Event("stays", {"tag": ["a", "m", "t1", "z"]})], NOON)
    store.expire(NOON + MINUTE)
    store.save(tmp_path / "store")  # seals the head
    for one in (store, EventStore.open(tmp_path / "store")):
        for text in ("a", "m", "t1", "z"):
            assert one.match(Subscription("s", f"tag = '{text}'"), NOON + MINUTE) == ["stays"]
        assert one.match(Subscription("s", "tag LIKE 'm%'"), NOON + MINUTE) == ["stays"]
        assert one.match(Subscription("s", "tag = 't2'"), NOON + MINUTE) == []


# -- order


def test_newest_is_by_time_then_by_arrival() -> None:
    store = EventStore()
    for id, time, now in [
        ("old", NOON, NOON), ("new", NOON + 5 * MINUTE, NOON), ("arrived", None, NOON + 2 * MINUTE),
        ("same", NOON, NOON + 9 * MINUTE),
    ]:  # fmt: skip
        store.insert(Event(id, {}, time=time), now)
    assert store.match(everything(), NOON) == ["new", "arrived", "same", "old"]
    assert store.match(everything(), NOON, limit=2) == ["new", "arrived"]
    assert store.match(everything(), NOON, limit=0) == []


def test_the_order_of_arrival_outlives_the_layout() -> None:
    n = 5 * LEAF
    numbers = np.random.default_rng(1).permutation(n).tolist()
    store = EventStore()
    store.insert_many([Event(f"e{i}", {"x": x}) for i, x in enumerate(numbers)], NOON)
    assert store.stats()["n_segments"] == 1
    assert store.match(everything(), NOON) == [f"e{i}" for i in reversed(range(n))]


def test_nearest_is_by_distance_across_the_antimeridian() -> None:
    store = EventStore()
    places = {"far": (170, 0), "east": (179.9, 0), "west": (-179.8, 0), "pole": (0, 90)}
    store.insert_many([Event(id, {}, location=place) for id, place in places.items()], NOON)
    store.insert(Event("two", {"location": [Point(0, 0), Point(-179.95, 0)]}), NOON)
    me = Subscription("me", "TRUE", location=(180, 0), radius_m=2_000_000)
    assert store.match(me, NOON, order="nearest") == ["two", "east", "west", "far"]
    assert store.match(me, NOON, order="nearest", limit=1) == ["two"]


def test_what_cannot_be_asked_is_refused() -> None:
    store = EventStore()
    with pytest.raises(InvalidSubscription, match="no location"):
        store.match(everything(), NOON, order="nearest")
    with pytest.raises(InvalidValue, match="newest, nearest"):
        store.match(everything(), NOON, order="best")
    with pytest.raises(InvalidValue, match="whole number"):
        store.match(everything(), NOON, limit=-1)
    with pytest.raises(InvalidSubscription, match="Subscription"):
        store.match("x < 5", NOON)  # type: ignore[arg-type]
    none: Any
    for none in (None, everything()):
        with pytest.raises(InvalidSubscription, match=r"is not many; .* use match\(\) for one"):
            store.match_batch(none, NOON)
    parts = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(12))
    for asked in (Subscription("s", parts), Subscription("s", parts, location=(0, 0), radius_m=9)):
        with pytest.raises(FilterTooComplex):
            EventStore().match(asked, NOON)
    store.insert(Event("e", {}), NOON)
    with pytest.raises(FilterTooComplex):
        store.match(Subscription("s", parts), NOON)
    with pytest.raises(InvalidValue, match="limit -1"):
        store.expire(NOON, limit=-1)


# -- ids


def test_ids_are_refused_or_unknown() -> None:
    store = sealed([Event(f"e{n}", {"x": n}) for n in range(5)])
    store.insert(Event("head", {}), NOON)
    for id in ("e3", "head"):
        with pytest.raises(DuplicateEvent, match=id):
            store.insert(Event(id, {}), NOON)
        with pytest.raises(DuplicateEvent, match=id):
            store.insert_many([Event("new", {}), Event(id, {})], NOON)
    assert "new" not in store
    assert 3 not in store
    for id in ("e3", "head"):
        store.delete(id)
        store.insert(Event(id, {"x": "again"}), NOON)
        assert store[id].attributes == {"x": ("again",)}
    unknown: list[Any] = ["nobody", "", 5, None, [], b"e1"]
    for id in unknown:
        for ask in (store.__getitem__, store.delete):
            with pytest.raises(UnknownEvent, match=f"no event {re.escape(repr(id))} in the store"):
                ask(id)
        assert id not in store
    with pytest.raises(InvalidEvent, match="int is not many"):
        store.insert_many(7)  # type: ignore[arg-type]


# -- tables


def test_an_arrow_table_is_read_as_events_from_arrow_reads_it() -> None:
    n = 700
    texts = ["a", "b", "2016", None, "2026-01-01", "é"]
    table = pa.table(
        {
            "event_id": pa.array(range(n)),
            "event_until": pa.array([None if i % 3 else NOON + i * MINUTE for i in range(n)]),
            "event_time": pa.array([None if i % 2 else NOON + i * MINUTE for i in range(n)]),
            "event_payload": pa.array([b"p" if i % 5 == 0 else None for i in range(n)]),
            "event_location": pa.array(
                [None if i % 7 == 0 else {"lon": i / 7, "lat": -0.0} for i in range(n)]
            ),
            "f": pa.array([None if i % 4 == 0 else i / 3 for i in range(n)]),
            "nan": pa.array([math.nan if i % 2 else i / 3 for i in range(n)]),
            "i": pa.array(range(n), pa.int32()),
            "b": pa.array([i % 2 == 0 for i in range(n)]),
            "t": pa.array([texts[i % 6] for i in range(n)]),
            "d": pa.array([texts[i % 2] for i in range(n)]).dictionary_encode(),
            "at": pa.array([NOON + i * MINUTE for i in range(n)], pa.timestamp("ms", "UTC")),
            "nothing": pa.nulls(n),
        }
    )
    store = EventStore()
    store.insert_many(table, NOON)
    events = events_from_arrow(table)
    assert store.stats()["n_rough"] == 0
    assert [store[e.id] for e in events if e.until is None] == [
        e for e in events if e.until is None
    ]
    now = NOON + 100 * MINUTE
    for text in ("f < 50", "nan IS NULL AND b", "t = '2016' OR t = 2016", "t LIKE '20%'",
                 "d = 'b' AND i > 300", "distance(location, 50, 0) < 1000000",
                 "at < TIMESTAMP '2026-01-01T14:00:00Z'", "nothing IS NULL"):  # fmt: skip
        asked = Subscription("s", text)
        expected = {
            e.id for e in events
            if evaluate(asked.condition, e) and (e.until is None or now < e.until)
        }  # fmt: skip
        assert set(store.match(asked, now)) == expected, text
    with pytest.raises(DuplicateEvent, match="'699'"):
        store.insert_many(table.slice(699), NOON)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([FAR + 1]),
        pa.array([[1, 2]]),
        pa.array([{"low": 1, "high": 2}]),
        pa.array([{"mark": "FORD"}]),
        pa.array([{"lon": math.inf, "lat": 0.0}]),
        pa.array(["9007199254740993"]),
        pa.array([10**18], pa.timestamp("us")),
        pa.array([1], pa.timestamp("ns")),
    ],
)
def test_what_columns_do_not_say_is_read_event_by_event(column: pa.Array) -> None:
    with pytest.raises(NotPlain):
        table_of_arrow(pa.table({"event_id": ["e"], "x": column}), 0)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": [1]}),
        pa.table({"event_id": [""]}),
        pa.table({"event_id": pa.array([None], pa.string())}),
        pa.table({"event_id": ["a"], "event_until": ["soon"]}),
        pa.table({"event_id": ["a"], "event_payload": [5]}),
        pa.table({"event_id": ["a"], "event_until": pa.array([2**61]).cast(pa.timestamp("s"))}),
        pa.table({"event_id": ["a"], "x": pa.array([2**62]).cast(pa.timestamp("ms"))}),
        pa.table({"event_id": ["a"], "x": pa.array([0]).cast(pa.timestamp("us", "Mars/X"))}),
        pa.table(
            {"event_id": ["a"], "event_location": [{"lon": 1.0, "lat": 1.0}], "location": [1]}
        ),
    ],
)
def test_a_table_that_is_wrong_is_refused_whatever_its_size(table: pa.Table) -> None:
    store = EventStore()
    with pytest.raises(NotPlain):
        table_of_arrow(table, 0)
    for many in (table, pa.concat_tables([table] * 600)):
        with pytest.raises(InvalidEvent):
            store.insert_many(many, NOON)
    assert len(store) == 0


def test_a_table_goes_through_whatever_kinds_it_holds() -> None:
    events = [Event(f"e{n}", {"x": held}) for n, held in enumerate([[1, 2], [3], [FAR + 1]])]
    store = EventStore()
    store.insert_many(events_to_arrow(events), NOON)
    assert [store[e.id] for e in events] == events


# -- leaves


def values_of(n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Events over four columns: ties, gaps, infinities, and one that is always the same."""
    random = np.random.default_rng(7)
    values = random.random((n, 4))
    values[:, 1] = np.round(values[:, 1], 1)
    values[random.random((n, 4)) < 0.2] = np.nan
    values[::97, 2] = math.inf
    values[5::97, 2] = -math.inf
    values[:, 3] = np.where(np.isnan(values[:, 3]), np.nan, 7.0)
    return values


@pytest.mark.parametrize("n", [LEAF - 1, LEAF, LEAF + 1, LEAF * GROUP + 1, 30_000])
def test_many_leaves_find_what_a_plain_comparison_finds(n: int) -> None:
    values, names = values_of(n), ["a", "b", "c", "d"]
    random = np.random.default_rng(n)
    asked = []
    for _ in range(60):
        chosen = random.permutation(4)[: random.integers(0, 5)]
        bounds = {}
        for m in chosen.tolist():
            low, high = np.sort(random.choice([*random.random(3), 0.1, 0.3, 7.0, -math.inf], 2))
            bounds[m] = (float(low), float(high))
        asked.append(bounds)
    store = EventStore()
    subscriptions = [
        Subscription("s", all_of([InRange(names[m], Range(*b)) for m, b in bounds.items()]))
        for bounds in asked
    ]
    store.match_batch(subscriptions[:30], NOON)  # so that the layout has something to follow
    columns = {name: values[:, m] for m, name in enumerate(names)}
    store.insert_many(pa.table({"event_id": pa.array(range(n)), **columns}), NOON)
    for bounds, subscription in zip(asked, subscriptions, strict=True):
        met = np.ones(n, bool)
        for m, (low, high) in bounds.items():
            met &= (values[:, m] >= low) & (values[:, m] <= high)
        found = store.match(subscription, NOON)
        assert sorted(map(int, found)) == np.flatnonzero(met).tolist()


def test_the_layout_follows_what_was_asked() -> None:
    random = np.random.default_rng(3)
    columns = random.random((3, 40 * LEAF))
    names = [("x", NUMBER), ("y", NUMBER), ("z", NUMBER)]

    def widths(asked: list[Any], names: list[Any] = names) -> list[float]:
        order = order_of(40 * LEAF, names, lambda c: columns[c], asked)
        assert order is not None
        assert sorted(order.tolist()) == list(range(40 * LEAF))
        leaves = columns[:, order].reshape(3, 40, LEAF)
        return np.mean(leaves.max(axis=2) - leaves.min(axis=2), axis=1).round(1).tolist()

    assert widths([{("z", NUMBER): (0.1, 0.11)}]) == [1.0, 1.0, 0.0]
    assert widths([{("y", NUMBER): (0.5, 0.51), ("z", NUMBER): (0.1, 0.11)}])[0] == 1.0
    assert widths([], [("x", NUMBER), ("p", LON), ("p", LAT)])[0] == 1.0
    assert order_of(LEAF, names, lambda c: columns[c], []) is None
    assert order_of(40 * LEAF, [("x", TEXT)], lambda c: columns[c], []) is None


def test_merging_takes_the_newest_of_like_size() -> None:
    assert n_to_merge([]) == n_to_merge([5]) == n_to_merge([1, 1, 1]) == 0
    assert n_to_merge([1000, 10, 10, 10, 10]) == 4
    assert n_to_merge([30, 10, 10, 10]) == 4
    assert n_to_merge([50, 40, 10, 10, 10, 10]) == 6
    assert n_to_merge([2**20, 2**18, 2**18, 2**17, 2**17]) == 5  # a thread's
    assert n_to_merge([2**21, 2**18, 2**17, 2**17]) == 0
    assert n_to_merge([2**22, 2**22, 2**22, 2**22]) == 0


def wordy(names: str, n: int) -> list[Event]:
    """Events with an id of 4 bytes and a text of 12."""
    return [Event(f"{names}{i:03}", {"text": f"{names}{i:03}-é-ñ--"}) for i in range(n)]


def most_letters(store: EventStore) -> int:
    return max(max(one.n_letters.values()) for one in store._collection.state.segments)


@pytest.mark.parametrize("at_once", [0, 2**18], ids=["beside", "by the writer"])
def test_no_segment_is_made_of_too_many_texts(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "HEAD_EVENTS", 16)
    monkeypatch.setattr(collection, "MAX_AT_ONCE", at_once)
    monkeypatch.setattr(collection, "MAX_LETTERS", 1_000)
    store = EventStore()
    for t in range(16):
        store.insert_many(wordy("abcdefghijklmnop"[t], 20), NOON)
        store._collection.wait_for_merging()
    assert 0 < most_letters(store) <= 1_000
    assert store.stats()["n_segments"] == 4
    assert len(store.match(everything(), NOON)) == len(store) == 16 * 20
    assert store.match(Subscription("s", "text = 'c007-é-ñ--'"), NOON) == ["c007"]
    for n in range(100):  # few letters go on to be merged
        store.insert_many([Event(f"{n}.{i}", {"x": 1}) for i in range(9)], NOON)
        store._collection.wait_for_merging()
    assert store.stats()["n_segments"] < 16


def test_ids_count_as_texts_do(monkeypatch: pytest.MonkeyPatch) -> None:
    segments = [Counter({"": 300}), Counter({"": 300, "t": 1})]
    monkeypatch.setattr(collection, "MAX_LETTERS", 1_200)
    assert n_to_merge([10] * 4, segments * 2) == 4
    monkeypatch.setattr(collection, "MAX_LETTERS", 1_199)
    assert n_to_merge([10] * 4, segments * 2) == 0


def test_a_head_of_too_many_texts_becomes_several_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "MAX_LETTERS", 1_000)
    store = EventStore()
    for event in wordy("h", 150):
        store.insert(event, NOON)
    store.delete("h003")
    before = store.match(everything(), NOON), [store[id] for id in store.match(everything(), NOON)]
    with store._collection.lock, store._collection.change(store._collection.state.clock):
        store._collection.seal(store._collection.state.clock)
    assert store.stats()["n_head_events"] == 0
    assert most_letters(store) <= 1_000
    found = store.match(everything(), NOON)
    assert (found, [store[id] for id in found]) == before
    assert len(store) == 149


@pytest.mark.parametrize("way", [list, events_to_arrow])
def test_too_many_texts_at_once_are_refused(
    way: Callable[[list[Event]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MIN_TABLE", 1)
    monkeypatch.setattr(collection, "HEAD_EVENTS", 16)
    store = EventStore()
    monkeypatch.setattr(collection, "MAX_LETTERS", 1_199)
    with pytest.raises(InvalidEvent, match=r"the attribute 'text' has 1,200 bytes.*at most 1,199"):
        store.insert_many(way(wordy("a", 100)), NOON)
    monkeypatch.setattr(collection, "MAX_LETTERS", 399)
    with pytest.raises(InvalidEvent, match=r"the id has 400 bytes.*in several parts"):
        store.insert_many(way(wordy("a", 100)), NOON)
    assert len(store) == 0
    monkeypatch.setattr(collection, "MAX_LETTERS", 1_200)
    store.insert_many(way(wordy("a", 100)), NOON)
    assert len(store.match(everything(), NOON)) == len(store) == 100


# -- files


def test_a_store_is_saved_and_opened_with_all_it_knows(tmp_path: Path) -> None:
    events = [Event(f"e{n}", {"x": n, "t": f"t{n % 9}", "y": [n, -n]}, b"p") for n in range(3_000)]
    store = EventStore()
    store.insert_many(events, NOON)
    store.delete("e7")
    store.save(tmp_path / "a" / "store")
    opened = EventStore.open(tmp_path / "a" / "store")
    asked = Subscription("s", "x < 20 AND t LIKE 't%' AND y < -1")
    assert opened.match(asked, NOON) == store.match(asked, NOON)
    assert "e7" not in opened
    assert opened["e8"] == events[8]
    assert len(opened) == 2_999
    opened.delete("e8")  # only in memory
    assert "e8" in EventStore.open(tmp_path / "a" / "store")
    opened.insert(Event("newest", {"x": 1, "t": "t", "y": -5}), NOON)
    assert opened.match(asked, NOON)[0] == "newest"


def test_files_that_are_no_store_are_refused(tmp_path: Path) -> None:
    store = sealed([Event("e", {"x": 1})])
    store.save(tmp_path / "s")
    with pytest.raises(SnapshotError, match="exists"):
        store.save(tmp_path / "s")
    with pytest.raises(SnapshotError, match="not an event store"):
        EventStore.open(tmp_path / "nowhere")
    np.save(tmp_path / "s" / "segment.0.flags.npy", np.zeros(5))
    with pytest.raises(SnapshotError, match="damaged"):
        EventStore.open(tmp_path / "s")
    manifest = tmp_path / "s" / "manifest.json"
    written = manifest.read_text()
    for number, what in ((1, "insert the events into a new store"), (9, "upgrade Tamis")):
        manifest.write_text(written.replace('"format": 2', f'"format": {number}'))
        with pytest.raises(SnapshotError, match=f"format {number}; this Tamis reads 2.*{what}"):
            EventStore.open(tmp_path / "s")
    manifest.write_text("{}")
    with pytest.raises(SnapshotError, match="not that of an event store"):
        EventStore.open(tmp_path / "s")
    manifest.write_text("?")
    with pytest.raises(SnapshotError, match="cannot be read"):
        EventStore.open(tmp_path / "s")


# -- values as columns


def test_many_events_are_encoded_as_each_alone() -> None:
    code = {}
    attributes = [Event(f"e{i}", {"x": held, "y": 1.5}).attributes for i, held in enumerate(HELD)]
    attributes += [{}, Event("e", {"z": 2.0, "w": [3.0, 4.0], "x": 1}).attributes]

    def code_of(name: str, text: str) -> float:
        return code.setdefault((name, text), len(code))

    columns: dict[Any, int] = {}
    made = encode_many(attributes, code_of, columns)
    names = list(columns)
    for row, one in enumerate(attributes):
        spans, is_plain = encode(one, code_of)
        own = np.flatnonzero(made.rows == row)
        found = [
            (names[made.columns[i]], made.low[i], made.high[i], bool(made.is_whole[i])) for i in own
        ]
        wanted = [(n, low, high, type(low) is int and n[1] == NUMBER) for n, low, high in spans]
        assert sorted(found) == sorted(wanted), one
        assert made.is_plain[row] == is_plain, one


def test_only_floats_are_encoded_without_a_second_side() -> None:
    made = encode_many([{"a": (1.0,)}, {"b": (math.inf,), "a": (-0.0,)}], lambda *_: 0, {})
    assert made.high is made.low
    assert not made.is_whole.any()
    assert encode_many([], lambda *_: 0, {}).rows.tolist() == []


def test_a_head_is_asked_while_it_grows() -> None:
    store = EventStore()
    held: list[Event] = []
    n_seen = []
    early = None
    for i in range(200):
        value = HELD[i % len(HELD)]
        held.append(Event(f"e{i}", {"x": value, f"only{i % 70}": float(i), "t": f"t{i % 3}"}))
        store.insert(held[-1], now=NOON)
        if i == 10:
            early = store._collection.state  # which nobody has asked yet
        if i % 37 == 0:
            for text in ("x <= 5", "t = 't1'", "t LIKE 't%'", f"only{i % 70} >= 0", "x IS NULL"):
                asked = Subscription("s", text)
                wanted = [e.id for e in reversed(held) if evaluate(asked.condition, e)]
                assert store.match(asked, now=NOON) == wanted, (i, text)
                n_seen.append(len(wanted))
    assert sum(n_seen) > 100
    assert early is not None
    late = Subscription("s", "only3 >= 0 OR only69 >= 0")
    found = store._match(early, late, early.moment(0), "newest", None)
    assert found == ["e3"]
    assert store.match(late, now=NOON) == ["e143", "e139", "e73", "e69", "e3"]


@pytest.mark.parametrize("kinds", ["floats", "mixed", "several"])
def test_a_head_becomes_the_table_that_its_events_are(kinds: str) -> None:
    random = np.random.default_rng(11)
    made = {
        "floats": lambda: {"a": random.random(), "b": random.random()},
        "mixed": lambda: {
            "a": int(random.integers(0, 9)), "c": "zyx"[random.integers(0, 3)],
            "d": ("1", "x")[random.integers(0, 2)], "e": bool(random.integers(0, 2)),
            "p": Point(1, 2), "big": 2**53 + 1, "r": Range(1, 2),
        },
        "several": lambda: {"c": ["x", "yz"[random.integers(0, 2)]], "a": [1, 2.5]},
    }  # fmt: skip
    kept = ["floats", kinds]
    events = [
        Event(f"e{n}", made[kept[n % 2]](), b"p" * (n % 2), until=NOON if n % 3 else None)
        for n in range(150)
    ]
    head = Head(256)
    for n, event in enumerate(events):
        head.append(event, 7, 2 * n)
        if n in (3, 70):
            head.view(n + 1).find(Question(parse_filter("a < 1")), Moment(0, 1))
    found = head.table()
    wanted = table_of_events(events, [7] * 150, range(0, 300, 2))
    order = [found.names.index(name) for name in wanted.names]
    assert sorted(order) == list(range(len(found.names)))
    np.testing.assert_array_equal(found.low[order], wanted.low)
    for at, column in enumerate(order):
        np.testing.assert_array_equal(found.high_column(column), wanted.high_column(at))
        whole = [
            t.whole[t.whole_of[c]] if t.whole_of[c] >= 0 else t.whole_of[c]
            for t, c in ((found, column), (wanted, at))
        ]
        np.testing.assert_array_equal(*whole)
    assert {n: t.to_pylist() for n, t in found.texts.items()} == {
        n: t.to_pylist() for n, t in wanted.texts.items()
    }
    assert found.ids.to_pylist() == wanted.ids.to_pylist()
    assert (found.blobs is None) == (wanted.blobs is None)
    assert found.blobs is None or found.blobs.equals(wanted.blobs)
    for name in ("until", "moment", "sequence", "flags"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_an_id_that_expired_in_the_head_is_free_again() -> None:
    store = EventStore()
    for n in range(3):
        moment = NOON + timedelta(hours=n)
        store.insert(Event("e", {"n": n}, until=moment + timedelta(minutes=30)), moment)
        with pytest.raises(DuplicateEvent):
            store.insert(Event("e", {}), moment)
        assert store.match(Subscription("s", f"n = {n}"), moment) == ["e"]
    assert store.expire(NOON + timedelta(hours=5)) == 1
    assert len(store) == 0


def test_an_earlier_state_has_the_event_that_it_had() -> None:
    store = EventStore()
    store.insert(Event("e", {"n": 0}, until=NOON + MINUTE), NOON)
    early = store._collection.state
    store.insert(Event("e", {"n": 1}), NOON + MINUTE)
    place = early.place_of("e", early.clock)
    assert place is not None
    assert place.part.event(place.row).attributes == {"n": (0,)}
    assert store["e"].attributes == {"n": (1,)}


def test_what_dies_while_it_is_merged_stays_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "MAX_AT_ONCE", 0)
    store, may_go_on, is_merging = EventStore(), threading.Event(), threading.Event()
    unite = Collection._united

    def unite_later(self: Collection, *given: Any) -> Any:
        is_merging.set()
        assert may_go_on.wait(60)
        return unite(self, *given)

    monkeypatch.setattr(Collection, "_united", unite_later)
    n_tables, size = MIN_MERGED, store_module.MIN_TABLE
    for t in range(n_tables):
        made = [Event(f"{t}.{n}", {"x": n}, until=NOON + MINUTE) for n in range(size)]
        store.insert_many(events_to_arrow(made), NOON)
    assert is_merging.wait(60)
    assert store.stats()["n_segments"] == n_tables
    store.delete("0.7")
    store.delete("3.9")
    store.insert(Event("3.9", {"x": -1}), NOON)
    assert "0.7" not in store
    may_go_on.set()
    store._collection.wait_for_merging()
    assert store.stats()["n_segments"] == 1
    assert store.stats()["n_dead"] == 2
    assert "0.7" not in store
    assert store["3.9"].attributes["x"] == (-1,)
    assert len(store) == len(store.match(Subscription("s", "x >= -1"), NOON)) == n_tables * size - 1


def test_a_merge_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "MAX_AT_ONCE", 0)
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    store, size = EventStore(), store_module.MIN_TABLE

    def insert(t: int) -> None:
        made = [Event(f"{t}.{n}", {"x": n}) for n in range(size)]
        store.insert_many(events_to_arrow(made), NOON)

    with monkeypatch.context() as patch:
        patch.setattr(Collection, "_united", lambda *_: 1 / 0)
        for t in range(MIN_MERGED):
            insert(t)
        store._collection.wait_for_merging()
    assert [one.exc_type for one in told] == [ZeroDivisionError]
    assert store.stats()["n_segments"] == MIN_MERGED
    insert(MIN_MERGED)
    store._collection.wait_for_merging()
    assert store.stats()["n_segments"] == 1
    assert len(store.match(Subscription("s", "x >= 0"), NOON)) == (MIN_MERGED + 1) * size


def test_an_interrupt_before_a_change_is_finished_is_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = EventStore()
    store.insert(Event("old", {"x": 1}), now=NOON)

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("finish", "undo"):  # the second leaves it to the next change
        with monkeypatch.context() as patched:
            patched.setattr(Collection, name, broken)
            patched.setattr(Collection, "publish", broken)
            with pytest.raises(KeyboardInterrupt):
                store.insert(Event("new", {"x": 2}), now=NOON)
            with pytest.raises(KeyboardInterrupt):
                store.delete("old")
    store.insert(Event("new", {"x": 2}), now=NOON)
    assert sorted(store.match(Subscription("s", "x > 0"), now=NOON)) == ["new", "old"]
    assert len(store) == 2


@pytest.mark.parametrize("id", ["in the head", "e7"])
def test_what_an_interrupt_left_half_done_is_not_counted(
    id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sealed([Event(f"e{n}", {"x": n}) for n in range(20)])
    store.delete("e3")
    store.insert(Event("in the head", {"x": 1}), NOON)
    store.insert(Event("gone", {"x": 1}), NOON)
    store.delete("gone")
    before = store.stats()
    assert before["n_events"] == 20

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    for change in (lambda: store.delete(id), lambda: store.insert(Event("new", {}), NOON)):
        with monkeypatch.context() as patched:
            patched.setattr(Collection, "finish", broken)
            patched.setattr(Collection, "undo", broken)
            with pytest.raises(KeyboardInterrupt):
                change()
        assert len(store) == len(store.match(everything(), NOON)) == 20
        assert store.stats() == before
    store.delete(id)
    assert len(store) == len(store.match(everything(), NOON)) == store.stats()["n_events"] == 19
