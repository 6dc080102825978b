"""Hypothesis strategies for values, events (as dicts) and filters.

Filters and events draw from one small pool of names and values, so that events often hit the
bounds of a filter: equal numbers of different types, neighbours above 2^53, corners and edges.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from tamis.language import FALSE, TRUE, Filter, col
from tamis.language.tree import (
    Equals,
    InBox,
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
from tamis.values import Point, Polygon, Range

NAMES = ["x", "y", "car.mark", "Ünï code", 'quo"te', "select", "year_from", "where", "point"]

NUMBERS: list[int | float] = [
    0, -0.0, 1, 1.0, 5, 5.5, -3, 2**53, 2**53 + 1, float(2**53), float(2**53 + 2),
    2**63 - 1, -(2**63), float(2**63), math.inf, -math.inf, 5e-324, 1e308,
]  # fmt: skip
TIMESTAMPS = [
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]
TEXTS = [
    "", "5", "5.0", "abc", "ab", "a", "a%", "a_b", "a!", "a\\", "O'Neill", "true", "'5'", "é",
    "e\u0301", "🚗", "2026-01-01", "2026-01-01T12:00:00.000001Z", "1e400", "NULL", "-- x", "\x00",
]  # fmt: skip
# Corners, edges, holes and outsides of the polygons below, and both sides of the antimeridian.
POINTS = [
    Point(x, y)
    for x, y in [(0, 0), (9, 0), (4.5, 9), (3, 4), (4, 4), (6, 6), (1, 1), (10, 1), (180, 0),
                 (-180, 0), (-179.5, 1), (0, 90), (200, 100), (0.1, 0.2), (-0.0, 0)]
]  # fmt: skip
POLYGONS = [
    Polygon([(0, 0), (9, 0), (9, 9), (0, 9)]),
    Polygon([(0, 0), (9, 0), (9, 9), (0, 9)], [[(3, 3), (6, 3), (6, 6), (3, 6)]]),
    Polygon([(0.1, 0.2), (1e-7, 3.3), (-2.5, 1 / 3)]),
    Polygon.from_wkt("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)), ((4 4, 6 4, 6 6, 4 6, 4 4)))"),
]
ENDS = ["[]", "[)", "(]", "()"]


def names() -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES)


def numbers() -> st.SearchStrategy[int | float]:
    return st.sampled_from(NUMBERS)


def timestamps() -> st.SearchStrategy[datetime]:
    return st.sampled_from(TIMESTAMPS)


def texts() -> st.SearchStrategy[str]:
    return st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=6)


def bounds() -> st.SearchStrategy[Any]:
    return numbers() | timestamps()


@st.composite
def ranges(draw: st.DrawFn, *, allow_empty: bool = True, both: bool = False) -> Range:
    """Ranges of numbers or timestamps; at least one border unless ``both`` are asked for."""
    pool = numbers() if draw(st.integers(0, 3)) else timestamps()
    low, high = draw(pool), draw(pool)
    if not both:
        low, high = draw(st.sampled_from([(low, high), (low, high), (low, None), (None, high)]))
    made = Range(low, high, draw(st.sampled_from(ENDS)))
    if made.is_empty and not allow_empty:
        return Range(made.low, made.low)
    return made


def literals() -> st.SearchStrategy[Any]:
    """What a filter may compare for equality."""
    return st.one_of(
        numbers(), numbers(), texts(), st.booleans(), timestamps(), st.sampled_from(POINTS)
    )


def values() -> st.SearchStrategy[Any]:
    """What an attribute of an event may hold."""
    return st.one_of(literals(), literals(), ranges(allow_empty=False), st.sampled_from(POLYGONS))


def scalars() -> st.SearchStrategy[Any]:
    """Values that are not a Range."""
    return literals() | st.sampled_from(POLYGONS)


def events(value: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Attributes as a dict: missing, with one value, or with several."""
    one = values() if value is None else value
    held = st.one_of(one, one, st.lists(one, max_size=3), st.sampled_from([None, math.nan]))
    return st.dictionaries(names(), held, max_size=5)


def single_events() -> st.SearchStrategy[dict[str, Any]]:
    """Events with one value an attribute, none of them a Range."""
    return st.dictionaries(names(), scalars(), max_size=5)


@st.composite
def boxes(draw: st.DrawFn) -> Filter:
    one, other = draw(st.sampled_from(POINTS)), draw(st.sampled_from(POINTS))
    lons = [one.lon, other.lon]
    if max(map(abs, lons)) > 180:
        lons.sort()
    lats = sorted([one.lat, other.lat])
    return InBox(draw(names()), lons[0], lats[0], lons[1], lats[1])


def predicates() -> st.SearchStrategy[Filter]:
    places = st.sampled_from([point for point in POINTS if point.is_place])
    metres = st.sampled_from([0, 1, 15_724.0, 111_195, 1e7, 20_015_115])
    return st.one_of(
        st.builds(Equals, names(), literals()),
        st.builds(NotEquals, names(), literals()),
        st.builds(is_in, names(), st.lists(literals(), min_size=1, max_size=4)),
        st.builds(InRange, names(), ranges()),
        st.builds(InRange, names(), ranges(both=True)),
        st.builds(Prefix, names(), texts()),
        st.builds(Present, names()),
        st.builds(Missing, names()),
        st.builds(Within, names(), st.sampled_from(POLYGONS)),
        boxes(),
        st.builds(Near, names(), places, metres, st.booleans()),
        st.builds(lambda name: col(name).is_true(), names()),
    )


def filters(max_leaves: int = 8) -> st.SearchStrategy[Filter]:
    """Trees of And, Or and Not over predicates, TRUE and FALSE."""
    leaves = st.one_of(predicates(), predicates(), predicates(), st.sampled_from([TRUE, FALSE]))
    return st.recursive(
        leaves,
        lambda part: st.one_of(
            st.builds(all_of, st.lists(part, min_size=2, max_size=3)),
            st.builds(any_of, st.lists(part, min_size=2, max_size=3)),
            st.builds(Not, part),
        ),
        max_leaves=max_leaves,
    )
