"""IndexedBlock: a block that finds the slots of a value quickly, and so those of an interval."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from itertools import product

import numpy as np

from tamis.index.blocks import NO_ROWS, Array, Block
from tamis.index.inner_lists import InnerLists
from tamis.kernels.scan import Boxes, Constraints, scan_slots
from tamis.kernels.tests import NO_TESTS, Tests
from tamis.slots.encoding import Vector

MAX_OPEN = 3  # columns with more than one value, of an event that is not compared with all slots


class IndexedBlock(Block):
    """What blocks with a structure of their own share."""

    def __init__(
        self, bounds: Constraints | Boxes, row_of_slot: Array = NO_ROWS, tests: Tests = NO_TESTS
    ) -> None:
        super().__init__(bounds, row_of_slot, tests)
        self._inner = InnerLists(bounds)

    @abstractmethod
    def columns_in_use(self) -> Array:
        """The columns that slots constrain."""

    def asks_for(self, columns: Iterable[int]) -> bool:
        """Whether slots constrain one of the columns."""
        return not self._asked.isdisjoint(columns)

    @cached_property
    def _asked(self) -> frozenset[int]:
        return frozenset(self.columns_in_use().tolist())

    def candidates_in_hull(self, low: Vector, high: Vector, out: Array) -> tuple[int, int]:
        """Write the slots whose every interval meets the event's; return two numbers.

        A slot that is found by every corner of the event's hull holds for certain; one that is
        found by some corners may hold, and so may one with an interval between the ends.
        """
        used = self.columns_in_use()
        open_columns = used[low[used] < high[used]].tolist()
        if len(open_columns) > MAX_OPEN:
            return super().candidates_in_hull(low, high, out)
        corners = _corners(low, high, open_columns)
        found = [out[: self.candidates(corner, out)].copy() for corner in corners]
        slots, counts = np.unique(np.concatenate(found), return_counts=True)
        is_sure = counts == len(found)
        between = self._between(open_columns, low, high)
        sure, maybe = slots[is_sure], np.union1d(slots[~is_sure], between)
        n_slots = len(sure) + len(maybe)
        out[: len(sure)], out[len(sure) : n_slots] = sure, maybe
        return len(sure), n_slots

    def memory_bytes(self) -> int:
        """Bytes of all arrays, and of the lists that were made."""
        return super().memory_bytes() + self._inner.memory_bytes()

    def _between(self, columns: Iterable[int], low: Vector, high: Vector) -> Array:
        """The slots that meet the event's intervals, one of them between its ends."""
        parts = [self._inner.of(column).between(low[column], high[column]) for column in columns]
        slots = np.concatenate([*parts, NO_ROWS])
        if isinstance(self.bounds, Boxes):
            used, bounds = self.bounds.columns, self.bounds.bounds[slots]
            meets = (bounds[:, :, 0] <= high[used]) & (low[used] <= bounds[:, :, 1])
            slots = slots[meets.all(axis=1)]
        else:
            slots = slots[: scan_slots(self.bounds, slots, low, high)]
        return slots


def _corners(low: Vector, high: Vector, columns: list[int]) -> list[Vector]:
    """The event with one of the ends in each of the columns, in all ways."""
    corners = []
    for ends in product((False, True), repeat=len(columns)):
        corner = low.copy()
        chosen = [column for column, is_high in zip(columns, ends, strict=True) if is_high]
        corner[chosen] = high[chosen]
        corners.append(corner)
    return corners
