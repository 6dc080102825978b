"""Operands of the SQL spelling: names of attributes, and values."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from sqlglot import exp

from tamis.errors import FilterSyntaxError, quoted
from tamis.language.sql_tokens import RESERVED
from tamis.values import Point, Value, check_integer, parse_timestamp

_TIMESTAMPS = (
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.DATE,
)


class OperandReader:
    """Reads what stands in the conditions of one text; says where something is wrong."""

    def __init__(self, text: str) -> None:
        self.text = text

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
        if is_call(node, "point"):
            lon, lat = self._args(node, 2)
            return Point(self._number(lon), self._number(lat))
        if isinstance(node, exp.Null):
            self._refuse(node, "a comparison with NULL never holds; use IS NULL or IS NOT NULL")
        if is_column(node):
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
        if is_call(node, "infinity"):
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

    def _args(self, node: exp.Expression, count: int) -> list[exp.Expression]:
        if len(node.expressions) != count:
            self._refuse(
                node, f"{node.this} takes {count} arguments; {len(node.expressions)} were given"
            )
        return list(node.expressions)

    # -- saying what is wrong

    def _only(self, node: exp.Expression, *known: str) -> None:
        for name, given in node.args.items():
            if name not in known and given not in (None, False, []):
                self._refuse(node, f"{self._describe(node)} with {quoted(name)} is not supported")

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


def is_column(node: object) -> bool:
    """Whether it names an attribute."""
    return isinstance(node, exp.Column | exp.Dot)


def is_call(node: object, name: str) -> bool:
    """Whether it calls the function of this name."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == name
