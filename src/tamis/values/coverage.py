"""``covers``: when a value in a filter accepts a value in an event (seed 4, section 2.1)."""

from __future__ import annotations

from datetime import datetime

from tamis.values.kinds import Value
from tamis.values.numeric import numeric_text
from tamis.values.ranges import Bound, Range
from tamis.values.shapes import Point, Polygon
from tamis.values.timestamps import parse_timestamp


def covers(wanted: Value, value: Value) -> bool:
    """Whether ``wanted``, a value in a filter, accepts ``value``, one in an event.

    The five rules of the paper:

    >>> covers("FORD", "FORD"), covers("FORD", "Ford")
    (True, False)
    >>> covers(Range(2014, 2016), "2015"), covers(Range(2014, 2016), "BMW")
    (True, False)
    >>> covers(Range(1, 3), Range(3, 5)), covers(Range(1, 3, "[)"), Range(3, 5))
    (True, False)
    >>> covers(Point(1, 2), Point(1, 2))
    True
    >>> covers(Polygon([(0, 0), (2, 0), (0, 2)]), Point(1, 1))
    True

    Beyond the paper: numbers, booleans and timestamps are values of their own, and a text
    that spells a number or a timestamp counts as that one too.

    >>> covers(2016, 2016.0), covers(2016, "2016"), covers("2016", 2016), covers(1, True)
    (True, True, False, False)
    """
    if isinstance(wanted, Range):
        return _range_covers(wanted, value)
    if isinstance(wanted, Polygon):
        return isinstance(value, Point) and wanted.contains(value)
    if isinstance(wanted, bool | str | Point):
        return type(value) is type(wanted) and value == wanted
    return as_bound(value, like=wanted) == wanted


def _range_covers(wanted: Range, value: Value) -> bool:
    if isinstance(value, Range):
        return wanted.intersects(value)
    like = wanted.low if wanted.low is not None else wanted.high
    bound = as_bound(value, like=0 if like is None else like)
    return bound is not None and wanted.contains(bound)


def as_bound(value: Value, like: Bound) -> Bound | None:
    """The number or timestamp a value is or spells, of the kind of ``like``; else None."""
    if isinstance(like, datetime):
        if isinstance(value, str):
            return parse_timestamp(value)
        return value if isinstance(value, datetime) else None
    if isinstance(value, str):
        return numeric_text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return None
