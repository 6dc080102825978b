"""The SQL spelling, read: a WHERE condition in the PostgreSQL dialect of sqlglot.

sqlglot makes the syntax tree. It accepts far more than filters, so every node here is
converted from an explicit list, and an argument that the list does not name is an error:
nothing is silently dropped or reinterpreted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from sqlglot import exp

from tamis.errors import FilterSyntaxError, FilterTooComplex, TamisError, quoted
from tamis.language.sql_syntax import parse_condition, room_for
from tamis.language.sql_tokens import RESERVED, tokenise
from tamis.language.tree import (
    FALSE,
    MAX_DEPTH,
    TRUE,
    Equals,
    Filter,
    InBox,
    InRange,
    Missing,
    Near,
    Not,
    NotEquals,
    Prefix,
    Present,
    Within,
    all_of,
    any_of,
    is_in,
)
from tamis.values import Point, Polygon, Range, Value, check_integer, parse_timestamp

MAX_TEXT = 100_000

_FLIPPED: dict[type, type] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE
}  # fmt: skip
_TIMESTAMPS = (
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.DATE,
)
_FUNCTIONS = "within, box, distance, in_range, point, infinity"


def parse_sql(text: str) -> Filter:
    """Read a filter from SQL text.

    >>> parse_sql("price < 3300 AND brand IN ('Huawei', 'Honor') AND NOT used")
    ((col('price') < 3300) & col('brand').is_in('Huawei', 'Honor') & ~(col('used') == True))
    """
    if len(text) > MAX_TEXT:
        raise FilterTooComplex(
            "characters", len(text), MAX_TEXT, "shorten it, or give it as JSON or in Python"
        )
    return _Reader(text).read()


class _Reader:
    """One text on its way to a tree; says where something is wrong."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> Filter:
        tokens, nesting = tokenise(self.text)
        try:
            with room_for(nesting):
                return self._filter(parse_condition(self.text, tokens))
        except RecursionError:
            raise FilterTooComplex(
                "levels of nesting or more", MAX_DEPTH + 1, MAX_DEPTH, "flatten or split it"
            ) from None

    # -- from sqlglot's tree to ours

    def _filter(self, node: exp.Expression) -> Filter:
        convert = _CONVERTERS.get(type(node))
        if convert is None:
            self._refuse(node, f"{self._describe(node)} is not part of the filter language")
        try:
            return convert(self, node)
        except FilterSyntaxError:
            raise
        except FilterTooComplex:
            raise
        except TamisError as error:
            self._refuse(node, str(error))

    def _only(self, node: exp.Expression, *known: str) -> None:
        for name, given in node.args.items():
            if name not in known and given not in (None, False, []):
                self._refuse(node, f"{self._describe(node)} with {quoted(name)} is not supported")

    def _join(self, node: exp.Expression) -> Filter:
        kind, parts = type(node), []
        while type(node) is kind:  # a left-deep chain may be thousands of parts long
            self._only(node, "this", "expression")
            parts.append(node.expression)
            node = node.this
        parts.append(node)
        join = all_of if kind is exp.And else any_of
        return join([self._filter(part) for part in reversed(parts)])

    def _not(self, node: exp.Expression) -> Filter:
        self._only(node, "this")
        return Not(self._filter(node.this))

    def _paren(self, node: exp.Expression) -> Filter:
        self._only(node, "this")
        return self._filter(node.this)

    def _boolean(self, node: exp.Expression) -> Filter:
        return TRUE if node.this else FALSE

    def _bare_column(self, node: exp.Expression) -> Filter:
        return Equals(self._attribute(node), True)

    def _compare(self, node: exp.Expression) -> Filter:
        self._only(node, "this", "expression")
        left, right = node.this, node.expression
        kind: type = type(node)
        if not _is_column(left) and _is_column(right):
            left, right, kind = right, left, _FLIPPED.get(kind, kind)
        if _is_call(left, "distance") or _is_call(right, "distance"):
            return self._distance(node)
        attribute, value = self._attribute(left), self._value(right)
        if kind is exp.EQ:
            return Equals(attribute, value)
        if kind is exp.NEQ:
            return NotEquals(attribute, value)
        bound = self._check_bound(value, right)
        if kind in (exp.LT, exp.LTE):
            return InRange(attribute, Range(high=bound, ends="[)" if kind is exp.LT else "[]"))
        return InRange(attribute, Range(low=bound, ends="(]" if kind is exp.GT else "[]"))

    def _between(self, node: exp.Expression) -> Filter:
        self._only(node, "this", "low", "high")
        low, high = (self._bound(node.args[side]) for side in ("low", "high"))
        return InRange(self._attribute(node.this), Range(low, high))

    def _in(self, node: exp.Expression) -> Filter:
        self._only(node, "this", "expressions")
        values = [self._value(one) for one in node.expressions]
        return is_in(self._attribute(node.this), values)

    def _is(self, node: exp.Expression) -> Filter:
        self._only(node, "this", "expression", "negate")
        attribute, right = self._attribute(node.this), node.expression
        negated = bool(node.args.get("negate"))
        if isinstance(right, exp.Null):
            return Present(attribute) if negated else Missing(attribute)
        if isinstance(right, exp.Boolean):
            test = Equals(attribute, bool(right.this))
            return Not(test) if negated else test
        self._refuse(right, "IS is followed by NULL, NOT NULL, TRUE or FALSE")

    def _like(self, node: exp.Expression, escape: str = "") -> Filter:
        self._only(node, "this", "expression", "negate")
        pattern = self._value(node.expression)
        if not isinstance(pattern, str):
            self._refuse(node.expression, "LIKE is followed by a text such as 'prefix%'")
        if "\\" in pattern and not escape:
            self._refuse(
                node.expression,
                "a backslash in a pattern, which SQL takes for an escape; say which character "
                "escapes: LIKE 'C:\\dir%' ESCAPE '!'",
            )
        attribute = self._attribute(node.this)
        test = self._prefix(attribute, pattern, escape, node.expression)
        return Not(test) if node.args.get("negate") else test

    def _prefix(self, attribute: str, pattern: str, escape: str, node: exp.Expression) -> Filter:
        prefix, position = [], 0
        while position < len(pattern):
            letter = pattern[position]
            if letter == escape:
                position += 1
                prefix.append(self._escaped(pattern, position, escape, node))
            elif letter == "%" and position == len(pattern) - 1:
                return Prefix(attribute, "".join(prefix))
            elif letter in "%_":
                self._refuse(
                    node,
                    f"{quoted(letter)} inside the pattern {quoted(pattern)}; only a prefix, "
                    "'prefix%', is supported (write LIKE 'a!%b%' ESCAPE '!' for the character "
                    "itself)",
                )
            else:
                prefix.append(letter)
            position += 1
        return Equals(attribute, "".join(prefix))

    def _escaped(self, pattern: str, position: int, escape: str, node: exp.Expression) -> str:
        letter = pattern[position : position + 1]
        if not letter or letter not in "%_" + escape:
            self._refuse(
                node,
                f"the escape character {quoted(escape)} in the pattern {quoted(pattern)} is "
                f"followed by {repr(letter) if letter else 'nothing'}; expected '%', '_' or itself",
            )
        return letter

    def _escape(self, node: exp.Expression) -> Filter:
        self._only(node, "this", "expression")
        escape = self._value(node.expression)
        if not isinstance(node.this, exp.Like) or not isinstance(escape, str) or len(escape) != 1:
            self._refuse(node, "ESCAPE follows LIKE and is one character")
        return self._like(node.this, escape)

    def _call(self, node: exp.Expression) -> Filter:
        name, args = str(node.this).lower(), node.expressions
        if name == "within":
            attribute, wkt = self._attribute(self._args(node, 2)[0]), self._value(args[1])
            if not isinstance(wkt, str):
                self._refuse(args[1], "within needs well-known text, 'POLYGON ((…))'")
            return Within(attribute, Polygon.from_wkt(wkt))
        if name == "box":
            attribute = self._attribute(self._args(node, 5)[0])
            return InBox(attribute, *(self._number(one) for one in args[1:]))
        if name == "in_range":
            return self._in_range(node)
        if name == "distance":
            self._refuse(node, "distance(…) is compared: distance(location, lon, lat) < metres")
        if name in ("point", "infinity"):
            self._refuse(node, f"{name}(…) is a value; compare an attribute with it")
        self._refuse(node, f"unknown function {quoted(node.name)}; known are {_FUNCTIONS}")

    def _in_range(self, node: exp.Expression) -> Filter:
        attribute, low, high, ends = self._args(node, 4)
        first, last = (None if isinstance(b, exp.Null) else self._bound(b) for b in (low, high))
        borders: Any = self._value(ends)  # Range checks them
        return InRange(self._attribute(attribute), Range(first, last, borders))

    def _distance(self, node: exp.Expression) -> Filter:
        kind: type = type(node)
        call, metres = node.this, node.expression
        if not _is_call(call, "distance"):
            call, metres, kind = metres, call, _FLIPPED.get(kind, kind)
        if kind not in (exp.LT, exp.LTE):
            self._refuse(
                node,
                "distance(…) is compared with < or <=; write NOT distance(…) <= metres for points "
                "farther away",
            )
        attribute, lon, lat = self._args(call, 3)
        center = Point(self._number(lon), self._number(lat))
        return Near(self._attribute(attribute), center, self._number(metres), kind is exp.LT)

    def _args(self, node: exp.Expression, count: int) -> list[exp.Expression]:
        if len(node.expressions) != count:
            self._refuse(
                node, f"{node.this} takes {count} arguments; {len(node.expressions)} were given"
            )
        return list(node.expressions)

    # -- names and values

    def _attribute(self, node: exp.Expression) -> str:
        if isinstance(node, exp.Paren):
            return self._attribute(node.this)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return f"{self._attribute(node.this)}.{node.expression.this}"
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            self._refuse(node, f"expected the name of an attribute, not {self._describe(node)}")
        self._only(node, "this", "table", "db", "catalog")
        for part in node.parts:
            name = str(part.this)
            if part.args.get("quoted"):
                continue
            if not name.isidentifier() or name.upper() in RESERVED:
                self._refuse(node, f"{quoted(name)} is not a plain name; put it in double quotes")
        return ".".join(str(part.this) for part in node.parts)

    def _value(self, node: exp.Expression) -> Value:
        if isinstance(node, exp.Paren):
            return self._value(node.this)
        if isinstance(node, exp.Literal) and node.is_string:
            return str(node.this)
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Cast):
            return self._timestamp(node)
        if _is_call(node, "point"):
            lon, lat = self._args(node, 2)
            return Point(self._number(lon), self._number(lat))
        if isinstance(node, exp.Null):
            self._refuse(node, "a comparison with NULL never holds; use IS NULL or IS NOT NULL")
        if _is_column(node):
            self._refuse(
                node,
                f"expected a value, not the attribute {quoted(self._attribute(node))}; text is "
                "written in single quotes",
            )
        return self._number(node, "a value: a number, a text in single quotes, TRUE or FALSE")

    def _number(self, node: exp.Expression, expected: str = "a number") -> int | float:
        sign = 1
        while isinstance(node, exp.Neg | exp.Paren):
            sign = -sign if isinstance(node, exp.Neg) else sign
            node = node.this
        if _is_call(node, "infinity"):
            self._args(node, 0)
            return sign * math.inf
        if not isinstance(node, exp.Literal) or node.is_string:
            self._refuse(node, f"expected {expected}, not {self._describe(node)}")
        digits = str(node.this)
        if digits.isdecimal() and digits.isascii():
            if len(digits.lstrip("0")) > 19:
                self._refuse(node, f"{digits[:30]} is outside int64; write it as a float, 1e20")
            return check_integer(sign * int(digits))
        try:
            number = sign * float(digits)
        except ValueError:  # sqlglot lets 1e and 1e5.5 pass for numbers
            self._refuse(node, f"{quoted(digits)} is not a number")
        if math.isinf(number):
            self._refuse(node, f"{digits[:30]} is beyond float64; infinity() is spelled so")
        return number

    def _timestamp(self, node: exp.Expression) -> Value:
        target, text = node.args["to"], node.this
        is_text = isinstance(text, exp.Literal) and text.is_string
        if type(node) is not exp.Cast or target.this not in _TIMESTAMPS or not is_text:
            self._refuse(node, "casts are not part of the filter language")
        self._only(node, "this", "to")
        self._only(target, "this", "nested")
        if target.this is exp.DataType.Type.DATE and len(text.this) > len("2026-01-31"):
            self._refuse(
                node, f"DATE {quoted(text.this)} has a time of day; write TIMESTAMP instead"
            )
        moment = parse_timestamp(str(node.this.this))
        if moment is None:
            self._refuse(
                node,
                f"{quoted(node.this.this)} is not a timestamp; expected e.g. 2026-01-31T12:00:00Z",
            )
        return moment

    def _bound(self, node: exp.Expression) -> Any:
        return self._check_bound(self._value(node), node)

    def _check_bound(self, value: Value, node: exp.Expression) -> Any:
        if isinstance(value, str):
            self._refuse(
                node,
                f"text {quoted(value)} has no order here; compare with a number or with "
                "TIMESTAMP '2026-01-31T12:00:00Z', or use LIKE 'prefix%' for text",
            )
        return value

    # -- saying what is wrong

    def _describe(self, node: exp.Expression) -> str:
        return quoted(node.sql(dialect="postgres"))

    def _refuse(self, node: exp.Expression, problem: str) -> NoReturn:
        self._fail(problem, self._offset(node))

    def _offset(self, node: exp.Expression) -> int:
        """Where a node begins: its own token, or the first one inside it."""
        starts = [one.meta["start"] for one in node.walk() if "start" in one.meta]
        if starts:
            return int(min(starts))
        parent = node.parent
        return self._offset(parent) if isinstance(parent, exp.Expression) else 0

    def _fail(self, problem: str, offset: int) -> NoReturn:
        raise FilterSyntaxError(problem, text=self.text, offset=offset)


_CONVERTERS: dict[type, Callable[[_Reader, Any], Filter]] = {
    exp.And: _Reader._join,
    exp.Or: _Reader._join,
    exp.Not: _Reader._not,
    exp.Paren: _Reader._paren,
    exp.Boolean: _Reader._boolean,
    exp.Column: _Reader._bare_column,
    exp.Dot: _Reader._bare_column,
    exp.EQ: _Reader._compare,
    exp.NEQ: _Reader._compare,
    exp.LT: _Reader._compare,
    exp.LTE: _Reader._compare,
    exp.GT: _Reader._compare,
    exp.GTE: _Reader._compare,
    exp.Between: _Reader._between,
    exp.In: _Reader._in,
    exp.Is: _Reader._is,
    exp.Like: _Reader._like,
    exp.Escape: _Reader._escape,
    exp.Anonymous: _Reader._call,
}


def _is_column(node: object) -> bool:
    return isinstance(node, exp.Column | exp.Dot)


def _is_call(node: object, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == name
