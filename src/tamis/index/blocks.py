"""Blocks: immutable sets of slots, each with the structure that finds its slots fastest."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from tamis.index.columns import Vector
from tamis.index.slot_table import SlotTable, constraints_of_boxes, no_tests
from tamis.kernels.scan import Boxes, Constraints, scan, scan_boxes
from tamis.kernels.tests import NO_TESTS, Tests

Slots = npt.NDArray[np.int32]
Arrays = dict[str, npt.NDArray[np.generic]]

NO_ROWS = np.zeros(0, np.int32)


class Block(ABC):
    """A set of slots that does not change.

    ``row_of_slot`` is empty where slot p belongs to row p; ``tests`` has no ``start`` where no
    slot has any.
    """

    kind: str

    def __init__(
        self, bounds: Constraints | Boxes, row_of_slot: Slots = NO_ROWS, tests: Tests = NO_TESTS
    ) -> None:
        self.bounds = bounds
        self.row_of_slot = row_of_slot
        self.tests = tests
        is_dense = isinstance(bounds, Boxes)
        self.n_slots = len(bounds.bounds) if is_dense else len(bounds.start) - 1  # type: ignore[union-attr]

    @abstractmethod
    def candidates(self, vector: Vector, out: Slots) -> int:
        """Write the slots whose constraints a plain event satisfies; return their number."""

    def candidates_in_hull(self, low: Vector, high: Vector, out: Slots) -> int:
        """Write the slots whose every interval meets the event's; return their number."""
        if isinstance(self.bounds, Boxes):
            return int(scan_boxes(self.bounds, low, high, out))
        return int(scan(self.bounds, self.n_slots, low, high, out))

    def rows_of(self, slots: Slots) -> Slots:
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


class ScanBlock(Block):
    """Slots in no order, scanned; for few."""

    kind = "scan"

    def candidates(self, vector: Vector, out: Slots) -> int:
        """Write the slots whose constraints a plain event satisfies; return their number."""
        return self.candidates_in_hull(vector, vector, out)


def build_blocks(table: SlotTable) -> tuple[Block, ...]:
    """The blocks that serve a table best."""
    if not table.n_slots:
        return ()
    return (ScanBlock(table.constraints, table.row_of_slot, table.tests),)


def build_box_blocks(bounds: Constraints | Boxes) -> tuple[Block, ...]:
    """The blocks that serve boxes best, where slot p is row p."""
    block = ScanBlock(bounds)
    return (block,) if block.n_slots else ()


def block_of(
    kind: str, bounds: Constraints | Boxes, row_of_slot: Slots, tests: Tests, own: Arrays
) -> Block:
    """A block as it was, from its arrays."""
    (block_type,) = [one for one in (ScanBlock,) if one.kind == kind]
    return block_type(bounds, row_of_slot, tests, **own)
