"""Attributes of an event: each name with the values it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tamis.errors import InvalidEvent, InvalidValue, quoted
from tamis.values.encoding import is_json_value, value_from_json
from tamis.values.kinds import Value, check_value
from tamis.values.ranges import Range

Attributes = dict[str, tuple[Value, ...]]

_MAX_NESTING = 32
_SEVERAL = (list, tuple, set, frozenset)


class HasAttributes(Protocol):
    """Anything with checked attributes: an Event."""

    @property
    def attributes(self) -> Attributes:
        """Each name with its values."""


def attributes_of(event: HasAttributes | Mapping[str, Any]) -> Attributes:
    """The checked attributes of an Event, or of a mapping."""
    if isinstance(event, Mapping):
        return as_attributes(event)
    if not hasattr(event, "attributes"):
        raise InvalidEvent(
            f"{type(event).__name__} is not an event; expected an Event or a dict of attributes"
        )
    return event.attributes


def as_attributes(raw: Mapping[str, Any]) -> Attributes:
    """Check and flatten a mapping; missing values (None, NaN, empty lists) are left out.

    >>> as_attributes({"price": 3200, "tag": ["new", "sale"], "car": {"mark": "FORD"}, "x": None})
    {'price': (3200,), 'tag': ('new', 'sale'), 'car.mark': ('FORD',)}
    """
    attributes: Attributes = {}
    for name, held in _flatten(raw, "", 0):
        try:
            values = _values_of(held)
        except InvalidValue as error:
            raise InvalidValue(f"attribute {quoted(name)}: {error}") from None
        if not values:
            continue
        if name in attributes:
            raise InvalidValue(
                f"attribute {quoted(name)} is given twice, nested and with a dotted name; keep one"
            )
        attributes[name] = values
    return attributes


def _flatten(raw: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _MAX_NESTING:
        raise InvalidValue(f"attributes nested more than {_MAX_NESTING} deep at {quoted(prefix)}")
    for key, held in raw.items():
        if not isinstance(key, str) or not key:
            raise InvalidValue(f"attribute name {quoted(key)} is not a non-empty text")
        check_value(key)
        name = prefix + key
        if isinstance(held, Mapping) and not is_json_value(held):
            yield from _flatten(held, name + ".", depth + 1)
        else:
            yield name, held


def _values_of(held: Any) -> tuple[Value, ...]:
    if isinstance(held, np.ndarray):
        held = list(held) if held.ndim else held.item()
    # Arrow's calendar interval is a tuple, yet one thing, and no value.
    if isinstance(held, _SEVERAL) and not isinstance(held, pa.MonthDayNano):
        values = [v for v in map(_value_of, held) if v is not None]
        # The order of first appearance is kept; 1, 1.0 and True are told apart by type.
        return tuple(value for _, value in dict.fromkeys((type(v), v) for v in values))
    value = _value_of(held)
    return () if value is None else (value,)


def _value_of(raw: Any) -> Value | None:
    value = value_from_json(raw) if isinstance(raw, Mapping) else check_value(raw)
    if isinstance(value, Range) and value.is_empty:
        raise InvalidValue(
            f"{quoted(value)} is an empty range; the low border lies above the high one"
        )
    return value
