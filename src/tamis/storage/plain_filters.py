"""Plain filters: those that surely can be read, told without reading them.

An import has filters by the million, and most are a few conjunctions of small predicates with
numbers and texts. To make a tree of one only to see that it can be made takes longer than all else
about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from tamis.errors import TamisError
from tamis.language.normal import LITERALS_A_CONJUNCTION
from tamis.values import Polygon

_LARGEST = 2.0**53
_MOST_VALUES = 100
_FARTHEST_M = 1_000_000
_ENDS = ("[]", "[)", "(]", "()")


def is_plain(filter: Mapping[str, Any], most_conjunctions: int = 1) -> bool:
    """Whether a filter in JSON surely can be read, and is no more conjunctions than so many.

    False says nothing. Its texts must be valid Unicode, which is not looked at.

    >>> is_plain({"and": [{"attribute": "price", "op": "<", "value": 3300},
    ...                   {"not": {"attribute": "brand", "op": "in", "values": ["Huawei"]}}]})
    True
    >>> is_plain({"not": {"not": {"attribute": "price", "op": "<", "value": 3300}}})
    False
    """
    if "or" not in filter:
        return _is_plain_conjunction(filter)
    parts = filter["or"]
    if len(filter) > 1 or type(parts) is not list or not 2 <= len(parts) <= most_conjunctions:
        return False
    return all(map(_is_plain_conjunction, parts))


def _is_plain_conjunction(raw: Any) -> bool:
    if type(raw) is not dict or "and" not in raw:
        return _is_plain_literal(raw)
    parts = raw["and"]
    if len(raw) > 1 or type(parts) is not list or not 2 <= len(parts) <= LITERALS_A_CONJUNCTION:
        return False
    return all(map(_is_plain_literal, parts))


def _is_plain_literal(raw: Any) -> bool:
    if type(raw) is dict and "not" in raw:
        return len(raw) == 1 and _is_plain_predicate(raw["not"])
    return _is_plain_predicate(raw)


def _is_plain_predicate(raw: Any) -> bool:
    if type(raw) is not dict:
        return False
    name, op = raw.get("attribute"), raw.get("op")
    if type(name) is not str or not name or type(op) is not str:
        return False
    check = _CHECKS.get(op)
    return check is not None and check(raw)


def _is_number(held: Any) -> TypeGuard[float]:
    kind = type(held)
    return (kind is int or kind is float) and -_LARGEST <= held <= _LARGEST  # no NaN either


def _has_value(raw: dict[str, Any]) -> bool:
    value = raw.get("value")
    return len(raw) == 3 and (type(value) is str or type(value) is bool or _is_number(value))


def _has_bound(raw: dict[str, Any]) -> bool:
    return len(raw) == 3 and _is_number(raw.get("value"))


def _has_bounds(raw: dict[str, Any]) -> bool:
    low, high = raw.get("low"), raw.get("high")
    if len(raw) != 4 and (len(raw) != 5 or raw.get("ends") not in _ENDS):
        return False
    return _is_number(low) and _is_number(high) and bool(low < high)


def _has_texts(raw: dict[str, Any]) -> bool:
    values = raw.get("values")
    if len(raw) != 3 or type(values) is not list or not 1 <= len(values) <= _MOST_VALUES:
        return False
    return all(type(value) is str for value in values)


def _has_circle(raw: dict[str, Any]) -> bool:
    center, metres = raw.get("center"), raw.get("metres")
    if len(raw) != 4 and (len(raw) != 5 or type(raw.get("open")) is not bool):
        return False
    return _is_place(center) and _is_number(metres) and 0 < metres <= _FARTHEST_M


def _is_place(held: Any) -> bool:
    if type(held) is not list or len(held) != 2:
        return False
    lon, lat = held
    return _is_number(lon) and _is_number(lat) and -180 < lon < 180 and -90 < lat < 90


def _has_box(raw: dict[str, Any]) -> bool:
    box = raw.get("box")
    if len(raw) != 3 or type(box) is not list or not _is_place(box[:2]) or not _is_place(box[2:]):
        return False
    return bool(box[0] < box[2] and box[1] < box[3])


def _has_polygon(raw: dict[str, Any]) -> bool:
    shape = raw.get("polygon")
    if len(raw) != 3 or type(shape) is not dict or len(shape) != 2:
        return False
    try:
        Polygon.from_geojson(shape)
    except TamisError:
        return False
    return True


def _has_start(raw: dict[str, Any]) -> bool:
    value = raw.get("value")
    return len(raw) == 3 and type(value) is str and bool(value)


def _has_nothing(raw: dict[str, Any]) -> bool:
    return len(raw) == 2


_CHECKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "=": _has_value, "!=": _has_value, "<": _has_bound, "<=": _has_bound, ">": _has_bound,
    ">=": _has_bound, "between": _has_bounds, "in": _has_texts, "distance": _has_circle,
    "box": _has_box, "within": _has_polygon, "prefix": _has_start, "is null": _has_nothing,
    "is not null": _has_nothing,
}  # fmt: skip
