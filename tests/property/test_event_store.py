"""The store says what the oracle says, whatever is inserted, deleted, expired, saved and opened."""

from __future__ import annotations

import math
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tamis import Event, Point, Subscription, evaluate
from tamis.errors import DuplicateEvent, InvalidEvent, InvalidSubscription, UnknownEvent
from tamis.events import EventStore, collection, store
from tamis.language import TRUE
from tamis.model import events_to_arrow
from tamis.values import distance_m
from tests.property import strategies as some
from tests.property.test_index import filters

START = datetime(2026, 1, 1, tzinfo=UTC)
names = st.sampled_from(["a", "b", "c.d", "where", "location"])
held = some.values() | st.sampled_from([None, math.nan])
texts = st.lists(st.sampled_from(some.TEXTS), min_size=3, max_size=5)  # some between others
several = st.lists(held, max_size=3) | texts
attributes = st.dictionaries(names, st.one_of(held, held, several), max_size=5)
minutes = st.integers(0, 9)
moments = minutes.map(lambda m: START + timedelta(minutes=m))
places = st.sampled_from([point for point in some.POINTS if point.is_place])


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """The arguments of an event but its id."""
    made = draw(attributes)
    if "location" not in made and draw(st.booleans()):
        place: Point | None = draw(st.sampled_from(some.POINTS))
    else:
        place = None
    return {
        "attributes": made,
        "payload": draw(st.sampled_from([b"", b"", b"\x00\xff"])),
        "time": draw(st.none() | moments),
        "until": draw(st.none() | moments),
        "location": place,
    }


@st.composite
def subscriptions(draw: st.DrawFn) -> Subscription:
    where = draw(st.none() | places)
    radius = None if where is None else draw(st.sampled_from([0, 1.0, 111_195.0, 2e6, 2.1e7]))
    return Subscription("s", draw(filters | st.just(TRUE)), location=where, radius_m=radius)


class Kept:
    """An event with what the store must remember of its arrival."""

    def __init__(self, event: Event, arrival: datetime, number: int) -> None:
        self.event, self.newness = event, (event.time or arrival, number)

    def distance(self, center: Point) -> float:
        held = self.event.attributes["location"]
        return min(
            distance_m(center, one) for one in held if isinstance(one, Point) and one.is_place
        )


