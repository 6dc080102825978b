"""The HTTP query spelling: ``mark=FORD&model=FOCUS&model=MONDEO&year_from=2014`` (seed 4, 2.7).

Each parameter is a condition and all must hold; a repeated parameter is an IN. What the
notation has no parameter for stands as SQL in a parameter ``where``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote, unquote_plus

from tamis.errors import (
    FilterError,
    FilterSyntaxError,
    FilterTooComplex,
    TamisError,
    quoted,
    shortened,
)
from tamis.language.sql import MAX_TEXT, parse_sql
from tamis.language.sql_writer import to_sql
from tamis.language.tree import (
    And,
    Equals,
    Filter,
    In,
    InBox,
    InRange,
    Missing,
    Near,
    NotEquals,
    Prefix,
    Present,
    Within,
    all_of,
    is_in,
)
from tamis.values import Point, Polygon, Range, Value, numeric_text, parse_timestamp
from tamis.values.timestamps import timestamp_text

MAX_PARAMETERS = 10_000

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BORDERS = {
    "from": ("low", False),
    "above": ("low", True),
    "to": ("high", False),
    "below": ("high", True),
}


def parse_query(text: str) -> Filter:
    """Read a filter from query notation.

    >>> parse_query("model=FOCUS&model=MONDEO&year_from=2014&year_to=2016")
    (col('model').is_in('FOCUS', 'MONDEO') & col('year').between(2014, 2016))
    """
    if len(text) > MAX_TEXT:
        raise FilterTooComplex("characters", len(text), MAX_TEXT, "shorten it")
    if not text:
        raise FilterSyntaxError(
            "the filter is empty; write where=TRUE to accept every event", text=text, offset=0
        )
    groups: dict[tuple[str, str], list[_Given]] = {}
    for parameter, value, offset in _parameters(text):
        attribute, word = _split(parameter)
        family = "range" if word in _BORDERS else word
        groups.setdefault((attribute, family), []).append(_Given(word, value, offset))
    return all_of([_read(text, *key, given) for key, given in groups.items()])


def to_query(node: Filter) -> str:
    """The query notation of a filter; ``parse_query`` reads it back.

    >>> to_query(And((Equals("mark", "FORD"), InRange("year", Range(2014, 2016)))))
    'mark=FORD&year_from=2014&year_to=2016'
    >>> to_query(Equals("a", 1) | Equals("b", 2))
    'where=a%20%3D%201%20OR%20b%20%3D%202'
    """
    parts = node.parts if isinstance(node, And) and node.parts else (node,)
    try:
        plain = "&".join(
            f"{quote(name)}={quote(value, safe='')}"
            for part in parts
            for name, value in _WRITERS[type(part)](part)
        )
        if parse_query(plain) == node:
            return plain
    except (KeyError, FilterError):
        pass  # some part has no parameter of its own
    return "where=" + quote(to_sql(node), safe="")


class _Given(NamedTuple):
    """What is asked of an attribute, with which value, and where that stands."""

    word: str
    value: str
    offset: int


def _parameters(text: str) -> Iterator[tuple[str, str, int]]:
    """Each parameter with its value and its offset."""
    bad_escape = _BAD_ESCAPE.search(text)
    if bad_escape:
        _fail(
            text,
            "'%' begins an escape of two hexadecimal digits; a '%' itself is written %25",
            bad_escape.start(),
        )
    parts = text.split("&")
    if len(parts) > MAX_PARAMETERS:
        raise FilterTooComplex("parameters", len(parts), MAX_PARAMETERS, "shorten it")
    offset = 0
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            found = f"{quoted(part)} is not one" if part else "here is none"
            _fail(text, f"expected parameter=value pairs joined by '&'; {found}", offset)
        if not name:
            _fail(text, "a parameter has no name", offset)
        yield _decode(text, name, offset), _decode(text, value, offset + len(name) + 1), offset
        offset += len(part) + 1


def _decode(text: str, part: str, offset: int) -> str:
    try:
        return unquote_plus(part, errors="strict")
    except UnicodeDecodeError:
        _fail(text, "the %-escapes are not UTF-8", text.index("%", offset))


def _fail(text: str, problem: str, offset: int) -> NoReturn:
    raise FilterSyntaxError(problem, text=text, offset=offset)


def _split(parameter: str) -> tuple[str, str]:
    """An attribute and what is asked of it: ``year_from`` is ("year", "from")."""
    if parameter == "where":
        return "", "where"
    attribute, _, word = parameter.rpartition("_")
    if attribute and word in _WORDS:
        return attribute, word
    return parameter, ""


def _read(text: str, attribute: str, family: str, given: list[_Given]) -> Filter:
    try:
        if family == "range":
            return _read_range(text, attribute, given)
        if len(given) > 1 and family not in ("", "not"):
            name = shortened(f"{attribute}_{family}" if attribute else family)
            _fail(text, f"{name} is given {len(given)} times; give it once", given[1].offset)
        return _READERS[family](attribute, [one.value for one in given])
    except (FilterSyntaxError, FilterTooComplex):
        raise
    except TamisError as error:
        _fail(text, str(error), given[0].offset)


def _read_range(text: str, attribute: str, given: list[_Given]) -> Filter:
    borders: dict[str, Any] = {}
    is_open = {"low": False, "high": False}
    for one in given:
        side, opened = _BORDERS[one.word]
        if side in borders:
            _fail(text, f"two {side} borders for {quoted(attribute)}; give one", one.offset)
        borders[side], is_open[side] = _bound(one.value), opened
        if borders[side] is None:
            expected = "expected a number or 2026-01-31T12:00:00Z"
            _fail(text, f"{quoted(one.value)} is not a border; {expected}", one.offset)
    ends = ("(" if is_open["low"] else "[") + (")" if is_open["high"] else "]")
    return InRange(attribute, Range(borders.get("low"), borders.get("high"), ends))


def _bound(text: str) -> Any:
    number = numeric_text(text)
    return parse_timestamp(text) if number is None else number


def _value(text: str) -> Value:
    """A number, true, false, or text; text in single quotes is text whatever it spells."""
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    number = numeric_text(text)
    return text if number is None else number


def _numbers(text: str, count: int) -> list[float]:
    numbers = [numeric_text(part.strip()) for part in text.split(",")]
    if len(numbers) != count or None in numbers:
        raise FilterError(f"{quoted(text)} is not {count} numbers joined by ','")
    return [number for number in numbers if number is not None]


def _read_near(attribute: str, values: list[str], is_open: bool) -> Filter:
    lon, lat, metres = _numbers(values[0], 3)
    return Near(attribute, Point(lon, lat), metres, is_open)


def _read_null(attribute: str, values: list[str]) -> Filter:
    if values[0] not in ("true", "false"):
        raise FilterError(f"{shortened(attribute)}_null is true or false, not {quoted(values[0])}")
    return Missing(attribute) if values[0] == "true" else Present(attribute)


_READERS: dict[str, Callable[[str, list[str]], Filter]] = {
    "": lambda a, values: is_in(a, map(_value, values)),
    "not": lambda a, values: all_of([NotEquals(a, _value(v)) for v in values]),
    "prefix": lambda a, values: Prefix(a, values[0]),
    "null": _read_null,
    "within": lambda a, values: Within(a, Polygon.from_wkt(values[0])),
    "box": lambda a, values: InBox(a, *_numbers(values[0], 4)),
    "near": lambda a, values: _read_near(a, values, is_open=False),
    "nearer": lambda a, values: _read_near(a, values, is_open=True),
    "where": lambda a, values: parse_sql(values[0]),
}
_WORDS = frozenset({*_BORDERS, *_READERS} - {"", "where"})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if _value(value) == value and not value.startswith("'") else f"'{value}'"
    return timestamp_text(value) if hasattr(value, "isoformat") else repr(value)


def _write_range(node: Any) -> list[tuple[str, str]]:
    r, written = node.range, []
    if r.low is not None:
        written.append((f"{node.attribute}_{'above' if r.low_open else 'from'}", _text(r.low)))
    if r.high is not None:
        written.append((f"{node.attribute}_{'below' if r.high_open else 'to'}", _text(r.high)))
    return written


def _write_near(node: Any) -> list[tuple[str, str]]:
    word = "nearer" if node.open else "near"
    where = f"{node.center.lon!r},{node.center.lat!r},{node.metres!r}"
    return [(f"{node.attribute}_{word}", where)]


_WRITERS: dict[type, Callable[[Any], list[tuple[str, str]]]] = {
    Equals: lambda n: [(n.attribute, _text(n.value))],
    In: lambda n: [(n.attribute, _text(value)) for value in n.values],
    NotEquals: lambda n: [(f"{n.attribute}_not", _text(n.value))],
    InRange: _write_range,
    Prefix: lambda n: [(f"{n.attribute}_prefix", n.prefix)],
    Present: lambda n: [(f"{n.attribute}_null", "false")],
    Missing: lambda n: [(f"{n.attribute}_null", "true")],
    Within: lambda n: [(f"{n.attribute}_within", n.polygon.to_wkt())],
    InBox: lambda n: [(f"{n.attribute}_box", f"{n.lon1!r},{n.lat1!r},{n.lon2!r},{n.lat2!r}")],
    Near: _write_near,
}
