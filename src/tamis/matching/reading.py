"""Reading: subscriptions and events as a user writes them, into rows of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidEvent, InvalidSubscription, InvalidValue
from tamis.matching.attributes import UNKNOWN_TEXT, Attribute, TextCodes
from tamis.matching.numbers import EXACT
from tamis.matching.table import Table
from tamis.values import Range

Floats = npt.NDArray[np.float64]
_NO_TEXT = -2.0  # equals no text of an event, not even an unknown one


@dataclass(frozen=True, slots=True)
class NotEqual:
    """Every value but this one.

    >>> NotEqual("red")
    NotEqual(value='red')
    """

    value: float | str


Constraint = float | str | Range | NotEqual
"""What a subscription asks of an attribute: a value, a Range, or NotEqual to a value."""


class Reader:
    """Turns names into columns and texts into codes."""

    def __init__(self, attributes: Sequence[Attribute]) -> None:
        self.attributes = tuple(attributes)
        self._numbers = {one.name: m for m, one in enumerate(attributes)}
        self.texts = {one.name: TextCodes() for one in attributes if one.is_text}

    def number_of(self, name: str) -> int:
        """The column of an attribute."""
        if name not in self._numbers:
            known = ", ".join(map(repr, list(self._numbers)[:10]))
            raise InvalidSubscription(f"no attribute {name!r}; this matcher has {known}")
        return self._numbers[name]

    def subscription(
        self, constraints: Mapping[str, Constraint], *, is_saved: bool = True
    ) -> Table:
        """A table of one row. If it is not to be saved, its texts get no code."""
        numbers = sorted((self.number_of(name), name) for name in constraints)
        entries = [
            self._entry(self.attributes[m], constraints[name], is_saved) for m, name in numbers
        ]
        low, high, low_open, high_open, negated = (
            zip(*entries, strict=True) if entries else [()] * 5
        )
        return Table.from_constraints(
            [0, len(entries)],
            np.array([m for m, _ in numbers], np.int64),
            np.array(low, np.float64),
            np.array(high, np.float64),
            low_open=np.array(low_open, np.bool_),
            high_open=np.array(high_open, np.bool_),
            negated=np.array(negated, np.uint8),
            n_attributes=len(self.attributes),
        )

    def event(self, values: Mapping[str, float | str | None]) -> Floats:
        """A row of numbers, NaN where the event has no value; other names are ignored."""
        row = np.full(len(self.attributes), np.nan)
        for name, value in values.items():
            m = self._numbers.get(name, -1)
            if m < 0 or value is None:
                continue
            if self.attributes[m].is_text != isinstance(value, str):
                continue  # a value of the wrong type meets no constraint
            if isinstance(value, str):
                row[m] = self.texts[name].code_of(value)
            else:
                row[m] = _number(value, InvalidEvent)
        return row

    def _entry(
        self, attribute: Attribute, constraint: Constraint, is_saved: bool
    ) -> tuple[float, float, bool, bool, bool]:
        if isinstance(constraint, Range):
            if attribute.is_text or constraint.is_of_timestamps:
                raise InvalidSubscription(
                    f"{constraint} on {attribute.name!r}; expected a range of numbers on an "
                    "attribute of numbers"
                )
            low, high = (
                outer if bound is None else _number(bound, InvalidSubscription)
                for bound, outer in ((constraint.low, -np.inf), (constraint.high, np.inf))
            )
            return low, high, constraint.low_open, constraint.high_open, False
        negated = isinstance(constraint, NotEqual)
        value = constraint.value if isinstance(constraint, NotEqual) else constraint
        if attribute.is_text != isinstance(value, str):
            wanted = "a text" if attribute.is_text else "a number"
            raise InvalidSubscription(f"{value!r} on {attribute.name!r}; expected {wanted}")
        if isinstance(value, str):
            point = self._code(self.texts[attribute.name], value, is_saved)
        else:
            point = _number(value, InvalidSubscription)
            if point != point:
                raise InvalidSubscription(f"NaN on {attribute.name!r}; it equals nothing")
        return point, point, False, False, negated

    def _code(self, texts: TextCodes, value: str, is_saved: bool) -> float:
        code = texts.add(value) if is_saved else texts.code_of(value)
        return _NO_TEXT if code == UNKNOWN_TEXT else code


def _number(value: object, error: type[InvalidValue | InvalidEvent | InvalidSubscription]) -> float:
    if isinstance(value, np.integer | np.floating):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise error(f"{value!r} is not a number")
    if isinstance(value, int) and abs(value) > EXACT:
        raise error(f"{value} is beyond 2^53, where float64 is not exact")
    return float(value)
