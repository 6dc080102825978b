"""Inner lists: the slots whose interval lies between two values of an event in a column.

An interval that meets another holds its lower end, or its upper end, or lies between them. The
first two are found by matching the ends like any value; the others are in these lists. Few events
have more than one value in a column, so a list is made when it is first needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.index.blocks import Array
from tamis.kernels.scan import Boxes, Constraints


class InnerList(NamedTuple):
    """The constraints on one column, by their lower bounds."""

    low: Array  # f8[K], ascending
    high: Array  # f8[K]
    slot: Array  # i4[K]

    def between(self, low: float, high: float) -> Array:
        """The slots whose interval holds neither end of another, but may lie in it."""
        first, last = np.searchsorted(self.low, (low, high), side="right").tolist()
        return self.slot[first:last][self.high[first:last] < high]


class InnerLists:
    """The lists of the columns that were asked for; any thread may ask."""

    def __init__(self, bounds: Constraints | Boxes) -> None:
        self._bounds = bounds
        self._made: dict[int, InnerList] = {}

    def of(self, column: int) -> InnerList:
        """The list of a column, made if it is not there."""
        made = self._made.get(column)
        if made is None:
            made = self._made[column] = _list_of(self._bounds, column)
        return made

    def memory_bytes(self) -> int:
        """Bytes of all lists."""
        return sum(array.nbytes for one in list(self._made.values()) for array in one)


def _list_of(bounds: Constraints | Boxes, column: int) -> InnerList:
    if isinstance(bounds, Boxes):
        (place,) = np.nonzero(bounds.columns == column)[0]
        low, high = bounds.bounds[:, place, 0], bounds.bounds[:, place, 1]
        slots = np.arange(len(low))
    else:
        places = np.nonzero(bounds.column == column)[0]
        low, high = bounds.low[places], bounds.high[places]
        slots = np.searchsorted(bounds.start, places, side="right") - 1
    order = np.argsort(low, kind="stable")
    return InnerList(low[order], high[order], slots[order].astype(np.int32))
