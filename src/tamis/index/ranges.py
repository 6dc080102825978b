"""Ranges: filters that are nothing but ranges of numbers, the quick way into the head.

Most filters are conjunctions of ranges over different attributes. They need no normal form and
no slot, and all but the numbers of their columns can be made before the index is locked.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable
from typing import NamedTuple

from tamis.language import Filter
from tamis.language.tree import And, InRange
from tamis.slots.columns import Columns
from tamis.slots.lanes import NUMBER

MAX_LAYOUTS = 4096  # combinations of attributes whose columns are remembered

_INF = math.inf


class Box(NamedTuple):
    """Closed intervals of float64, by ascending column, and which ends were open."""

    columns: array[int]
    lows: array[float]
    highs: array[float]
    ends: str

    @property
    def key(self) -> Hashable:
        """What equal boxes have in common."""
        return self.lows.tobytes(), self.highs.tobytes(), self.columns.tobytes(), self.ends


class Ranges(NamedTuple):
    """Closed intervals of float64, each of another attribute, and which ends were open."""

    attributes: tuple[str, ...]
    lows: list[float]
    highs: list[float]
    ends: list[str]


def ranges_of(condition: Filter) -> Ranges | None:
    """A conjunction of ranges between two floats each; None for any other filter."""
    parts = condition.parts if type(condition) is And else (condition,)
    names: list[str] = []
    lows: list[float] = []
    highs: list[float] = []
    all_ends: list[str] = []
    for part in parts:
        if type(part) is not InRange:
            return None
        wanted = part.range
        low, high, ends = wanted.low, wanted.high, wanted.ends
        if type(low) is not float or type(high) is not float:
            return None
        if not low < high and (low != high or ends != "[]"):
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
    if len(set(names)) < len(names):
        return None
    return Ranges(tuple(names), lows, highs, all_ends)


class Layouts:
    """Which columns the ranges of some attributes stand in."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._known: dict[tuple[str, ...], tuple[array[int], list[int] | None]] = {}

    def box_of(self, ranges: Ranges) -> Box:
        """The box that ranges are."""
        names, lows, highs, ends = ranges
        columns, order = self._known.get(names) or self._new(names)
        if order is not None:
            lows, highs = ([side[i] for i in order] for side in (lows, highs))
            ends = [ends[i] for i in order]
        return Box(columns, array("d", lows), array("d", highs), "".join(ends))

    def _new(self, names: tuple[str, ...]) -> tuple[array[int], list[int] | None]:
        columns = [self._columns.column(name, NUMBER) for name in names]
        order = sorted(range(len(names)), key=columns.__getitem__)
        is_ascending = columns == sorted(columns)
        made = array("i", sorted(columns)), None if is_ascending else order
        if len(self._known) >= MAX_LAYOUTS:
            self._known.clear()
        self._known[(*names,)] = made  # the other tuple would keep memory beside it in use
        return made
