"""What the index reads for itself is what the values say, which the oracle uses."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis.index.revision import check_of
from tamis.language.tree import InRange
from tamis.slots.encoding import micros_of
from tamis.slots.polygons import Inside
from tamis.slots.spelling import micros_spelt, number_spelt
from tamis.values import Point, Polygon, Range, covers, distance_m, numeric_text, parse_timestamp

PIECES = ["0", "1", "7", "9", "00", "12", "31", "59", "60", "23", "24", "99", "2024", "02", "29",
          "-", "+", ".", "e", "E", ":", "T", "t", " ", "Z", "z", "_", "x", "٣", "inf", "nan", "\n",
          "9223372036854775807", "9223372036854775808", "2016-02-29", "T23:59", ":59", ".5",
          "+23:59", "-01:00", "0001-01-01", "9999-12-31"]  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
    st.integers().map(str),
    st.floats(allow_nan=False).map(repr),
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.from_regex(
        r"\A[0-2]\d{3}-[01]\d-[0-3]\d[Tt ][0-2]\d:[0-6]\d(:[0-6]\d(\.\d{1,7})?)?"
        r"([Zz]|[+-][0-2]\d:[0-6]\d)?\Z"
    ),
    st.text(max_size=12),
)


@given(texts)
@example("-")
@example("")
@example("1e5e5")
@example("0" * 64)
@example("1" * 65)
def test_numbers(text: str) -> None:
    ours, theirs = number_spelt(text), numeric_text(text)
    assert (type(ours), repr(ours)) == (type(theirs), repr(theirs))


@given(texts)
@example("0001-01-01T00:00:00+00:01")
@example("9999-12-31T23:59:59.999999-00:01")
@example("2026-01-02T")
@example("2026-01-02T03:04+")
@example("2026-01-02T+03:04")
def test_timestamps(text: str) -> None:
    moment = parse_timestamp(text)
    assert micros_spelt(text) == (None if moment is None else micros_of(moment))


BORDERS = [None, -math.inf, -1, 0, 0.5, 1, 2**53, 2**53 + 1, float(2**53), 1e300, math.inf]
ranges = st.builds(
    Range,
    st.sampled_from(BORDERS),
    st.sampled_from(BORDERS),
    st.sampled_from(["[]", "[)", "(]", "()"]),
)
values = st.one_of(st.sampled_from(BORDERS[1:]), ranges.filter(lambda held: not held.is_empty))


@given(ranges.filter(lambda wanted: wanted != Range()), values)
def test_ranges(wanted: Range, held: object) -> None:
    assert check_of(InRange("x", wanted))({"x": (held,)}) == covers(wanted, held)  # type: ignore[dict-item,arg-type]


SHAPE = Polygon.from_wkt(
    "MULTIPOLYGON (((0 0, 9 1, 7 8, 3 5, 1 9, 0 0), (1 2, 2 2, 2 3, 1 2)), "
    "((20 0, 21 0, 20 1, 20 0)))"
)
EDGES = [edge for part in SHAPE.rings for ring in part for edge in itertools.pairwise(ring)]
near_the_border = st.builds(
    lambda edge, share, off: Point(
        edge[0][0] + share * (edge[1][0] - edge[0][0]) + off,
        edge[0][1] + share * (edge[1][1] - edge[0][1]),
    ),
    st.sampled_from(EDGES),
    st.sampled_from([0, 0.25, 0.5, 0.75, 1]) | st.floats(0, 1),
    st.sampled_from([0, 1e-16, -1e-16, 1e-12, -1e-12, 0.1, -0.1]),
)


@given(near_the_border)
def test_polygons(point: Point) -> None:
    assert Inside(SHAPE)(point) == SHAPE.contains(point)


@given(*[st.floats(-180, 180), st.floats(-90, 90)] * 2)
def test_distance_is_that_of_another_formula(
    lon1: float, lat1: float, lon2: float, lat2: float
) -> None:
    """The angle between two vectors by their products, in metres on the same sphere."""
    a, b = ((math.radians(lon), math.radians(lat)) for lon, lat in ((lon1, lat1), (lon2, lat2)))
    (x1, y1, z1), (x2, y2, z2) = (
        (math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat))
        for lon, lat in (a, b)
    )
    cross = math.hypot(y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2)
    dot = x1 * x2 + y1 * y2 + z1 * z2
    metres = 6_371_008.8 * math.atan2(cross, dot)
    # Near the antipode the haversine's arcsine is good to about a tenth of a metre.
    assert distance_m(Point(lon1, lat1), Point(lon2, lat2)) == pytest.approx(metres, abs=0.3)
