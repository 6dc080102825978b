"""Store: the constraints of all slots, kept for every algorithm in the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.kernels.constraints import Stored, move_together, put
from tamis.matching.table import Table

Slots = npt.NDArray[np.int32]
Array = npt.NDArray[Any]


def grown(array: Array, n: int, fill: object = 0) -> Array:
    """The array, or a longer copy with room for n entries, new ones filled.

    Grows by a half at least, so that growing one by one costs little.
    """
    if len(array) >= n:
        return array
    longer = np.full((max(n, len(array) * 3 // 2), *array.shape[1:]), fill, array.dtype)
    longer[: len(array)] = array
    return longer


class Store:
    """Constraints by slot. What removed slots leave behind is cleared when it is over half."""

    def __init__(self) -> None:
        self.arrays = _empty(0, 0)
        self._n_used = 0
        self._n_garbage = 0

    @property
    def n_bytes(self) -> int:
        """The size of its arrays."""
        return sum(array.nbytes for array in self.arrays)

    def put(self, slots: Slots, rows: npt.NDArray[np.int64], table: Table, n_slots: int) -> None:
        """Give each slot the constraints of a row of the table."""
        n_more = int((table.start[rows + 1] - table.start[rows]).sum())
        start, end, *entries = self.arrays
        self.arrays = Stored(
            grown(start, n_slots),
            grown(end, n_slots),
            *(grown(array, self._n_used + n_more) for array in entries),
        )
        columns = (table.start, table.attribute, table.low, table.high, table.negated)
        self._n_used = int(put(self.arrays, self._n_used, slots, rows, columns))

    def clear(self, slots: Slots) -> None:
        """Forget what slots ask."""
        stored = self.arrays
        self._n_garbage += int((stored.end[slots] - stored.start[slots]).sum())
        stored.start[slots] = stored.end[slots] = 0
        if self._n_garbage * 2 > self._n_used:
            packed = _empty(len(stored.start), self._n_used - self._n_garbage)
            self._n_used = int(move_together(stored, packed, len(stored.start)))
            self.arrays, self._n_garbage = packed, 0


def _empty(n_slots: int, n_constraints: int) -> Stored:
    return Stored(
        np.zeros(n_slots, np.int64),
        np.zeros(n_slots, np.int64),
        np.zeros(n_constraints, np.uint16),
        np.zeros(n_constraints, np.float64),
        np.zeros(n_constraints, np.float64),
        np.zeros(n_constraints, np.uint8),
    )
