"""SparseBlock: slots that constrain a few of many columns."""

from __future__ import annotations

import threading

import numpy as np

from tamis.index.blocks import NO_ROWS, Array, Arrays
from tamis.index.indexed_block import IndexedBlock
from tamis.kernels.scan import Constraints
from tamis.kernels.sparse_build import SparsePart, build
from tamis.kernels.sparse_match import match_one, match_some
from tamis.kernels.sparse_scratch import handle_of, new_scratch
from tamis.kernels.tests import NO_TESTS, Tests
from tamis.slots.columns import Vector


class SparseBlock(IndexedBlock):
    """Slots behind a directory of groups, bits inside; ``own`` are the arrays of SparsePart."""

    kind = "sparse"
    bounds: Constraints

    def __init__(
        self,
        bounds: Constraints,
        row_of_slot: Array = NO_ROWS,
        tests: Tests = NO_TESTS,
        **own: Array,
    ) -> None:
        super().__init__(bounds, row_of_slot, tests)
        self._part = SparsePart(**own)
        self._own = threading.local()

    @classmethod
    def build(
        cls, constraints: Constraints, row_of_slot: Array = NO_ROWS, tests: Tests = NO_TESTS
    ) -> SparseBlock:
        """The block of slots that use at most ``sparse_build.MAX_COLUMNS`` columns."""
        if not all(array.flags.c_contiguous for array in constraints):
            constraints = Constraints(*map(np.ascontiguousarray, constraints))
        return cls(constraints, row_of_slot, tests, **build(constraints)._asdict())

    def candidates(self, vector: Vector, out: Array) -> int:
        """Write the slots whose constraints a plain event satisfies; return their number."""
        return match_one(self._handle(), vector, out)  # type: ignore[no-any-return]

    def candidates_many(self, matrix: Array, first: int, out: Array, offsets: Array) -> int:
        """``candidates`` for the rows of a matrix from ``first`` on, while ``out`` has room."""
        return int(match_some(self._handle(), matrix, first, out, offsets))

    def columns_in_use(self) -> Array:
        """The columns that slots constrain."""
        return self._part.columns

    def arrays(self) -> Arrays:
        """Arrays of the structure itself, beside bounds, rows and tests."""
        return self._part._asdict()

    def _handle(self) -> Array:
        """This thread's handle; it refers to this thread's scratch by address."""
        own = self._own
        try:
            handle: Array = own.handle
        except AttributeError:
            own.scratch = new_scratch(self._part)
            own.handle = handle = handle_of(self._part, self.bounds, own.scratch)
        return handle
