"""Subscriptions that move match as the oracle says, whatever happens to them and wherever."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tamis import Index, Point, Range, Subscription, evaluate
from tamis.errors import InvalidSubscription, InvalidValue, UnknownSubscription
from tamis.index import movers, moving
from tamis.language import FALSE, TRUE, Filter
from tamis.language.tree import (
    Equals,
    InBox,
    InRange,
    Missing,
    Near,
    Not,
    NotEquals,
    Within,
    all_of,
    any_of,
    is_in,
)
from tamis.values import Polygon, distance_m
from tamis.values.shapes import box_around
from tests.property import strategies as some

DEGREE_M = 111_195.07973463
# Both sides of the antimeridian, the poles and what lies next to them, a city.
LONS = [-180.0, -179.9995, -90.0, -1e-3, 0.0, 1e-3, 13.4, 13.401, 13.41, 179.999, 180.0]
LATS = [-90.0, -89.9999, -89.0, 0.0, 1e-3, 52.5, 52.501, 52.51, 89.0, 89.9995, 90.0]
RADII = [0.0, 1.0, 70.0, 111.19507973463, 500.0, 1_000.0, 15_000.0, DEGREE_M, 2e6, 1e7, 2.1e7]

points = st.builds(Point, st.sampled_from(LONS), st.sampled_from(LATS)) | st.builds(
    Point, st.floats(-180, 180), st.floats(-90, 90)
)
radii = st.sampled_from(RADII) | st.floats(0, 2.1e7)
areas = st.sampled_from(["circle", "square"])
numbers = st.sampled_from([0, 1, 1.5, 2, 3.0, 2**53 + 1, math.inf])
texts = st.sampled_from(["x", "y", "é"])
names = st.sampled_from(["a", "b"])
POLYGONS = [Polygon([(13, 52), (14, 52), (13.4, 53)]), Polygon([(-1, -1), (1, -1), (0, 90)])]


def _range(low: float, high: float, ends: str) -> Range:
    return Range(low, high, ends) if low < high else Range(low, None)


ranges = st.builds(_range, numbers, numbers, st.sampled_from(some.ENDS))
predicates = st.one_of(
    st.builds(InRange, names, ranges),
    st.builds(InRange, names, ranges),
    st.builds(Equals, names, numbers | texts),
    st.builds(NotEquals, names, numbers | texts),
    st.builds(is_in, names, st.lists(numbers | texts, min_size=1, max_size=3)),
    st.builds(Missing, names),
    st.builds(Within, st.just("location"), st.sampled_from(POLYGONS)),
    st.builds(Near, st.just("location"), points, radii, st.booleans()),
    st.builds(Equals, st.just("location"), points),
    st.just(InBox("location", 13.0, 52.0, 13.405, 53.0)),
    st.just(InBox("location", 179.0, -90.0, -179.0, 90.0)),
)
filters = st.recursive(
    st.one_of(predicates, st.sampled_from([TRUE, TRUE, FALSE])),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=1, max_size=3).map(all_of),
        st.lists(inner, min_size=1, max_size=2).map(any_of),
    ),
    max_leaves=5,
)
held = numbers | texts | st.sampled_from([None, math.nan, Range(1, 2), "1.5"])


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    event = draw(st.dictionaries(names, st.one_of(held, held, st.lists(held, max_size=2))))
    place = draw(
        st.one_of(points, points, st.lists(points, min_size=1, max_size=3), held)
        | st.just(Point(200, 100))
    )
    return {**event, "location": place}


@contextmanager
def small_deltas(wide_m: float) -> Iterator[None]:
    """Merge every few changes; let areas be wide from some radius on."""
    before = moving.MIN_DELTA, movers.WIDE_M
    moving.MIN_DELTA, movers.WIDE_M = 4, wide_m
    try:
        yield
    finally:
        moving.MIN_DELTA, movers.WIDE_M = before


class MovingMachine(RuleBasedStateMachine):
    """An index next to a dict of subscriptions and the oracle."""

    wide_m = movers.WIDE_M

    def __init__(self) -> None:
        super().__init__()
        self.small = small_deltas(self.wide_m)
        self.small.__enter__()
        self.index = Index()
        self.saved: dict[str, Subscription] = {}

    def teardown(self) -> None:
        self.index._engine.wait_for_merging()
        self.small.__exit__(None, None, None)

    @rule(
        n=st.integers(0, 12), filter=filters, place=points, radius=radii, area=areas,
        priority=st.integers(0, 9), has_place=st.sampled_from([True, True, True, False]),
    )  # fmt: skip
    def add_or_update(
        self, n: int, filter: Filter, place: Point, radius: float, area: str, priority: int,
        has_place: bool,
    ) -> None:  # fmt: skip
        where = {"location": place, "radius_m": radius, "area": area} if has_place else {}
        one = Subscription(f"s{n}", filter, priority, **where)  # type: ignore[arg-type]
        change = self.index.update if one.id in self.saved else self.index.add
        change(one)
        self.saved[one.id] = one

    @rule(n=st.integers(0, 12), place=points)
    def move(self, n: int, place: Point) -> None:
        id = f"s{n}"
        one = self.saved.get(id)
        if one is None:
            with pytest.raises(UnknownSubscription):
                self.index.move(id, place.lon, place.lat)
        elif one.location is None:
            with pytest.raises(InvalidSubscription, match="no location"):
                self.index.move(id, place.lon, place.lat)
        else:
            self.index.move(id, place.lon, place.lat)
            self.saved[id] = replace_place(one, place)

    @rule(to=st.dictionaries(st.integers(0, 12), points, max_size=6))
    def move_many(self, to: dict[int, Point]) -> None:
        ids = [f"s{n}" for n in to]
        lons, lats = [p.lon for p in to.values()], [p.lat for p in to.values()]
        if any(id not in self.saved or self.saved[id].location is None for id in ids):
            with pytest.raises((UnknownSubscription, InvalidSubscription)):
                self.index.move_many(ids, lons, lats)
            return
        self.index.move_many(ids, lons, lats)
        for id, place in zip(ids, to.values(), strict=True):
            self.saved[id] = replace_place(self.saved[id], place)

    @rule(n=st.integers(0, 12))
    def remove(self, n: int) -> None:
        if self.saved.pop(f"s{n}", None) is not None:
            self.index.remove(f"s{n}")

    @rule(verify=st.booleans())
    def save_and_open(self, verify: bool) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.index.save(Path(folder) / "index")
            self.index._engine.wait_for_merging()
            self.index = Index.open(Path(folder) / "index", verify=verify)
            assert {id: self.index[id] for id in self.saved} == self.saved

    @rule(event=events())
    def match(self, event: dict[str, Any]) -> None:
        wanted = {id for id, one in self.saved.items() if evaluate(one.condition, event)}
        for found in (self.index.match(event), list(self.index.match_iter(event))):
            assert len(found) == len(set(found)), "an id came twice"
            assert set(found) == wanted
            levels = [self.saved[id].priority for id in found]
            assert levels == sorted(levels)

    @rule(many=st.lists(events(), min_size=8, max_size=12))
    def match_batch(self, many: list[dict[str, Any]]) -> None:
        for event, found in zip(many, self.index.match_batch(many), strict=True):
            wanted = [id for id, one in self.saved.items() if evaluate(one.condition, event)]
            assert sorted(found) == sorted(wanted)

    @rule()
    def says_who_moves(self) -> None:
        n_moving = sum(
            one.radius_m is not None and one.radius_m <= self.wide_m for one in self.saved.values()
        )
        assert self.index.stats()["n_moving"] == n_moving
        assert len(self.index) == len(self.saved)

    @rule(n=st.integers(0, 12), event=events())
    def explain(self, n: int, event: dict[str, Any]) -> None:
        if one := self.saved.get(f"s{n}"):
            assert self.index[one.id] == one
            said = self.index.explain(one.id, event)
            assert said.held == evaluate(one.condition, event)


def replace_place(one: Subscription, place: Point) -> Subscription:
    return Subscription(
        one.id, one.filter, one.priority, location=place, radius_m=one.radius_m, area=one.area
    )


class AllByPlaceMachine(MovingMachine):
    """The same where nobody's area is too wide to be found by it."""

    wide_m = math.inf


