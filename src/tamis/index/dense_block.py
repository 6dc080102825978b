"""DenseBlock: slots that all constrain the same columns."""

from __future__ import annotations

import threading

import numpy as np

from tamis.index.blocks import NO_ROWS, Array, Arrays
from tamis.index.indexed_block import IndexedBlock
from tamis.kernels.dense_build import DensePart, build
from tamis.kernels.dense_match import match_one, match_some
from tamis.kernels.dense_scratch import handle_of, new_work
from tamis.kernels.scan import Boxes
from tamis.kernels.tests import NO_TESTS, Tests
from tamis.slots.columns import Vector

_OWN = ("edges", "codes", "slack", "rows", "pool", "coarse", "counts")


class DenseBlock(IndexedBlock):
    """Boxes behind bitmaps in k-d order; see ``kernels.dense_build``."""

    kind = "dense"
    bounds: Boxes

    def __init__(self, bounds: Boxes, row_of_slot: Array, tests: Tests, **own: Array) -> None:
        super().__init__(bounds, row_of_slot, tests)
        self._own = own
        flat = bounds.bounds.reshape(-1)
        self._part = DensePart(self.n_slots, flat, *(own[name] for name in _OWN))
        n_columns = len(bounds.columns)
        is_first = bool((bounds.columns == np.arange(n_columns)).all())
        self._n_given = n_columns if is_first else 0  # columns of an event that need no choosing
        self._threads = threading.local()

    @classmethod
    def build(
        cls, bounds: Boxes, row_of_slot: Array = NO_ROWS, tests: Tests = NO_TESTS
    ) -> DenseBlock:
        """Index boxes, of which there is at least one."""
        part = build(bounds.bounds)
        own = {name: getattr(part, name) for name in _OWN}
        return cls(bounds, row_of_slot, tests, **own)

    def candidates(self, vector: Vector, out: Array) -> int:
        """Write the slots whose constraints a plain event satisfies; return their number."""
        if len(vector) != self._n_given:
            vector = vector[self.bounds.columns]
        return match_one(self._handle(), vector, out)  # type: ignore[no-any-return]

    def candidates_many(self, matrix: Array, first: int, out: Array, offsets: Array) -> int:
        """``candidates`` for the rows of a matrix from ``first`` on, while ``out`` has room."""
        events = np.ascontiguousarray(matrix[:, self.bounds.columns])
        return int(match_some(self._handle(), events, first, out, offsets))

    def columns_in_use(self) -> Array:
        """The columns that slots constrain."""
        return self.bounds.columns

    def arrays(self) -> Arrays:
        """Arrays of the structure itself."""
        return dict(self._own)

    def _handle(self) -> Array:
        """This thread's handle; it refers to this thread's scratch by address."""
        own = self._threads
        try:
            handle: Array = own.handle
        except AttributeError:
            own.work = new_work(self._part)
            own.handle = handle = handle_of(self._part, own.work)
        return handle
