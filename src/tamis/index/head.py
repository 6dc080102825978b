"""Head: the newest slots, few enough to be scanned."""

from __future__ import annotations

from array import array

import numpy as np

from tamis.index.blocks import Array, ScanBlock
from tamis.index.ranges import Box
from tamis.index.slot_table import SlotTable, tests_of
from tamis.kernels.scan import Constraints
from tamis.kernels.tests import Tests
from tamis.slots.growing_tests import GrowingTests
from tamis.slots.slots import Slot

HEAD_SLOTS = 1024

_NO_TESTS = Slot()  # stands for every box: the head keeps slots for their tests


class Head:
    """Slots that are appended one by one; a reader scans as many as there were when it began.

    Appending writes only behind the slots that any reader looks at; where the arrays are full
    they are replaced by longer copies, and a reader keeps those it started with.
    """

    def __init__(self, capacity: int = HEAD_SLOTS) -> None:
        self.slots: list[Slot] = []
        self.row_of_slot = np.zeros(capacity, np.int32)
        self._n_constraints = 0
        self._tests = GrowingTests(capacity)
        self.constraints = Constraints(
            np.zeros(capacity + 1, np.int64),
            np.zeros(4 * capacity, np.int32),
            np.zeros(4 * capacity, np.float64),
            np.zeros(4 * capacity, np.float64),
        )
        self._views = _views_of(self.constraints)

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def tests(self) -> Tests:
        """The tests of the slots there are."""
        return self._tests.tests

    @property
    def is_full(self) -> bool:
        """Whether it is time to seal the head into a block."""
        return len(self.slots) >= HEAD_SLOTS

    def append(self, slot: Slot, row: int) -> None:
        """Add a slot of a row."""
        sides = tuple(zip(*slot.constraints.values(), strict=True)) or ((), ())
        columns, lows, highs = array("i", slot.constraints), *(array("d", s) for s in sides)
        self._append(slot, columns, lows, highs, row)

    def append_box(self, box: Box, row: int) -> None:
        """Add a box, which is the only slot of a row."""
        self._append(_NO_TESTS, box.columns, box.lows, box.highs, row)

    def _append(
        self, slot: Slot, columns: array[int], lows: array[float], highs: array[float], row: int
    ) -> None:
        position, first = len(self.slots), self._n_constraints
        last = first + len(columns)
        if position >= len(self.row_of_slot):
            self._grow_slots()
        while last > len(self.constraints.column):
            self._grow_constraints()
        if last > first:
            column_view, low_view, high_view = self._views
            column_view[first:last] = columns
            low_view[first:last] = lows
            high_view[first:last] = highs
        self.constraints.start[position + 1] = last
        self._tests.append(slot)
        self.row_of_slot[position] = row
        self._n_constraints = last
        self.slots.append(slot)

    def table(self) -> SlotTable:
        """All slots as a table."""
        n_slots, n_constraints = len(self.slots), self._n_constraints
        start, *rest = self.constraints
        constraints = Constraints(start[: n_slots + 1], *(side[:n_constraints] for side in rest))
        return SlotTable(constraints, tests_of(self.slots), self.row_of_slot[:n_slots])

    def _grow_slots(self) -> None:
        self.row_of_slot = np.concatenate([self.row_of_slot, np.zeros_like(self.row_of_slot)])
        more = np.zeros(len(self.row_of_slot) // 2, np.int64)
        start = np.concatenate([self.constraints.start, more])
        self.constraints = self.constraints._replace(start=start)

    def _grow_constraints(self) -> None:
        self.constraints = Constraints(
            self.constraints.start,
            *(np.concatenate([side, np.zeros_like(side)]) for side in self.constraints[1:]),
        )
        self._views = _views_of(self.constraints)


def _views_of(constraints: Constraints) -> list[memoryview]:
    """Columns and bounds as memory, into which arrays are copied quicker than by NumPy."""
    return [side.data for side in constraints[1:]]


class HeadView(ScanBlock):
    """The head as it was at some moment."""

    bounds: Constraints

    def __init__(self, head: Head) -> None:  # made at every change, so without a copy
        self.bounds, self.row_of_slot, self.tests = head.constraints, head.row_of_slot, head.tests
        self._handle_of_slots = None
        self.n_slots = len(head.slots)

    @property
    def starts(self) -> Array:
        """Where the constraints of each slot begin, and those of the last end."""
        return self.bounds.start[: self.n_slots + 1]


class SealedHead(ScanBlock):
    """A full head that waits to become a block, still scanned."""

    is_built = False

    def __init__(self, head: Head) -> None:
        n_slots = len(head)
        start, *rest = head.constraints
        tests = head.tests._replace(start=head.tests.start[: n_slots + 1])
        super().__init__(Constraints(start[: n_slots + 1], *rest), head.row_of_slot, tests)
        self._head = head

    def table(self) -> SlotTable:
        """All slots, as they were given."""
        return self._head.table()