TestMoving = MovingMachine.TestCase
TestMoving.settings = settings(max_examples=40, stateful_step_count=40)
TestAllByPlace = AllByPlaceMachine.TestCase
TestAllByPlace.settings = settings(max_examples=40, stateful_step_count=40)


near_radii = radii.filter(lambda radius: radius <= movers.WIDE_M) | st.floats(0, movers.WIDE_M)


@given(points, near_radii, st.floats(-1e-9, 1e-9), areas, st.floats(0, 2 * math.pi))
@settings(max_examples=400)
def test_borders_are_as_the_oracle_has_them(
    center: Point, radius: float, off: float, area: str, turn: float
) -> None:
    """Places on the border of an area, a little off it, and a little off in both directions."""
    index = Index()
    assert radius <= movers.WIDE_M
    one = Subscription("s", TRUE, location=center, radius_m=radius, area=area)
    index.add(Subscription("s", TRUE, location=(0, 0), radius_m=radius, area=area))
    index.move("s", center.lon, center.lat)
    lon1, lat1, lon2, lat2 = box_around(center, radius)
    reach = math.degrees(min(radius, 2e7) / 6_371_008.8)
    places = [
        (lon1 + off, center.lat), (lon2 + off, center.lat), (center.lon, lat1 + off),
        (center.lon, lat2 + off), (lon1, lat1), (lon2, lat2 + off), (lon1 + off, lat2),
        (center.lon + reach * math.cos(turn), center.lat + reach * math.sin(turn)),
    ]  # fmt: skip
    for lon, lat in places:
        event = {"location": Point((lon + 180) % 360 - 180, max(-90.0, min(90.0, lat)))}
        assert bool(index.match(event)) == evaluate(one.condition, event)


@given(points, radii, points)
def test_a_square_holds_its_circle_and_no_more_than_its_corners(
    center: Point, radius: float, place: Point
) -> None:
    square = Subscription("s", TRUE, location=center, radius_m=radius, area="square").condition
    metres = distance_m(center, place)
    if metres <= radius * (1 - 1e-9) - 1e-3:
        assert evaluate(square, {"location": place})
    if radius < 1e5 and abs(center.lat) + math.degrees(radius / 6_371_008.8) < 80:
        # Its corners are less than twice as far away as its sides.
        assert metres < 2 * radius + 1e-3 or not evaluate(square, {"location": place})


@given(st.floats() | st.sampled_from([181, "1", None, True]), st.floats())
def test_a_place_that_is_none_is_refused(lon: Any, lat: float) -> None:
    index = Index()
    index.add(Subscription("s", TRUE, location=(1, 2), radius_m=5))
    is_place = not isinstance(lon, str | bool) and lon is not None
    if is_place and abs(lon) <= 180 and abs(lat) <= 90:
        return
    with pytest.raises(InvalidValue):
        index.move("s", lon, lat)
    assert index.match({"location": Point(1, 2)}) == ["s"]
    assert index["s"].location == Point(1, 2)
