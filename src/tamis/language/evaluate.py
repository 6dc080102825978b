"""The exact oracle: a parsed filter evaluated on one event, node by node.

It is the truth every index and algorithm is tested against, and shares no code with them.
The meaning it implements is written down in docs/filter-language.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
    Predicate,
    Prefix,
    Present,
    Within,
)
from tamis.values import (
    Attributes,
    HasAttributes,
    Point,
    Value,
    attributes_of,
    covers,
    distance_m,
)
from tamis.values.coverage import as_bound


def evaluate(node: Filter, event: HasAttributes | Mapping[str, Any]) -> bool:
    """Whether the filter accepts the event, an Event or a mapping of attributes.

    >>> from tamis.language import parse_filter
    >>> event = {"brand": "Huawei", "price": 3200}
    >>> evaluate(parse_filter("brand = 'Huawei' AND price < 3300"), event)
    True
    >>> evaluate(parse_filter("NOT price < 10"), {})
    True
    >>> evaluate(parse_filter("price != 10"), {})
    False
    """
    return accepts(node, attributes_of(event))


def accepts(node: Filter, attributes: Attributes) -> bool:
    """``evaluate`` on attributes that are checked already."""
    if isinstance(node, And):
        return all(accepts(part, attributes) for part in node.parts)
    if isinstance(node, Or):
        return any(accepts(part, attributes) for part in node.parts)
    if isinstance(node, Not):
        return not accepts(node.part, attributes)
    if not isinstance(node, Predicate):
        raise TypeError(f"{node!r} is not a filter")
    values = attributes.get(node.attribute, ())
    if isinstance(node, Missing):
        return not values
    holds = _TESTS[type(node)]
    return any(holds(node, value) for value in values)


def satisfies(node: Predicate, value: Value) -> bool:
    """Whether one value satisfies a predicate (one that is not Missing)."""
    return _TESTS[type(node)](node, value)


def _differs(node: NotEquals, value: Value) -> bool:
    wanted = node.value
    if isinstance(wanted, bool | str | Point):
        return type(value) is type(wanted) and value != wanted
    bound = as_bound(value, like=wanted)  # type: ignore[arg-type]  # numbers and timestamps
    return bound is not None and bound != wanted


def _in_box(node: InBox, value: Value) -> bool:
    if not isinstance(value, Point) or not node.lat1 <= value.lat <= node.lat2:
        return False
    if node.lon1 <= node.lon2:
        return node.lon1 <= value.lon <= node.lon2
    return value.is_place and (value.lon >= node.lon1 or value.lon <= node.lon2)


def _is_near(node: Near, value: Value) -> bool:
    if not isinstance(value, Point) or not value.is_place:
        return False
    metres = distance_m(node.center, value)
    return metres < node.metres if node.open else metres <= node.metres


_TESTS: dict[type, Callable[[Any, Value], bool]] = {
    Equals: lambda node, value: covers(node.value, value),
    NotEquals: _differs,
    In: lambda node, value: any(covers(wanted, value) for wanted in node.values),
    InRange: lambda node, value: covers(node.range, value),
    Prefix: lambda node, value: isinstance(value, str) and value.startswith(node.prefix),
    Present: lambda node, value: True,
    Within: lambda node, value: covers(node.polygon, value),
    InBox: _in_box,
    Near: _is_near,
}