class StoreMachine(RuleBasedStateMachine):
    """A store next to a dict of events and the oracle."""

    def __init__(self) -> None:
        super().__init__()
        self.store = EventStore()
        self.kept: dict[str, Kept] = {}
        self.clock = START
        self.n_made = 0

    def living(self, now: datetime) -> dict[str, Kept]:
        now = max(now, self.clock)
        return {
            id: one
            for id, one in self.kept.items()
            if one.event.until is None or now < one.event.until
        }

    def keep(self, event: Event, now: datetime) -> None:
        self.n_made += 1
        self.kept[event.id] = Kept(event, now, self.n_made)

    def new_id(self) -> str:
        return f"é{self.n_made + len(self.kept)}-{self.n_made}"

    @rule(given=events(), now=moments)
    def insert(self, given: dict[str, Any], now: datetime) -> None:
        event = Event(self.new_id(), **given)
        self.store.insert(event, now)
        self.clock = max(self.clock, now)
        self.keep(event, now)

    @rule(given=st.lists(events(), max_size=6), now=moments, as_table=st.booleans())
    def insert_many(self, given: list[dict[str, Any]], now: datetime, as_table: bool) -> None:
        made = [Event(f"{self.new_id()}.{n}", **one) for n, one in enumerate(given)]
        many: Any = iter(made)
        if as_table:
            with suppress(InvalidEvent):  # an attribute of two kinds
                many = events_to_arrow(made)
        self.store.insert_many(many, now)
        self.clock = max(self.clock, now)
        for event in made:
            self.keep(event, now)

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), given=events(), now=moments)
    def insert_taken(self, data: st.DataObject, given: dict[str, Any], now: datetime) -> None:
        """A taken id is refused, together with all that came with it; an expired one is free."""
        event = Event(data.draw(st.sampled_from(sorted(self.kept))), **given)
        if event.id in self.living(now):
            with pytest.raises(DuplicateEvent):
                self.store.insert_many([Event("other", {}), event], now)
            assert "other" not in self.store
            return
        self.store.insert(event, now)
        self.clock = max(self.clock, now)
        self.keep(event, now)

    @rule(given=events())
    def insert_bad(self, given: dict[str, Any]) -> None:
        twice = Event("twice", **given)
        with pytest.raises(DuplicateEvent):
            self.store.insert_many([twice, twice], START)
        with pytest.raises(InvalidEvent):
            self.store.insert_many([twice, {"a": 1}], START)  # type: ignore[list-item]

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.kept)))
        if id in self.living(self.clock):
            self.store.delete(id)
            del self.kept[id]
        with pytest.raises(UnknownEvent):
            self.store.delete(id)

    @rule(now=moments, limit=st.sampled_from([0, 1, 3, 10_000]))
    def expire(self, now: datetime, limit: int) -> None:
        before = len(self.store)
        n_dropped = self.store.expire(now, limit)
        self.clock = max(self.clock, now)
        assert 0 <= n_dropped <= limit
        assert len(self.store) == before - n_dropped
        if limit == 10_000:
            assert len(self.store) == len(self.living(self.clock))
            self.kept = self.living(self.clock)

    @rule(
        asked=st.lists(subscriptions(), min_size=1, max_size=4),
        now=moments,
        order=st.sampled_from(["newest", "nearest"]),
        limit=st.sampled_from([None, None, 0, 2]),
    )
    def match(
        self, asked: list[Subscription], now: datetime, order: str, limit: int | None
    ) -> None:
        if order == "nearest" and any(one.location is None for one in asked):
            with pytest.raises(InvalidSubscription):
                self.store.match_batch(asked, now, order, limit)
            asked = [one for one in asked if one.location is not None]
        living = self.living(now)
        found = self.store.match_batch(asked, now, order, limit)
        assert found == [self.expected(one, living, order)[:limit] for one in asked]

    @rule()
    def save_and_open(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "store"
            self.store.save(path)
            self.store = EventStore.open(path)
            everything = Subscription("s", TRUE)
            found = self.store.match(everything, START)
            assert found == self.expected(everything, self.living(START), "newest")

    def expected(self, one: Subscription, living: dict[str, Kept], order: str) -> list[str]:
        ids = [id for id, kept in living.items() if evaluate(one.condition, kept.event)]
        ids.sort(key=lambda id: living[id].newness, reverse=True)
        if order == "nearest":
            assert one.location is not None
            ids.sort(key=lambda id: living[id].distance(one.location))  # type: ignore[arg-type]
        return ids

    @invariant()
    def holds_what_is_valid(self) -> None:
        living = self.living(self.clock)
        assert len(living) <= len(self.store)
        for id, kept in self.kept.items():
            assert (id in self.store) == (id in living)
            if id in living:
                same(self.store[id], kept.event)


def same(held: Event, given: Event) -> None:
    assert held == given
    for name, values in given.attributes.items():
        assert [type(v) for v in held.attributes[name]] == [type(v) for v in values]


class SmallPartsMachine(StoreMachine):
    """The same where parts are so small that they are sealed and merged all the time."""

    def __init__(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(collection, "HEAD_EVENTS", 4)
        self.patch.setattr(collection, "MANY_DEAD", 2)
        self.patch.setattr(store, "MIN_TABLE", 1)
        super().__init__()

    def teardown(self) -> None:
        self.patch.undo()


class MergedBesideMachine(SmallPartsMachine):
    """The same where every merge is done by a thread, which ends whenever it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.patch.setattr(collection, "MAX_AT_ONCE", 0)

    @rule()
    def wait(self) -> None:
        self.store._collection.wait_for_merging()

    def teardown(self) -> None:
        self.wait()
        super().teardown()

    @rule(now=moments, limit=st.sampled_from([0, 1, 3, 10_000]))
    def expire(self, now: datetime, limit: int) -> None:
        self.wait()  # merging drops what has expired, and would be counted
        super().expire(now, limit)


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(QUICK, max_examples=25, stateful_step_count=20)
TestSmallPartsMachine = SmallPartsMachine.TestCase
TestSmallPartsMachine.settings = settings(QUICK, max_examples=30, stateful_step_count=25)
TestMergedBesideMachine = MergedBesideMachine.TestCase
TestMergedBesideMachine.settings = settings(QUICK, max_examples=30, stateful_step_count=25)
