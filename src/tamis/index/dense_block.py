"""DenseBlock: slots that all constrain the same columns."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from tamis.index.blocks import NO_ROWS, Array, Arrays, Block
from tamis.kernels.dense_build import DensePart, build
from tamis.kernels.dense_match import match_one, match_some
from tamis.kernels.dense_scratch import Work, handle_of, new_work
from tamis.kernels.scan import Boxes
from tamis.kernels.tests import NO_TESTS, Tests
from tamis.slots.columns import Vector

_OWN = ("edges", "codes", "slack", "rows", "pool", "coarse", "counts")


class DenseBlock(Block):
    """Boxes behind bitmaps in k-d order; see ``kernels.dense_build``."""

    kind = "dense"
    bounds: Boxes

    def __init__(self, bounds: Boxes, row_of_slot: Array, tests: Tests, **own: Array) -> None:
        super().__init__(bounds, row_of_slot, tests)
        self._own = own
        flat = bounds.bounds.reshape(-1)
        self._part = DensePart(self.n_slots, flat, *(own[name] for name in _OWN))
        columns = bounds.columns
        self._is_first = bool((columns == np.arange(len(columns))).all())
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
        columns = self.bounds.columns
        if not self._is_first or len(vector) > len(columns):
            vector = vector[columns]
        return int(match_one(self._handle(), vector, out))

    def candidates_many(self, matrix: Array, first: int, out: Array, offsets: Array) -> int:
        """``candidates`` for the rows of a matrix from ``first`` on, while ``out`` has room."""
        events = np.ascontiguousarray(matrix[:, self.bounds.columns])
        return int(match_some(self._handle(), events, first, out, offsets))

    def arrays(self) -> Arrays:
        """Arrays of the structure itself."""
        return dict(self._own)

    def _handle(self) -> Any:
        """This thread's handle; its scratch lives as long."""
        held: tuple[Any, Work] | None = getattr(self._threads, "held", None)
        if held is None:
            work = new_work(self._part)
            held = self._threads.held = (handle_of(self._part, work), work)
        return held[0]
