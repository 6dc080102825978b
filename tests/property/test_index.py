"""The index says what the oracle says, whatever is added, removed, changed, saved and opened."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tamis import Event, Index, Range, Subscription, evaluate
from tamis.errors import (
    DuplicateSubscription,
    InvalidSubscription,
    SchemaViolation,
    UnknownSubscription,
)
from tamis.language import FALSE, TRUE, Filter, to_json
from tamis.language.tree import (
    Equals,
    InRange,
    Missing,
    Near,
    Not,
    NotEquals,
    Prefix,
    Present,
    Within,
    all_of,
    any_of,
    is_in,
)
from tamis.model.event_arrow import flat_columns
from tamis.values import as_attributes
from tests.property import strategies as some

# Four names only: filters and events meet more often than over all the names of ``strategies``.
ATTRIBUTES = ("a", "b", "c.d", "where")
names = st.sampled_from(ATTRIBUTES)
literals, ranges, values = some.literals(), some.ranges(), some.values()
places = st.sampled_from([point for point in some.POINTS if point.is_place])
distances = st.sampled_from([0, 1.0, 15_724.0, 111_195.0, 200_000.0, 2e7])


predicates = st.one_of(
    st.builds(Equals, names, literals),
    st.builds(NotEquals, names, literals),
    st.builds(is_in, names, st.lists(literals, min_size=1, max_size=4)),
    st.builds(InRange, names, ranges),
    st.builds(InRange, names, ranges),
    st.builds(Prefix, names, some.texts()),
    st.builds(Present, names),
    st.builds(Missing, names),
    st.builds(Within, names, st.sampled_from(some.POLYGONS)),
    st.builds(lambda box, name: replace(box, attribute=name), some.boxes(), names),
    st.builds(Near, names, places, distances, st.booleans()),
)
filters = st.recursive(
    st.one_of(predicates, predicates, predicates, st.sampled_from([TRUE, FALSE])),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=1, max_size=4).map(all_of),
        st.lists(inner, min_size=1, max_size=3).map(any_of),
    ),
    max_leaves=8,
)
held = values | st.sampled_from([None, math.nan])
events = st.dictionaries(
    names, st.one_of(held, held, st.lists(held, max_size=3)), max_size=len(ATTRIBUTES)
)
priorities = st.integers(0, 9)


def expected(subscriptions: dict[str, Subscription], event: dict[str, Any]) -> set[str]:
    return {id for id, one in subscriptions.items() if evaluate(one.condition, event)}


def check(found: list[str], subscriptions: dict[str, Subscription], event: dict[str, Any]) -> None:
    assert len(found) == len(set(found)), "an id came twice"
    assert set(found) == expected(subscriptions, event)
    levels = [subscriptions[id].priority for id in found]
    assert levels == sorted(levels), "not in order of priority"


class IndexMachine(RuleBasedStateMachine):
    """An index next to a dict of subscriptions and the oracle."""

    ids: Bundle[str] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.index = Index()
        self.saved: dict[str, Subscription] = {}
        self.n_made = 0

    def make(self, filter: Filter, priority: int) -> Subscription:
        self.n_made += 1
        return Subscription(f"s{self.n_made}", filter, priority)

    @rule(target=ids, filter=filters, priority=priorities)
    def add(self, filter: Filter, priority: int) -> str:
        one = self.make(filter, priority)
        self.index.add(one)
        self.saved[one.id] = one
        return one.id

    @rule(given=st.lists(st.tuples(filters, priorities), max_size=6), as_table=st.booleans())
    def add_many(self, given: list[tuple[Filter, int]], as_table: bool) -> None:
        made = [self.make(*one) for one in given]
        self.index.add_many(table_of(made) if as_table else iter(made))
        self.saved.update({one.id: one for one in made})

    @rule(id=ids, filter=filters)
    def add_taken(self, id: str, filter: Filter) -> None:
        if id not in self.saved:
            return
        with pytest.raises(DuplicateSubscription):
            self.index.add_many([self.make(TRUE, 0), Subscription(id, filter)])

    @rule(filter=filters)
    def add_bad(self, filter: Filter) -> None:
        good, twice = self.make(filter, 0), self.make(TRUE, 0)
        with pytest.raises(InvalidSubscription):
            self.index.add_many([good, "not one"])  # type: ignore[list-item]
        with pytest.raises(DuplicateSubscription):
            self.index.add_many([good, twice, twice])

    @rule(id=consumes(ids))
    def remove(self, id: str) -> None:
        self.index.remove(id)
        del self.saved[id]
        with pytest.raises(UnknownSubscription):
            self.index.remove(id)

    @rule(id=ids, filter=filters, priority=priorities)
    def update(self, id: str, filter: Filter, priority: int) -> None:
        one = Subscription(id, filter, priority)
        self.index.update(one)
        self.saved[id] = one

    @rule(event=events)
    def match(self, event: dict[str, Any]) -> None:
        check(self.index.match(event), self.saved, event)
        check(self.index.match(Event("e", event)), self.saved, event)
        check(list(self.index.match_iter(event)), self.saved, event)

    @rule(batch=st.lists(events, max_size=4))
    def match_batch(self, batch: list[dict[str, Any]]) -> None:
        matches = self.index.match_batch(batch)
        assert len(matches) == len(batch)
        for found, event in zip(matches, batch, strict=True):
            check(found, self.saved, event)
        levels = [self.saved[id].priority for id in matches.ids]
        assert list(matches.priorities) == levels

    @rule()
    def save_and_open(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "snapshot"
            self.index.save(path)
            self.index = Index.open(path)
            check(self.index.match({}), self.saved, {})

    @invariant()
    def size(self) -> None:
        assert len(self.index) == len(self.saved)
        assert all(id in self.index for id in self.saved)


def table_of(subscriptions: list[Subscription]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([one.id for one in subscriptions], pa.string()),
            "filter": pa.array(
                [json.dumps(to_json(one.filter)) if one.filter not in (TRUE, FALSE)
                 else str(one.filter) for one in subscriptions], pa.string()
            ),
            "priority": pa.array([one.priority for one in subscriptions], pa.int32()),
        }
    )  # fmt: skip


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)

TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(QUICK, max_examples=20, stateful_step_count=20)


@settings(QUICK, max_examples=30)
@given(
    st.lists(st.tuples(filters | some.filters(), priorities), min_size=20, max_size=50),
    st.lists(events | some.events(), min_size=5, max_size=10),
)
def test_many_at_once(
    given: list[tuple[Filter, int]], batch: list[dict[str, Any]]
) -> None:  # fmt: skip
    saved = {f"s{n}": Subscription(f"s{n}", *one) for n, one in enumerate(given)}
    index = Index()
    index.add_many(saved.values())
    for found, event in zip(index.match_batch(batch), batch, strict=True):
        check(found, saved, event)


# One kind an attribute, so that a batch is columns; more of points, which are struct columns.
one_kind = [
    st.integers(-(2**60), 2**60) | st.floats(allow_nan=False),
    some.texts() | st.sampled_from(["1", "9007199254740993", "2026-01-01T00:00:00Z"]),
    st.booleans(),
    st.sampled_from(some.POINTS),
    st.sampled_from(some.POINTS),
]


@settings(QUICK, max_examples=60)
@given(
    st.data(),
    st.lists(st.tuples(filters, priorities), min_size=5, max_size=20),
    st.lists(st.sampled_from(one_kind), min_size=4, max_size=4),
)
def test_flat_columns_are_matched_as_their_events(
    data: st.DataObject, given: list[tuple[Filter, int]], kinds: list[st.SearchStrategy[Any]]
) -> None:
    saved = {f"s{n}": Subscription(f"s{n}", *one) for n, one in enumerate(given)}
    index = Index()
    index.add_many(saved.values())
    maybe = {name: kind | st.none() for name, kind in zip(ATTRIBUTES, kinds, strict=True)}
    batch = data.draw(st.lists(st.fixed_dictionaries(maybe), min_size=1, max_size=8))
    columns = flat_columns([as_attributes(event) for event in batch])
    if columns:
        for found, event in zip(index.match_batch(columns), batch, strict=True):
            check(found, saved, event)


@settings(QUICK, max_examples=30)
@given(
    st.lists(st.tuples(filters, priorities), min_size=5, max_size=20),
    st.dictionaries(names, values, max_size=4),
)
def test_with_a_schema_that_promises_single_values(
    given: list[tuple[Filter, int]], event: dict[str, Any]
) -> None:
    saved: dict[str, Subscription] = {}
    index = Index(schema={"a": "number", "b": "range"})
    for n, one in enumerate(given):
        subscription = Subscription(f"s{n}", *one)
        try:
            index.add(subscription)
        except SchemaViolation:
            continue
        saved[subscription.id] = subscription
    if isinstance(event.get("a"), Range):
        with pytest.raises(SchemaViolation):
            index.match(event)
        return
    check(index.match(event), saved, event)


BORDERS = [math.nan, -math.inf, 0.0, 0.5, 1.0, 2.0**53, 2.0**53 + 2, math.inf]
INSIDE: list[Any] = [
    None, -0.5, 0, -0.0, 0.5, 1, 1.5, math.inf, -math.inf, 2**53, 2**53 + 1, "0.5", [0, 2], True,
    Range(math.nextafter(1, 0), 1, "()"), Range(0.5, 0.5), Range(2, None),
]  # fmt: skip


@st.composite
def intervals(draw: st.DrawFn) -> Range:
    """What one attribute of a box asks; no borders if it is free."""
    low, high = draw(st.sampled_from(BORDERS)), draw(st.sampled_from(BORDERS))
    made = Range(
        None if math.isnan(low) else low,
        None if math.isnan(high) else high,
        draw(st.sampled_from(some.ENDS)),
    )
    # A box that can hold nothing at all, open at the far infinity, may be refused.
    hopeless = (made.low == math.inf and made.low_open, made.high == -math.inf and made.high_open)
    return Range(0, 1) if any(hopeless) else made


@settings(QUICK, max_examples=30)
@given(
    st.lists(st.tuples(intervals(), intervals(), priorities), min_size=1, max_size=20),
    st.lists(st.tuples(st.sampled_from(INSIDE), st.sampled_from(INSIDE)), max_size=6),
)
def test_boxes_are_ranges(rows: list[tuple[Range, Range, int]], xys: list[tuple[Any, Any]]) -> None:
    def column(name: str, absent: float | None) -> list[list[Any]]:
        asked = [[getattr(x, name), getattr(y, name)] for x, y, _ in rows]
        return [[absent if v is None else v for v in pair] for pair in asked]

    index = Index.from_boxes(
        ["x", "y"],
        column("low", math.nan),
        column("high", math.nan),
        low_open=column("low_open", None),
        high_open=column("high_open", None),
        priority=[priority for *_, priority in rows],
    )
    saved = {}
    for n, (x, y, priority) in enumerate(rows):
        asked = [InRange(a, r) for a, r in (("x", x), ("y", y)) if r != Range()]
        saved[str(n)] = Subscription(str(n), all_of(asked), priority)
    for x, y in xys:
        for id, one in saved.items():
            event = {"x": x, "y": y}
            assert evaluate(index[id].condition, event) == evaluate(one.condition, event)
        check(index.match({"x": x, "y": y}), saved, {"x": x, "y": y})


@given(
    st.lists(st.tuples(filters, priorities), min_size=1, max_size=24),
    st.lists(events, min_size=8, max_size=16),
    st.integers(0, 24),
)
def test_a_batch_of_events_of_every_kind(
    asked: list[tuple[Filter, int]], given_events: list[dict[str, Any]], n_built: int
) -> None:
    """Some subscriptions in blocks and the others in the head; events plain and not."""
    saved = {
        f"s{number}": Subscription(f"s{number}", filter, priority)
        for number, (filter, priority) in enumerate(asked)
    }
    index = Index()
    index.add_many(list(saved.values())[:n_built])
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder) / "index")
        index = Index.open(Path(folder) / "index")
        index.add_many(list(saved.values())[n_built:])
        batch = [Event(f"e{number}", event) for number, event in enumerate(given_events)]
        for event, found in zip(batch, index.match_batch(batch), strict=True):
            assert sorted(found) == sorted(expected(saved, dict(event.attributes)))
            levels = [saved[id].priority for id in found]
            assert levels == sorted(levels)
        for event, found in zip(given_events, index.match_batch(given_events), strict=True):
            wanted = sorted(expected(saved, dict(Event("e", event).attributes)))
            assert sorted(found) == sorted(index.match(event)) == wanted
