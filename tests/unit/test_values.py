"""Values: what is one, what is missing, what is refused, and how each reads back."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tamis.errors import InvalidValue
from tamis.values import (
    Kind,
    Point,
    Polygon,
    Range,
    as_attributes,
    as_timestamp,
    check_value,
    covers,
    distance_m,
    kind_of,
    numeric_text,
    parse_timestamp,
    timestamp_text,
    value_from_json,
    value_to_json,
)


class Colour(StrEnum):
    RED = "red"


class OldColour(str, Enum):  # noqa: UP042  # its str() is its name
    RED = "red"


class Loud(str):
    def __str__(self) -> str:
        return self.upper()


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("a", "a"),
        (True, True),
        (np.bool_(False), False),
        (np.int32(7), 7),
        (np.uint64(2**63 - 1), 2**63 - 1),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.str_("a"), "a"),
        (Decimal("7.0"), 7),
        (Decimal("7.5"), 7.5),
        (Decimal("Infinity"), math.inf),
        (Colour.RED, "red"),
        (OldColour.RED, "red"),
        (Loud("red"), "red"),
        (Level.HIGH, 3),
        (date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)),
        (datetime(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)),
        (np.datetime64("2026-01-02"), datetime(2026, 1, 2, tzinfo=UTC)),
        (pd.Timestamp("2026-01-02", tz="UTC"), datetime(2026, 1, 2, tzinfo=UTC)),
    ],
    ids=repr,
)
def test_objects_that_stand_for_a_value(raw: object, value: object) -> None:
    checked = check_value(raw)
    assert checked == value
    assert type(checked) is type(value)


@pytest.mark.parametrize(
    "raw",
    [None, math.nan, np.float64("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NaT, pd.NA,
     Decimal("NaN"), Decimal("sNaN")],
    ids=repr,
)  # fmt: skip
def test_missing(raw: object) -> None:
    assert check_value(raw) is None
    assert as_attributes({"x": raw, "y": [raw]}) == {}


@pytest.mark.parametrize(
    "raw",
    [2**63, -(2**63) - 1, 10**5000, np.uint64(2**63), Decimal("1e19"), Decimal("1e400"),
     Decimal("1e30"),
     Decimal("1e999999999"), "\ud800", b"x", 1j, [1], {"a": 1}, object(), np.array([1, 2]),
     np.array([[1]]), np.timedelta64(1, "ns"), timedelta(1),
     np.datetime64("2026-01-01T00:00:00.1234567"), np.datetime64(213523982, "D"),
     np.datetime64(2**62, "Y"), np.datetime64("10000-01-01"), pa.MonthDayNano([1, 2, 3]),
     pd.Timestamp(1), datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))],
    ids=lambda raw: type(raw).__name__,
)  # fmt: skip
def test_what_is_no_value_is_refused(raw: object) -> None:
    with pytest.raises(InvalidValue):
        check_value(raw)


def test_kinds() -> None:
    held = ["a", True, 1, 1.5, datetime(2026, 1, 1, tzinfo=UTC), Range(1), Point(0, 0)]
    kinds = [Kind.TEXT, Kind.BOOLEAN, Kind.NUMBER, Kind.NUMBER, Kind.TIMESTAMP, Kind.RANGE]
    assert [kind_of(value) for value in held] == [*kinds, Kind.POINT]
    with pytest.raises(InvalidValue):
        kind_of(object())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("-5", -5), ("0", 0), ("-0", 0), ("5.0", 5.0), ("1e3", 1000.0), ("1E-3", 0.001),
     ("9223372036854775807", 2**63 - 1)],
)  # fmt: skip
def test_numeric_text(text: str, number: float) -> None:
    assert numeric_text(text) == number
    assert type(numeric_text(text)) is type(number)


@pytest.mark.parametrize(
    "text",
    ["", " 5", "5 ", "+5", "05", "5.", ".5", "1_000", "0x5", "inf", "nan", "Infinity", "1e", "٥",
     "5\n", "1e400", "-1e400", "9223372036854775808", "1" * 65, "--5", "5,0"],
)  # fmt: skip
def test_text_that_is_not_numeric(text: str) -> None:
    assert numeric_text(text) is None


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026-01-02", "2026-01-02T00:00:00Z"),
        ("2026-01-02T03:04", "2026-01-02T03:04:00Z"),
        ("2026-01-02t03:04:05z", "2026-01-02T03:04:05Z"),
        ("2026-01-02 03:04:05.5", "2026-01-02T03:04:05.500000Z"),
        ("2026-01-02T03:04:05-01:00", "2026-01-02T04:04:05Z"),
    ],
)
def test_timestamp_text(text: str, iso: str) -> None:
    moment = parse_timestamp(text)
    assert moment is not None
    assert timestamp_text(moment) == iso
    assert parse_timestamp(iso) == moment


@pytest.mark.parametrize(
    "text",
    ["", "2026", "20260102", "2026-1-2", "2026-02-30", "2026-01-02T25:00", "2026-01-02T03:04:60",
     "2026-01-02T03:04:05+0100", "2026-W01-1", "0001-01-01T00:00:00+01:00", "2026-01-02T",
     "2026-01-02T03:04:05.1234567Z", "٢٠٢٦-01-02", "2026-01-02T24:00", "2026-01-02T00:00+01:60"],
)  # fmt: skip
def test_text_that_is_no_timestamp(text: str) -> None:
    assert parse_timestamp(text) is None


def test_timestamps_become_utc() -> None:
    east = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert as_timestamp(east) == datetime(2026, 1, 1, tzinfo=UTC)
    assert as_timestamp(east).utcoffset() == timedelta(0)


# -- ranges


def test_absent_borders_are_closed_so_that_equal_ranges_are_equal() -> None:
    assert Range(high=5, ends="(]") == Range(high=5)
    assert hash(Range(1, None, "[)")) == hash(Range(1))
    assert Range(1, 2) == Range(1.0, 2.0)


@pytest.mark.parametrize(
    "arguments",
    [("a", 1), (1, "a"), (True, 2), (math.nan, 1), (1, 2, "[["), (1, 2, None), (1, 2, ["[]"]),
     (1, datetime(2026, 1, 1)), (2**63, None), (Point(0, 0), None)],
    ids=repr,
)  # fmt: skip
def test_ranges_that_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(InvalidValue):
        Range(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        (Range(1, 3), Range(3, 5), True),
        (Range(1, 3, "[)"), Range(3, 5), False),
        (Range(1, 3), Range(3, 5, "(]"), False),
        (Range(1, 3, "[)"), Range(3, 5, "(]"), False),
        (Range(1, 5, "()"), Range(2, 3), True),
        (Range(5, 1), Range(0, 9), False),
        (Range(3, 3, "[)"), Range(0, 9), False),
        (Range(), Range(), True),
        (Range(), Range(high=datetime(2026, 1, 1)), False),
        (Range(2**53 + 1, 2**53 + 1), Range(float(2**53), float(2**53)), False),
        (Range(math.inf, math.inf), Range(low=5), True),
        (Range(math.inf, None, "(]"), Range(low=5), True),
    ],
    ids=repr,
)
def test_intersection(a: Range, b: Range, shared: bool) -> None:
    assert a.intersects(b) is shared
    assert b.intersects(a) is shared


def test_numpy_numbers_bound_ranges_and_make_points() -> None:
    assert Range(np.int64(1), np.float32(2.5)) == Range(1, 2.5)
    assert Point(np.int32(1), np.float64(2)) == Point(1, 2)


# -- shapes


@pytest.mark.parametrize("pair", [("a", 1), (math.nan, 1), (1, math.inf), (True, 1), (None, 1),
                                  (10**400, 1)], ids=lambda pair: repr(pair)[:20])  # fmt: skip
def test_points_that_are_refused(pair: tuple[object, object]) -> None:
    with pytest.raises(InvalidValue):
        Point(*pair)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ring",
    [[], [(0, 0), (1, 1)], [(0, 0), (1, 1), (0, 0)], [(0, 0), (2, 2), (2, 0), (0, 2)],
     [(0, 0), (1, 1), (2, 2)], [(0, 0, 0), (1, 0, 0), (0, 1, 0)], "abc", 5, [(0, 0), (1, 0), "ab"],
     [(0, 0), (math.nan, 0), (0, 1)], [(0, 0), (10**400, 0), (0, 1)]],
    ids=lambda ring: repr(ring)[:30],
)  # fmt: skip
def test_rings_that_are_refused(ring: object) -> None:
    with pytest.raises(InvalidValue):
        Polygon(ring)  # type: ignore[arg-type]


def test_hole_outside_the_polygon_is_refused() -> None:
    with pytest.raises(InvalidValue, match="not valid"):
        Polygon([(0, 0), (1, 0), (0, 1)], [[(5, 5), (6, 5), (5, 6)]])


@pytest.mark.parametrize(
    "shape",
    [{}, {"type": "Polygon"}, {"type": "Polygon", "coordinates": None},
     {"type": "Polygon", "coordinates": []}, {"type": "Polygon", "coordinates": "abc"},
     {"type": "MultiPolygon", "coordinates": []}, {"type": "MultiPolygon", "coordinates": [[]]},
     {"type": "Point", "coordinates": [1, 2]}, {"type": ["Polygon"], "coordinates": [[]]},
     {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 10**400], [0, 0]]]}],
    ids=lambda shape: repr(shape)[:40],
)  # fmt: skip
def test_geojson_that_is_refused(shape: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        Polygon.from_geojson(shape)


def test_polygons_with_an_empty_part_or_far_beyond_the_plane_are_refused() -> None:
    with pytest.raises(InvalidValue, match="part of the polygon is empty"):
        Polygon.from_wkt("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), EMPTY)")
    with pytest.raises(InvalidValue, match="beyond 1e"):
        Polygon([(-1e200, -1e200), (1e200, -1e200), (0, 1e200)])


def test_coordinates_all_but_zero_are_zero() -> None:
    triangle = Polygon([(1e-200, 0), (1, 0), (0, 1)])
    assert triangle.rings == Polygon.from_wkt("POLYGON ((0 -1e-200, 1 0, 0 1, 0 -1e-200))").rings
    assert (Point(1e-200, -1e-101), Point(1e-99, 0).lon) == (Point(0, 0), 1e-99)


def test_polygon_reads_back_exactly() -> None:
    polygon = Polygon([(0.1, 0.2), (1 / 3, 1e-7), (-2.5, 123456789.123456789)])
    assert Polygon.from_wkt(polygon.to_wkt()) == polygon
    assert Polygon.from_geojson(polygon.to_geojson()) == polygon
    assert eval(repr(polygon)) == polygon
    assert pickle.loads(pickle.dumps(polygon)) == polygon
    assert hash(Polygon.from_wkt(polygon.to_wkt())) == hash(polygon)
    assert polygon.bounds == (-2.5, 1e-7, 1 / 3, 123456789.123456789)


@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        (Point(0, 0), Point(0, 0), 0),
        (Point(0, 0), Point(0, 1), math.pi * 6_371_008.8 / 180),
        (Point(0, 0), Point(180, 0), math.pi * 6_371_008.8),
        (Point(0, 90), Point(77, 90), 0),
        (Point(0, -90), Point(0, 90), math.pi * 6_371_008.8),
        (Point(-180, 5), Point(180, 5), 0),
    ],
)
def test_distance(a: Point, b: Point, metres: float) -> None:
    assert distance_m(a, b) == pytest.approx(metres, abs=1e-6)
    assert distance_m(b, a) == distance_m(a, b)


# -- attributes and their JSON


def test_attributes_are_flattened_and_missing_ones_left_out() -> None:
    raw = {"a": {"b": {"c": 1}, "d": None}, "e": [1, 1.0, True, 1], "f": [], "g": {}, "h": (None,)}
    assert as_attributes(raw) == {"a.b.c": (1,), "e": (1, 1.0, True)}
    assert [type(v) for v in as_attributes(raw)["e"]] == [int, float, bool]


@pytest.mark.parametrize(
    ("raw", "held"),
    [
        (np.array([1, 2]), (1, 2)),
        (np.array(5), (5,)),
        ({"a"}, ("a",)),
        ([{"$range": [1, 2]}, 5], (Range(1, 2), 5)),
        ({"$timestamp": "2026-01-01"}, (datetime(2026, 1, 1, tzinfo=UTC),)),
        ({"type": "Point", "coordinates": [1, 2]}, (Point(1, 2),)),
    ],
    ids=repr,
)
def test_values_of_an_attribute(raw: object, held: tuple[object, ...]) -> None:
    assert as_attributes({"x": raw}) == {"x": held}


def test_objects_that_only_look_like_geojson_are_nested_attributes() -> None:
    assert as_attributes({"a": {"type": "Point"}}) == {"a.type": ("Point",)}
    assert as_attributes({"a": {"type": ["Point"], "n": 1}}) == {"a.type": ("Point",), "a.n": (1,)}


@pytest.mark.parametrize(
    "raw",
    [{"": 1}, {1: 2}, {"x": [[1]]}, {"x": [{"a": 1}]}, {"x": b"a"}, {"\ud800": 1},
     {"a": {"b": 1}, "a.b": 2}, {"x": {"$range": [5, 1]}}, {"x": {"$range": [1]}},
     {"x": {"$range": 5}}, {"x": {"$range": [1, 2], "end": "[)"}}, {"x": {"$range": [math.nan, 1]}},
     {"x": {"$range": [1, 2], "ends": ["[]"]}}, {"x": {"$number": "NaN"}}, {"x": {"$number": []}},
     {"x": {"$timestamp": "soon"}}, {"x": {"$timestamp": 5}},
     {"x": {"$timestamp": "2026-01-01", "y": 1}},
     {"x": {"type": "Point", "coordinates": [1]}}, {"x": {"type": "Point", "coordinates": "ab"}},
     {"x": np.array([[1]])}, {"x": pa.MonthDayNano([1, 2, 3])},
     {"x": {"type": "Point", "coordinates": [1, 2], "coordinate": [3, 4]}},
     {"x": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]], "holes": []}},
     {"x": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1]]]}}],
    ids=lambda raw: repr(raw)[:50],
)  # fmt: skip
def test_attributes_that_are_refused(raw: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        as_attributes(raw)


def test_attributes_nested_too_deep_are_refused() -> None:
    raw: dict[str, object] = {"a": 1}
    for _ in range(40):
        raw = {"a": raw}
    with pytest.raises(InvalidValue, match="nested more than 32 deep"):
        as_attributes(raw)


@pytest.mark.parametrize("value", [math.inf, -math.inf, Range(-math.inf, 5, "()"), Point(1, 2)])
def test_json_has_no_bare_infinity(value: object) -> None:
    assert value_from_json(value_to_json(value)) == value  # type: ignore[arg-type]
    assert "inf" not in repr(value_to_json(value)).replace("Infinity", "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "value", "is_covered"),
    [
        ("a", "a", True), ("5", 5, False), (5, "5", True), (5, "5.0", True), (1, True, False),
        (True, True, True), (True, 1, False), (5, Range(5, 5), False), (Range(1, 9), "5", True),
        (Range(1, 9), True, False), (Range(1, 9), Point(5, 5), False),
        (Point(1, 2), Point(1, 2), True),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01", True),
        (datetime(2026, 1, 1, tzinfo=UTC), 5, False), (2**53 + 1, float(2**53), False),
        (math.inf, "1e400", False), (Range(low=5), "1e400", False),
    ],
)  # fmt: skip
def test_covers(wanted: object, value: object, is_covered: bool) -> None:
    assert covers(wanted, value) is is_covered  # type: ignore[arg-type]


def test_geojson_may_have_a_bounding_box() -> None:
    ring = [[0, 0], [1, 0], [1, 1], [0, 0]]
    raw = {"type": "Polygon", "coordinates": [ring], "bbox": [0, 0, 1, 1]}
    assert value_from_json(raw) == Polygon([(0, 0), (1, 0), (1, 1)])
    assert value_from_json({"type": "Point", "coordinates": [1, 2], "bbox": []}) == Point(1, 2)


@pytest.mark.parametrize("holes", [5, "ring", None, [5]])
def test_holes_that_are_no_rings(holes):
    with pytest.raises(InvalidValue):
        Polygon([(0, 0), (2, 0), (2, 2)], holes)
