"""The Python spelling: ``col("price") < 3300``, and a tree written back as such source."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tamis.errors import FilterError, quoted
from tamis.language.calls import CALLS, Call
from tamis.language.tree import (
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
    is_in,
    point_of,
    range_of,
)
from tamis.values import Point, Polygon, Value


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """An attribute in a Python expression; made by ``col``."""

    name: str

    def __eq__(self, value: Value) -> Filter:  # type: ignore[override]
        return Equals(self.name, _check_operand(value))

    def __ne__(self, value: Value) -> Filter:  # type: ignore[override]
        return NotEquals(self.name, _check_operand(value))

    def __lt__(self, value: Any) -> Filter:
        return InRange(self.name, range_of(high=_check_bound(value), ends="[)"))

    def __le__(self, value: Any) -> Filter:
        return InRange(self.name, range_of(high=_check_bound(value)))

    def __gt__(self, value: Any) -> Filter:
        return InRange(self.name, range_of(low=_check_bound(value), ends="(]"))

    def __ge__(self, value: Any) -> Filter:
        return InRange(self.name, range_of(low=_check_bound(value)))

    __hash__ = None  # type: ignore[assignment]

    def between(self, low: Any, high: Any, ends: str = "[]") -> Filter:
        """One value lies between low and high; ends are "[]", "[)", "(]" or "()"."""
        return InRange(self.name, range_of(_check_bound(low), _check_bound(high), ends))

    def is_in(self, *values: Value) -> Filter:
        """Some value is one of these."""
        return is_in(self.name, map(_check_operand, values))

    def starts_with(self, prefix: str) -> Filter:
        """Some text starts so."""
        return Prefix(self.name, prefix)

    def is_true(self) -> Filter:
        """The attribute is the boolean true."""
        return Equals(self.name, True)

    def is_false(self) -> Filter:
        """The attribute is the boolean false."""
        return Equals(self.name, False)

    def is_null(self) -> Filter:
        """The attribute is missing."""
        return Missing(self.name)

    def is_not_null(self) -> Filter:
        """The attribute is present."""
        return Present(self.name)

    def within(self, polygon: Polygon) -> Filter:
        """Some point lies in the polygon or on its border."""
        return Within(self.name, polygon)

    def in_box(self, lon1: float, lat1: float, lon2: float, lat2: float) -> Filter:
        """Some point lies between the south-western and the north-eastern corner."""
        return InBox(self.name, lon1, lat1, lon2, lat2)

    def distance(self, lon: float, lat: float) -> Distance:
        """The distance from a place, to be compared: ``.distance(37.6, 55.7) < 500`` metres."""
        return Distance(self.name, point_of(lon, lat))

    def __getattr__(self, word: str) -> Callable[..., Filter]:
        if word not in CALLS:
            raise AttributeError(f"an attribute of events has no {word!r} to be compared with")
        return lambda *values: CALLS[word].of(self.name, [*map(_check_operand, values)])


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """The distance of an attribute's points from a place; compare it with ``<`` or ``<=``."""

    attribute: str
    center: Point

    def __lt__(self, metres: float) -> Filter:
        return Near(self.attribute, self.center, metres, open=True)

    def __le__(self, metres: float) -> Filter:
        return Near(self.attribute, self.center, metres)

    def __gt__(self, metres: float) -> Filter:
        raise FilterError(
            "distance is compared with < or <=; write ~(… <= metres) for points farther away"
        )

    __ge__ = __gt__
    __eq__ = __gt__  # type: ignore[assignment]
    __ne__ = __gt__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def col(name: str) -> Column:
    """The attribute of this name, to be compared.

    >>> col("price") < 3300
    (col('price') < 3300)
    >>> (col("price") < 3300) & col("brand").is_in("Huawei", "Honor") & ~col("used").is_true()
    ((col('price') < 3300) & col('brand').is_in('Huawei', 'Honor') & ~(col('used') == True))
    """
    return Column(name)


def _check_operand(value: Any) -> Any:
    if isinstance(value, Column | Distance):
        raise FilterError(
            f"{quoted(value)} is an attribute where a value was expected; attributes are compared "
            "with values only"
        )
    return value


def _check_bound(value: Any) -> Any:
    _check_operand(value)
    if value is None:
        raise FilterError("a comparison with None; use is_null(), or leave that border out")
    if isinstance(value, str):
        raise FilterError(
            f"text {quoted(value)} has no order here; compare numbers or timestamps, or use "
            "starts_with() for text"
        )
    return value


def to_python(node: Filter) -> str:
    """The source of a Python expression that makes an equal filter."""
    if isinstance(node, Call):
        operands = ", ".join(map(literal, node.operands.values()))
        return f"col({node.attribute!r}).{node.word}({operands})"
    return _WRITERS[type(node)](node)


def literal(value: Value | None) -> str:
    """The source of a value."""
    if isinstance(value, float) and math.isinf(value):
        return "float('inf')" if value > 0 else "float('-inf')"
    if isinstance(value, datetime):
        return f"datetime.fromisoformat({value.isoformat()!r})"
    return repr(value)


def _joined(node: Any, operator: str, empty: str) -> str:
    if not node.parts:
        return empty
    return "(" + f" {operator} ".join(map(to_python, node.parts)) + ")"


def _write_range(node: Any) -> str:
    r = node.range
    if r.low is None:
        return f"(col({node.attribute!r}) {'<' if r.high_open else '<='} {literal(r.high)})"
    if r.high is None:
        return f"(col({node.attribute!r}) {'>' if r.low_open else '>='} {literal(r.low)})"
    ends = "" if r.ends == "[]" else f", {r.ends!r}"
    return f"col({node.attribute!r}).between({literal(r.low)}, {literal(r.high)}{ends})"


def _write_near(node: Any) -> str:
    where = f"col({node.attribute!r}).distance({node.center.lon!r}, {node.center.lat!r})"
    return f"({where} {'<' if node.open else '<='} {quoted(node.metres)})"


_WRITERS: dict[type, Callable[[Any], str]] = {
    And: lambda n: _joined(n, "&", "TRUE"),
    Or: lambda n: _joined(n, "|", "FALSE"),
    Not: lambda n: f"~{to_python(n.part)}",
    Equals: lambda n: f"(col({n.attribute!r}) == {literal(n.value)})",
    NotEquals: lambda n: f"(col({n.attribute!r}) != {literal(n.value)})",
    In: lambda n: f"col({n.attribute!r}).is_in({', '.join(map(literal, n.values))})",
    InRange: _write_range,
    Prefix: lambda n: f"col({n.attribute!r}).starts_with({n.prefix!r})",
    Present: lambda n: f"col({n.attribute!r}).is_not_null()",
    Missing: lambda n: f"col({n.attribute!r}).is_null()",
    Within: lambda n: f"col({n.attribute!r}).within({n.polygon!r})",
    InBox: lambda n: f"col({n.attribute!r}).in_box({n.lon1!r}, {n.lat1!r}, {n.lon2!r}, {n.lat2!r})",
    Near: _write_near,
}
