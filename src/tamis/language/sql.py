"""The SQL spelling, read: a WHERE condition in the PostgreSQL dialect of sqlglot.

sqlglot makes the syntax tree. It accepts far more than filters, so every node here is
converted from an explicit list, and an argument that the list does not name is an error:
nothing is silently dropped or reinterpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from tamis.errors import FilterSyntaxError, FilterTooComplex, TamisError, quoted
from tamis.language.calls import CALLS
from tamis.language.sql_operands import OperandReader, is_call, is_column
from tamis.language.sql_syntax import parse_condition, room_for
from tamis.language.sql_tokens import tokenise
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
from tamis.values import Point, Polygon, Range

MAX_TEXT = 100_000

_FLIPPED: dict[type, type] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE
}  # fmt: skip
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


class _Reader(OperandReader):
    """One text on its way to a tree."""

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
        if not is_column(left) and is_column(right):
            left, right, kind = right, left, _FLIPPED.get(kind, kind)
        if is_call(left, "distance") or is_call(right, "distance"):
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
        if name not in CALLS:
            known = ", ".join((_FUNCTIONS, *CALLS))
            self._refuse(node, f"unknown function {quoted(node.name)}; known are {known}")
        if not args:
            self._refuse(node, f"{name} needs the attribute that it is about")
        return CALLS[name].of(self._attribute(args[0]), [self._value(one) for one in args[1:]])

    def _in_range(self, node: exp.Expression) -> Filter:
        attribute, low, high, ends = self._args(node, 4)
        first, last = (None if isinstance(b, exp.Null) else self._bound(b) for b in (low, high))
        borders: Any = self._value(ends)  # Range checks them
        return InRange(self._attribute(attribute), Range(first, last, borders))

    def _distance(self, node: exp.Expression) -> Filter:
        kind: type = type(node)
        call, metres = node.this, node.expression
        if not is_call(call, "distance"):
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
