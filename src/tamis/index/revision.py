"""Revision: a filter as a function of an event, for what the index cannot decide by numbers.

This is the second phase of matching: the index finds candidates, and those it is not sure of
are asked here. The evaluation is written apart from the oracle, which it is tested against; what
a text spells, whether ranges meet, and distances are the values' own functions, which both use.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

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
from tamis.values import Attributes, Point, Range, Value, distance_m, numeric_text, parse_timestamp

Check = Callable[[Attributes], bool]
_ValueCheck = Callable[[Any], bool]


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
    holds = _value_check(node)
    return lambda event: any(map(holds, event.get(name, ())))


def _value_check(node: Predicate) -> _ValueCheck:
    if isinstance(node, Equals):
        return _equal_to(node.value)
    if isinstance(node, NotEquals):
        return _different_from(node.value)
    if isinstance(node, In):
        checks = [_equal_to(value) for value in node.values]
        return lambda value: any(check(value) for check in checks)
    if isinstance(node, InRange):
        return _inside(node.range)
    if isinstance(node, Prefix):
        return lambda value: isinstance(value, str) and value[: len(node.prefix)] == node.prefix
    if isinstance(node, Within):
        contains = node.polygon.contains
        return lambda value: isinstance(value, Point) and contains(value)
    if isinstance(node, InBox):
        return _in_box(node)
    assert isinstance(node, Near)
    return _near(node)


def _reader_like(value: Value) -> Callable[[Any], Any]:
    """What a value of an event is, seen as the kind of another: itself, or None if it is not."""
    if isinstance(value, datetime):
        return lambda held: (
            held if isinstance(held, datetime)
            else parse_timestamp(held) if isinstance(held, str) else None
        )  # fmt: skip
    if isinstance(value, bool | str | Point):
        kind = type(value)
        return lambda held: held if type(held) is kind else None
    return lambda held: (
        numeric_text(held) if isinstance(held, str)
        else held if type(held) in (int, float) else None
    )  # fmt: skip


def _equal_to(wanted: Value) -> _ValueCheck:
    read = _reader_like(wanted)
    return lambda held: (seen := read(held)) is not None and bool(seen == wanted)


def _different_from(wanted: Value) -> _ValueCheck:
    read = _reader_like(wanted)
    return lambda held: (seen := read(held)) is not None and bool(seen != wanted)


def _inside(wanted: Range) -> _ValueCheck:
    border = wanted.low if wanted.low is not None else wanted.high
    read = _reader_like(0 if border is None else border)
    above = _bounded(wanted.low, wanted.low_open, 1)
    below = _bounded(wanted.high, wanted.high_open, -1)

    def check(held: Any) -> bool:
        if isinstance(held, Range):
            return wanted.intersects(held)
        seen = read(held)
        return seen is not None and above(seen) and below(seen)

    return check


def _bounded(border: Any, is_open: bool, sign: int) -> _ValueCheck:
    if border is None:
        return lambda seen: True
    if sign > 0:
        return (lambda seen: seen > border) if is_open else (lambda seen: seen >= border)
    return (lambda seen: seen < border) if is_open else (lambda seen: seen <= border)


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
