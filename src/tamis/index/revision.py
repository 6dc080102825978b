"""Revision: a filter as a function of an event, for what the index cannot decide by numbers.

This is the second phase of matching: the index finds candidates, and those it is not sure of
are asked here. It is written apart from the oracle, which it is tested against; both take only
the distance of two points from ``tamis.values``, as its formula is what the distance means.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from tamis.language import Filter
from tamis.language.tree import (
    And,
    Equals,
    In,
    InBox,
    InRange,
    Missing,
    Near,
    Not,
    NotEquals,
    Or,
    Predicate,
    Prefix,
    Present,
    Within,
)
from tamis.slots.encoding import micros_of
from tamis.slots.polygons import Inside
from tamis.slots.spelling import micros_spelt, number_spelt
from tamis.values import Attributes, Point, Range, Value, distance_m

Check = Callable[[Attributes], bool]
Place = tuple[float, float]  # longitude and latitude
_ValueCheck = Callable[[Any], bool]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Ask(Protocol):
    """Whether the filter of a row accepts the event; of one that moves, when it is there."""

    def __call__(self, leader: int, there: Place | None = None) -> bool:
        """Whether it accepts."""


def check_of(node: Filter) -> Check:
    """The filter as a function of an event's attributes."""
    if isinstance(node, And | Or):
        checks = [check_of(part) for part in node.parts]
        if isinstance(node, And):
            return lambda event: all(check(event) for check in checks)
        return lambda event: any(check(event) for check in checks)
    if isinstance(node, Not):
        check = check_of(node.part)
        return lambda event: not check(event)
    assert isinstance(node, Predicate)
    name = node.attribute
    if isinstance(node, Missing):
        return lambda event: name not in event
    if isinstance(node, Present):
        return lambda event: name in event
    holds = _VALUE_CHECKS[type(node)](node)
    return lambda event: any(map(holds, event.get(name, ())))


def _reader_like(value: Value) -> Callable[[Any], Any]:
    """What a value of an event is, seen as the kind of another, or None if it is not.

    Timestamps are seen as microseconds, so that one order serves them and numbers.
    """
    if isinstance(value, datetime):
        return lambda held: (
            micros_of(held) if isinstance(held, datetime)
            else micros_spelt(held) if isinstance(held, str) else None
        )  # fmt: skip
    if isinstance(value, bool | str | Point):
        kind = type(value)
        return lambda held: held if type(held) is kind else None
    return lambda held: (
        number_spelt(held) if isinstance(held, str)
        else held if type(held) in (int, float) else None
    )  # fmt: skip


def _equal_to(wanted: Value) -> _ValueCheck:
    read = _reader_like(wanted)
    itself = read(wanted)
    return lambda held: (seen := read(held)) is not None and bool(seen == itself)


def _different_from(wanted: Value) -> _ValueCheck:
    read = _reader_like(wanted)
    itself = read(wanted)
    return lambda held: (seen := read(held)) is not None and bool(seen != itself)


# A border with how far it leans inward, so that borders compare as pairs: (3, 1) is the low
# border of what lies above 3, (3, 0) that of what starts at 3, (3, -1) the high border below 3.
_Border = tuple[Any, int]


def _borders(held: Range) -> tuple[_Border | None, _Border | None]:
    low, high = (
        micros_of(border) if isinstance(border, datetime) else border
        for border in (held.low, held.high)
    )
    return (
        None if low is None else (low, int(held.low_open)),
        None if high is None else (high, -int(held.high_open)),
    )


def _inside(wanted: Range) -> _ValueCheck:
    is_of_time = isinstance(wanted.low, datetime) or isinstance(wanted.high, datetime)
    read = _reader_like(_EPOCH if is_of_time else 0)
    low, high = _borders(wanted)
    is_empty = low is not None and high is not None and low > high

    def check(held: Any) -> bool:
        if isinstance(held, Range):
            if is_of_time != (isinstance(held.low, datetime) or isinstance(held.high, datetime)):
                return False
            first, last = _borders(held)
        else:
            seen = read(held)
            if seen is None:
                return False
            first = last = (seen, 0)
        return not (
            is_empty
            or (low is not None and last is not None and low > last)
            or (high is not None and first is not None and first > high)
        )

    return check


def _in_box(node: InBox) -> _ValueCheck:
    wraps = node.lon1 > node.lon2

    def check(held: Any) -> bool:
        if not isinstance(held, Point) or held.lat < node.lat1 or held.lat > node.lat2:
            return False
        if wraps:
            return abs(held.lon) <= 180 and abs(held.lat) <= 90 and not (
                node.lon2 < held.lon < node.lon1
            )  # fmt: skip
        return node.lon1 <= held.lon <= node.lon2

    return check


def _near(node: Near) -> _ValueCheck:
    def check(held: Any) -> bool:
        if not isinstance(held, Point) or abs(held.lon) > 180 or abs(held.lat) > 90:
            return False
        metres = distance_m(node.center, held)
        return metres < node.metres if node.open else metres <= node.metres

    return check


def _one_of(node: In) -> _ValueCheck:
    checks = [_equal_to(value) for value in node.values]
    return lambda held: any(check(held) for check in checks)


def _starts_with(node: Prefix) -> _ValueCheck:
    return lambda held: isinstance(held, str) and held[: len(node.prefix)] == node.prefix


def _within(node: Within) -> _ValueCheck:
    inside = Inside(node.polygon)
    return lambda held: isinstance(held, Point) and inside(held)


_VALUE_CHECKS: dict[type, Callable[[Any], _ValueCheck]] = {
    Equals: lambda node: _equal_to(node.value),
    NotEquals: lambda node: _different_from(node.value),
    In: _one_of,
    InRange: lambda node: _inside(node.range),
    Prefix: _starts_with,
    Within: _within,
    InBox: _in_box,
    Near: _near,
}
