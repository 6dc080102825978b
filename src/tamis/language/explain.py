"""``explain``: the filter's tree with, at every node, whether it held and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.errors import shortened
from tamis.language.evaluate import accepts, satisfies
from tamis.language.sql_writer import attribute_text, to_sql, value_text
from tamis.language.tree import (
    And,
    Filter,
    InBox,
    InRange,
    Missing,
    Near,
    Not,
    Or,
    Predicate,
    Present,
    Within,
)
from tamis.values import (
    Attributes,
    HasAttributes,
    Point,
    Polygon,
    Range,
    Value,
    attributes_of,
    distance_m,
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One node of a filter on one event: whether it held, the reason, and its parts."""

    filter: Filter
    held: bool
    reason: str
    parts: tuple[Explanation, ...] = ()

    def lines(self, indent: int = 0) -> Iterator[str]:
        """The tree as text, a line a node."""
        mark = "✓" if self.held else "✗"
        yield f"{'  ' * indent}{mark} {self.reason}"
        for part in self.parts:
            yield from part.lines(indent + 1)

    def to_json(self) -> dict[str, Any]:
        """The tree as a JSON object."""
        made: dict[str, Any] = {
            "filter": to_sql(self.filter), "held": self.held, "reason": self.reason,
        }  # fmt: skip
        if self.parts:
            made["parts"] = [part.to_json() for part in self.parts]
        return made

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(node: Filter, event: HasAttributes | Mapping[str, Any]) -> Explanation:
    """Why a filter accepts an event, or does not, clause by clause.

    >>> from tamis.language import parse_filter
    >>> print(explain(parse_filter("price < 3300 AND brand = 'Huawei'"), {"price": 3400}))
    ✗ not all of 2 hold
      ✗ price = 3400 is not < 3300
      ✗ no attribute 'brand'
    """
    return _explain(node, attributes_of(event))


def _explain(node: Filter, attributes: Attributes) -> Explanation:
    held = accepts(node, attributes)
    if isinstance(node, Not):
        part = _explain(node.part, attributes)
        return Explanation(node, held, f"NOT: its part {_verb(part.held)}", (part,))
    if isinstance(node, And | Or):
        parts = tuple(_explain(part, attributes) for part in node.parts)
        return Explanation(node, held, _reason_of_join(node, parts), parts)
    assert isinstance(node, Predicate)
    return Explanation(node, held, _reason(node, attributes.get(node.attribute, ())))


def _verb(held: bool) -> str:
    return "holds" if held else "does not hold"


def _reason_of_join(node: And | Or, parts: tuple[Explanation, ...]) -> str:
    n_held = sum(part.held for part in parts)
    if isinstance(node, And):
        if not parts:
            return "TRUE accepts everything"
        return (
            f"all of {len(parts)} hold" if n_held == len(parts) else f"not all of {len(parts)} hold"
        )
    if not parts:
        return "FALSE accepts nothing"
    return f"{n_held} of {len(parts)} hold" if n_held else f"none of {len(parts)} holds"


def _reason(node: Predicate, values: tuple[Value, ...]) -> str:
    name = attribute_text(node.attribute)
    if isinstance(node, Missing):
        if not values:
            return f"no attribute {node.attribute!r}, as asked"
        return f"{name} is present, it is {_shown_all(values)}"
    if not values:
        return f"no attribute {node.attribute!r}"
    winner = next((value for value in values if satisfies(node, value)), None)
    if winner is not None:
        return f"{name} = {_shown(winner)} {_clause(node, winner, True)}"
    if len(values) == 1:
        return f"{name} = {_shown(values[0])} {_clause(node, values[0], False)}"
    return f"none of {name} = {_shown_all(values)} is {_asked(node)}"


def _clause(node: Predicate, value: Value, held: bool) -> str:
    """What a predicate asks, as the end of a sentence about a value: ``is not < 3300``."""
    asked = _asked(node) if held else f"not {_asked(node)}"
    if isinstance(node, Near) and isinstance(value, Point) and value.is_place:
        metres = distance_m(node.center, value)
        rounded = round(metres, 1)
        # Not rounded to the other side of what is asked.
        is_within = rounded < node.metres if node.open else rounded <= node.metres
        return f"is {rounded if is_within == held else metres} m away, {asked}"
    return f"is {asked}"


def _asked(node: Predicate) -> str:
    if isinstance(node, Near):
        lon, lat = node.center.lon, node.center.lat
        return f"{'<' if node.open else '<='} {node.metres} m from ({lon}, {lat})"
    if isinstance(node, InRange) and node.range.low is not None and node.range.high is not None:
        return f"in {_shown(node.range)}"
    if isinstance(node, Present):
        return "present"
    if isinstance(node, Within):
        return "within the polygon"
    if isinstance(node, InBox):
        return f"in {to_sql(node)}"
    return shortened(to_sql(node).removeprefix(attribute_text(node.attribute) + " "))


def _shown_all(values: tuple[Value, ...]) -> str:
    shown = ", ".join(map(_shown, values[:5]))
    return "{" + shown + (f", … {len(values)} in all" if len(values) > 5 else "") + "}"


def _shown(value: Value) -> str:
    if isinstance(value, Range):
        low, high = (None if b is None else value_text(b) for b in (value.low, value.high))
        return f"{value.ends[0]}{low or '…'}, {high or '…'}{value.ends[1]}"
    if isinstance(value, Polygon):
        return "a polygon"
    return shortened(value_text(value), 60)
