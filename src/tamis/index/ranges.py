"""Ranges: filters that are nothing but ranges of numbers, the quick way to a slot.

Most filters are conjunctions of ranges over different attributes. Their slot needs no normal
form, and all of it but the numbers of the columns can be made before the index is locked.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tamis.index.columns import NUMBER, Columns
from tamis.index.slots import Slot
from tamis.language import Filter
from tamis.language.tree import And, InRange

_INF = math.inf


class Ranges(NamedTuple):
    """Closed intervals of float64, each of another attribute, and which ends were open."""

    attributes: list[str]
    lows: list[float]
    highs: list[float]
    ends: list[str]

    def slot(self, columns: Columns) -> Slot:
        """The slot they are."""
        numbers = [columns.column(attribute, NUMBER) for attribute in self.attributes]
        slot = Slot(dict(zip(numbers, zip(self.lows, self.highs, strict=True), strict=True)))
        slot.notes = [
            (column, ends) for column, ends in zip(numbers, self.ends, strict=True) if ends != "[]"
        ]
        return slot


def ranges_of(condition: Filter) -> Ranges | None:
    """A conjunction of ranges between two floats each; None for any other filter."""
    parts = condition.parts if type(condition) is And else (condition,)
    names, lows, highs, all_ends = made = Ranges([], [], [], [])
    for part in parts:
        if type(part) is not InRange:
            return None
        wanted = part.range
        low, high, ends = wanted.low, wanted.high, wanted.ends
        if type(low) is not float or type(high) is not float or not low < high:
            return None
        if ends != "[]":
            if ends[0] == "(":
                low = math.nextafter(low, _INF)
            if ends[1] == ")":
                high = math.nextafter(high, -_INF)
        names.append(part.attribute)
        lows.append(low)
        highs.append(high)
        all_ends.append(ends)
    # The ranges of one attribute merge, or may be satisfied by two values: not here.
    return made if len(set(names)) == len(names) else None
