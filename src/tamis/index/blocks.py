"""Blocks: immutable sets of slots, each with the structure that finds its slots fastest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.index.slot_table import SlotTable, constraints_of_boxes, no_tests
from tamis.kernels.emit import RowTable
from tamis.kernels.keeping import LANES
from tamis.kernels.scan import Boxes, Constraints, scan, scan_boxes, scan_some
from tamis.kernels.settling import handle_of_block
from tamis.kernels.tests import NO_TESTS, Tests
from tamis.slots.encoding import Vector

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

NO_ROWS: Array = np.zeros(0, np.int32)

MORE_ROOM = LANES  # slots are written so many at once, whether all of them are found or not
_MIN_ROOM = 1 << 20


class Block(ABC):
    """A set of slots that does not change.

    ``row_of_slot``: i4[P], empty where slot p belongs to row p. ``tests`` has no ``start`` where
    no slot has any.
    """

    kind: str
    is_built = True  # whether it is as it shall stay; a sealed head still waits for that

    def __init__(
        self, bounds: Constraints | Boxes, row_of_slot: Array = NO_ROWS, tests: Tests = NO_TESTS
    ) -> None:
        self.bounds = bounds
        self.row_of_slot = row_of_slot
        self.tests = tests
        self._handle_of_slots: Array | None = None
        is_boxes = isinstance(bounds, Boxes)
        self.n_slots = len(bounds.bounds) if is_boxes else len(bounds.start) - 1  # type: ignore[union-attr]

    @property
    def slots_are_rows(self) -> bool:
        """Whether slot p belongs to row p."""
        return not len(self.row_of_slot)

    def belongs_to_plain(self, rows: RowTable) -> bool:
        """Whether all slots belong to rows that are plain; not asked where that would take long."""
        if not self.slots_are_rows:
            return False
        n_bytes, n_more = divmod(self.n_slots, 8)
        flagged = rows.flagged[: n_bytes + 1]
        is_more = n_more and flagged[-1] & ((1 << n_more) - 1)
        return not is_more and not flagged[:n_bytes].max(initial=0)

    @property
    def handle(self) -> Array:
        """What ``kernels.settling`` needs to know of the slots."""
        made = self._handle_of_slots
        if made is None:
            made = self._handle_of_slots = handle_of_block(self.row_of_slot, self.tests)
        return made

    def asks_for(self, columns: Iterable[int]) -> bool:
        """Whether slots may constrain one of the columns."""
        return True

    @abstractmethod
    def candidates(self, vector: Vector, out: Array) -> int:
        """Write the slots whose constraints a plain event satisfies; return their number.

        ``out`` has room for MORE_ROOM more than there are slots.
        """

    def candidates_many(self, matrix: Array, first: int, out: Array, offsets: Array) -> int:
        """``candidates`` for the rows of a matrix from ``first`` on, while ``out`` has room.

        Event e's slots go to ``out`` from ``offsets[e]`` to ``offsets[e + 1]``, which is written.
        Returns the event to go on with.
        """
        event = first
        while event < len(matrix) and offsets[event] + self.n_slots + MORE_ROOM <= len(out):
            n_found = self.candidates(matrix[event], out[offsets[event] :])
            offsets[event + 1] = offsets[event] + n_found
            event += 1
        return event

    def slots_of(self, matrix: Array) -> tuple[Array, Array]:
        """The slots that the rows of a matrix satisfy: row e those from ``offsets[e]`` on."""
        offsets = np.zeros(len(matrix) + 1, np.int64)
        parts, first = [], 0
        while first < len(matrix):
            slots = np.empty(2 * self.n_slots + _MIN_ROOM, np.int32)
            own = np.zeros(len(matrix) - first + 1, np.int64)
            n_events = self.candidates_many(matrix[first:], 0, slots, own)
            last = first + n_events
            offsets[first + 1 : last + 1] = offsets[first] + own[1 : n_events + 1]
            parts.append(slots[: own[n_events]])
            first = last
        return parts[0] if len(parts) == 1 else np.concatenate([*parts, NO_ROWS]), offsets

    def candidates_in_hull(self, low: Vector, high: Vector, out: Array) -> tuple[int, int]:
        """Write the slots whose every interval meets the event's; return two numbers.

        So many of them, the first, hold for certain, as their intervals hold all of the event's;
        and so many there are in all.
        """
        return 0, self._scan(low, high, out)

    def _scan(self, low: Vector, high: Vector, out: Array) -> int:
        """Write the slots whose every interval meets the event's; return their number."""
        if isinstance(self.bounds, Boxes):
            return int(scan_boxes(self.bounds, low, high, out))
        return int(scan(self.bounds, self.n_slots, low, high, out))

    def rows_of(self, slots: Array) -> Array:
        """The rows that slots belong to."""
        return self.row_of_slot[slots] if len(self.row_of_slot) else slots

    def table(self) -> SlotTable:
        """All slots, as they were given."""
        bounds, rows, tests = self.bounds, self.row_of_slot, self.tests
        if isinstance(bounds, Boxes):
            bounds = constraints_of_boxes(bounds)
        if not len(rows):
            rows = np.arange(self.n_slots, dtype=np.int32)
        if not len(tests.start):
            tests = no_tests(self.n_slots)
        return SlotTable(bounds, tests, rows)

    def arrays(self) -> Arrays:
        """Arrays of the structure itself, beside bounds, rows and tests."""
        return {}

    def memory_bytes(self) -> int:
        """Bytes of all arrays."""
        shared = (*self.bounds, self.row_of_slot, *self.tests)
        return sum(a.nbytes for a in (*shared, *self.arrays().values()))


def offsets_of(counts: Array) -> Array:
    """Where each of some lists begins, one behind another, and the end: i8[E + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


class ScanBlock(Block):
    """Slots in no order, scanned; for few."""

    kind = "scan"

    def candidates(self, vector: Vector, out: Array) -> int:
        """Write the slots whose constraints a plain event satisfies; return their number."""
        return self._scan(vector, vector, out)

    def candidates_many(self, matrix: Array, first: int, out: Array, offsets: Array) -> int:
        """``candidates`` for the rows of a matrix from ``first`` on, while ``out`` has room."""
        if isinstance(self.bounds, Boxes):
            return super().candidates_many(matrix, first, out, offsets)
        return int(scan_some(self.bounds, self.n_slots, matrix, first, out, offsets))
