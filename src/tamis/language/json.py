"""The JSON spelling of filters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from tamis.errors import FilterError, FilterSyntaxError, FilterTooComplex, TamisError, quoted
from tamis.language.calls import CALLS, Call
from tamis.language.json_places import fault_in, offset_of
from tamis.language.tree import (
    FALSE,
    MAX_DEPTH,
    TRUE,
    And,
    Equals,
    Filter,
    In,
    InBox,
    InRange,
    Missing,
    Near,
    Not,
    NotEquals,
    Or,
    Prefix,
    Present,
    Within,
    all_of,
    any_of,
    is_in,
)
from tamis.values import Point, Polygon, Range, load_json, value_from_json, value_to_json

MAX_TEXT = 1_000_000


def parse_json_text(text: str) -> Filter:
    """Read a filter from JSON text; errors carry line and column."""
    if len(text) > MAX_TEXT:
        raise FilterTooComplex("characters", len(text), MAX_TEXT, "shorten it")
    try:
        return from_json(load_json(text))
    except json.JSONDecodeError as error:
        raise FilterSyntaxError(f"not JSON: {error.msg}", text=text, offset=error.pos) from None
    except RecursionError:
        raise FilterTooComplex(
            "levels of nesting or more", MAX_DEPTH + 1, MAX_DEPTH, "flatten or split it"
        ) from None
    except FilterSyntaxError as error:
        offset = offset_of(text, error.path or "$")
        raise FilterSyntaxError(error.problem, text=text, offset=offset, path=error.path) from None
    except FilterError:
        raise
    except ValueError:  # a repeated key, a number that is too large
        offset, problem = fault_in(text)
        raise FilterSyntaxError(f"not a filter: {problem}", text=text, offset=offset) from None


def from_json(raw: Any) -> Filter:
    """Read a filter from a JSON object.

    >>> from_json({"and": [{"attribute": "price", "op": "<", "value": 3300},
    ...                    {"attribute": "brand", "op": "in", "values": ["Huawei", "Honor"]}]})
    ((col('price') < 3300) & col('brand').is_in('Huawei', 'Honor'))
    """
    return _read(raw, "$", 0)


def to_json(node: Filter) -> Any:
    """The JSON object of a filter; ``from_json`` reads it back.

    >>> to_json(Not(Missing("price")))
    {'not': {'attribute': 'price', 'op': 'is null'}}
    """
    if isinstance(node, Call):
        return _write_call(node)
    return _WRITERS[type(node)](node)


def _read(raw: Any, path: str, depth: int) -> Filter:
    if depth > MAX_DEPTH:
        raise FilterTooComplex("levels of nesting or more", depth, MAX_DEPTH, "flatten or split it")
    if raw is True:
        return TRUE
    if raw is False:
        return FALSE
    if not isinstance(raw, Mapping):
        raise FilterSyntaxError(
            f"{quoted(raw)} is not a filter; expected true, false or an object such as "
            '{"attribute": "price", "op": "<", "value": 3300}',
            path=path,
        )
    for word, join in (("and", all_of), ("or", any_of)):
        if word in raw:
            return join(_read_parts(raw, word, path, depth))
    if "not" in raw:
        _expect_keys(raw, {"not"}, path)
        return Not(_read(raw["not"], f"{path}.not", depth + 1))
    return _read_predicate(raw, path)


def _read_parts(raw: Mapping[str, Any], word: str, path: str, depth: int) -> list[Filter]:
    _expect_keys(raw, {word}, path)
    parts = raw[word]
    if not isinstance(parts, list | tuple) or not parts:
        raise FilterSyntaxError(f'"{word}" needs a list of filters', path=f"{path}.{word}")
    return [_read(part, f"{path}.{word}[{i}]", depth + 1) for i, part in enumerate(parts)]


def _read_predicate(raw: Mapping[str, Any], path: str) -> Filter:
    op, attribute = raw.get("op"), raw.get("attribute")
    if not isinstance(attribute, str):
        raise FilterSyntaxError(
            'expected "and", "or", "not", or "attribute" with the name of one', path=path
        )
    if isinstance(op, str) and op in CALLS:
        keys, reader = _call(CALLS[op])
    elif isinstance(op, str) and op in _READERS:
        keys, reader = _READERS[op]
    else:
        known = ", ".join((*_READERS, *CALLS))
        raise FilterSyntaxError(f'"op" {quoted(op)} is not one of {known}', path=f"{path}.op")
    _expect_keys(raw, {"attribute", "op", *keys.required, *keys.optional}, path, keys.required)
    try:
        return reader(attribute, raw)
    except TamisError as error:
        raise FilterSyntaxError(str(error), path=path) from None


def _expect_keys(
    raw: Mapping[str, Any], known: set[str], path: str, required: tuple[str, ...] = ()
) -> None:
    unknown = [key for key in raw if key not in known]
    if unknown:
        raise FilterSyntaxError(
            f"unknown key {quoted(unknown[0])}; expected {', '.join(sorted(known))}", path=path
        )
    missing = [key for key in required if key not in raw]
    if missing:
        raise FilterSyntaxError(f"the key {quoted(missing[0])} is missing", path=path)


class _Keys:
    def __init__(self, *required: str, optional: tuple[str, ...] = ()) -> None:
        self.required = required
        self.optional = optional


_PredicateReader = Callable[[str, Mapping[str, Any]], Filter]


def _one_sided(op: str) -> _PredicateReader:
    def read(attribute: str, raw: Mapping[str, Any]) -> Filter:
        bound = _bound(raw["value"])
        if op in ("<", "<="):
            return InRange(attribute, Range(high=bound, ends="[)" if op == "<" else "[]"))
        return InRange(attribute, Range(low=bound, ends="(]" if op == ">" else "[]"))

    return read


def _call(kind: type[Call]) -> tuple[_Keys, _PredicateReader]:
    names = kind.names()
    return _Keys(*names), lambda a, raw: kind.of(a, [_value(raw[name]) for name in names])


def _value(raw: Any) -> Any:
    if isinstance(raw, float) and not math.isfinite(raw):
        raise FilterError(f'{raw} is not JSON; infinity is {{"$number": "Infinity"}}')
    return value_from_json(raw)


def _bound(raw: Any) -> Any:
    value = _value(raw)
    if value is None or isinstance(value, str):
        raise FilterError(f"{quoted(raw)} cannot bound a range; expected a number or a timestamp")
    return value


def _numbers(raw: Any, count: int, what: str) -> list[Any]:
    if not isinstance(raw, list | tuple) or len(raw) != count:
        raise FilterError(f"{quoted(raw)} is not {what}")
    return list(raw)


def _read_near(attribute: str, raw: Mapping[str, Any]) -> Filter:
    center = Point(*_numbers(raw["center"], 2, "a center [lon, lat]"))
    is_open = raw.get("open", False)
    if not isinstance(is_open, bool):
        raise FilterError(f'"open" {quoted(is_open)} is not true or false')
    return Near(attribute, center, raw["metres"], is_open)


def _read_within(attribute: str, raw: Mapping[str, Any]) -> Filter:
    if not isinstance(raw["polygon"], Mapping):
        raise FilterError(f"{quoted(raw['polygon'])} is not a GeoJSON Polygon or MultiPolygon")
    return Within(attribute, Polygon.from_geojson(raw["polygon"]))


def _read_in(attribute: str, raw: Mapping[str, Any]) -> Filter:
    if not isinstance(raw["values"], list | tuple):
        raise FilterError(f'"values" {quoted(raw["values"])} is not a list')
    return is_in(attribute, map(_value, raw["values"]))


_READERS: dict[str, tuple[_Keys, _PredicateReader]] = {
    "=": (_Keys("value"), lambda a, raw: Equals(a, _value(raw["value"]))),
    "!=": (_Keys("value"), lambda a, raw: NotEquals(a, _value(raw["value"]))),
    "<": (_Keys("value"), _one_sided("<")),
    "<=": (_Keys("value"), _one_sided("<=")),
    ">": (_Keys("value"), _one_sided(">")),
    ">=": (_Keys("value"), _one_sided(">=")),
    "between": (
        _Keys("low", "high", optional=("ends",)),
        lambda a, raw: InRange(
            a, Range(_bound(raw["low"]), _bound(raw["high"]), raw.get("ends", "[]"))
        ),
    ),
    "in": (_Keys("values"), _read_in),
    "prefix": (_Keys("value"), lambda a, raw: Prefix(a, raw["value"])),
    "is null": (_Keys(), lambda a, raw: Missing(a)),
    "is not null": (_Keys(), lambda a, raw: Present(a)),
    "within": (_Keys("polygon"), _read_within),
    "box": (
        _Keys("box"),
        lambda a, raw: InBox(a, *_numbers(raw["box"], 4, "a box [lon1, lat1, lon2, lat2]")),
    ),
    "distance": (_Keys("center", "metres", optional=("open",)), _read_near),
}


def _predicate(op: str, attribute: str, **keys: Any) -> dict[str, Any]:
    return {"attribute": attribute, "op": op, **keys}


def _write_call(node: Call) -> Any:
    operands = {name: value_to_json(value) for name, value in node.operands.items()}
    return _predicate(node.word, node.attribute, **operands)


def _write_range(node: Any) -> Any:
    r = node.range
    low, high = (None if b is None else value_to_json(b) for b in (r.low, r.high))
    if r.low is None:
        return _predicate("<" if r.high_open else "<=", node.attribute, value=high)
    if r.high is None:
        return _predicate(">" if r.low_open else ">=", node.attribute, value=low)
    ends = {} if r.ends == "[]" else {"ends": r.ends}
    return _predicate("between", node.attribute, low=low, high=high, **ends)


def _write_near(node: Any) -> Any:
    center = [node.center.lon, node.center.lat]
    ends = {"open": True} if node.open else {}
    return _predicate("distance", node.attribute, center=center, metres=node.metres, **ends)


_WRITERS: dict[type, Callable[[Any], Any]] = {
    And: lambda n: {"and": [to_json(part) for part in n.parts]} if n.parts else True,
    Or: lambda n: {"or": [to_json(part) for part in n.parts]} if n.parts else False,
    Not: lambda n: {"not": to_json(n.part)},
    Equals: lambda n: _predicate("=", n.attribute, value=value_to_json(n.value)),
    NotEquals: lambda n: _predicate("!=", n.attribute, value=value_to_json(n.value)),
    In: lambda n: _predicate("in", n.attribute, values=[value_to_json(v) for v in n.values]),
    InRange: _write_range,
    Prefix: lambda n: _predicate("prefix", n.attribute, value=n.prefix),
    Present: lambda n: _predicate("is not null", n.attribute),
    Missing: lambda n: _predicate("is null", n.attribute),
    Within: lambda n: _predicate("within", n.attribute, polygon=n.polygon.to_geojson()),
    InBox: lambda n: _predicate("box", n.attribute, box=[n.lon1, n.lat1, n.lon2, n.lat2]),
    Near: _write_near,
}
