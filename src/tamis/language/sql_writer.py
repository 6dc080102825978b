"""The SQL spelling, written: a tree as the text that ``parse_sql`` reads back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlglot.dialects.postgres import Postgres

from tamis.language.calls import Call
from tamis.language.sql_tokens import RESERVED
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
)
from tamis.values import Point, Value, timestamp_text

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_WORDS = frozenset(
    word.upper()
    for words in (
        Postgres.Tokenizer.KEYWORDS,
        Postgres.Parser.NO_PAREN_FUNCTION_PARSERS,
        Postgres.Parser.FUNCTION_PARSERS,
        RESERVED,
    )
    for word in words
)


def to_sql(node: Filter) -> str:
    """The SQL text of a filter.

    >>> to_sql(Not(And((Equals("brand", "O'Neill"), Missing("price")))))
    "NOT (brand = 'O''Neill' AND price IS NULL)"
    """
    return _write_call(node) if isinstance(node, Call) else _WRITERS[type(node)](node)


def attribute_text(name: str) -> str:
    """A name as it stands in SQL text: quoted unless every dotted part is a plain word."""
    if all(_BARE.fullmatch(part) and part.upper() not in _WORDS for part in name.split(".")):
        return name
    return '"' + name.replace('"', '""') + '"'


def value_text(value: Value) -> str:
    """A value as it stands in SQL text."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{timestamp_text(value)}'"
    if isinstance(value, Point):
        return f"point({value.lon!r}, {value.lat!r})"
    if isinstance(value, float) and math.isinf(value):
        return "infinity()" if value > 0 else "-infinity()"
    return repr(value)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _joined(node: Any, word: str, empty: str) -> str:
    return f" {word} ".join(map(_nested, node.parts)) if node.parts else empty


def _nested(node: Filter) -> str:
    text = to_sql(node)
    return (
        f"({text})" if isinstance(node, And | Or | Not) and text not in ("TRUE", "FALSE") else text
    )


def _compared(node: Any, operator: str, value: Value) -> str:
    return f"{attribute_text(node.attribute)} {operator} {value_text(value)}"


def _write_call(node: Call) -> str:
    operands = map(value_text, node.operands.values())
    return f"{node.word}({', '.join((attribute_text(node.attribute), *operands))})"


def _write_range(node: Any) -> str:
    r = node.range
    if r.low is None:
        return _compared(node, "<" if r.high_open else "<=", r.high)
    if r.high is None:
        return _compared(node, ">" if r.low_open else ">=", r.low)
    name, low, high = attribute_text(node.attribute), value_text(r.low), value_text(r.high)
    if r.ends == "[]":
        return f"{name} BETWEEN {low} AND {high}"
    return f"in_range({name}, {low}, {high}, '{r.ends}')"


def _write_prefix(node: Any) -> str:
    prefix = node.prefix
    if not re.search(r"[%_\\]", prefix):
        return f"{attribute_text(node.attribute)} LIKE {_quote(prefix + '%')}"
    escaped = re.sub(r"([!%_])", r"!\1", prefix)
    return f"{attribute_text(node.attribute)} LIKE {_quote(escaped + '%')} ESCAPE '!'"


def _write_near(node: Any) -> str:
    call = f"distance({attribute_text(node.attribute)}, {node.center.lon!r}, {node.center.lat!r})"
    return f"{call} {'<' if node.open else '<='} {node.metres!r}"


def _write_box(node: Any) -> str:
    corners = f"{node.lon1!r}, {node.lat1!r}, {node.lon2!r}, {node.lat2!r}"
    return f"box({attribute_text(node.attribute)}, {corners})"


_WRITERS: dict[type, Callable[[Any], str]] = {
    And: lambda n: _joined(n, "AND", "TRUE"),
    Or: lambda n: _joined(n, "OR", "FALSE"),
    Not: lambda n: f"NOT ({to_sql(n.part)})",
    Equals: lambda n: _compared(n, "=", n.value),
    NotEquals: lambda n: _compared(n, "!=", n.value),
    In: lambda n: f"{attribute_text(n.attribute)} IN ({', '.join(map(value_text, n.values))})",
    InRange: _write_range,
    Prefix: _write_prefix,
    Present: lambda n: f"{attribute_text(n.attribute)} IS NOT NULL",
    Missing: lambda n: f"{attribute_text(n.attribute)} IS NULL",
    Within: lambda n: f"within({attribute_text(n.attribute)}, {_quote(n.polygon.to_wkt())})",
    InBox: _write_box,
    Near: _write_near,
}
