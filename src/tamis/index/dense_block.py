"""DenseBlock: slots that all constrain the same columns."""

from __future__ import annotations

import threading

import numpy as np

from tamis.index.blocks import NO_ROWS, Array, Arrays, offsets_of
from tamis.index.indexed_block import IndexedBlock
from tamis.kernels.dense_batch import (
    MAX_MAPS,
    count_looks,
    count_runs,
    match_lines,
    place_runs,
    prepare_many,
)
from tamis.kernels.dense_batch_scratch import Found, handle_of_batch, new_batch, new_found
from tamis.kernels.dense_build import LINE, N_BUCKETS, DensePart, build
from tamis.kernels.dense_match import match_one, match_some
from tamis.kernels.dense_scratch import handle_of, new_work
from tamis.kernels.scan import Boxes
from tamis.kernels.tests import NO_TESTS, Tests
from tamis.slots.encoding import Vector

_OWN = ("edges", "codes", "slack", "rows", "pool", "coarse", "counts")
MIN_BY_LINE = 400  # of fewer it is not asked whether line by line pays
_N_ASKED = 8  # events that tell what the others look at
_MAX_EVENTS = 5_000  # that are matched line by line at once: what is known of them stays in cache
_MAX_FOUND = 1 << 23  # slots that are found at once, about: they take memory twice


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

    def slots_of(self, matrix: Array) -> tuple[Array, Array]:
        """The slots that the rows of a matrix satisfy: row e those from ``offsets[e]`` on."""
        if len(matrix) < MIN_BY_LINE:
            return super().slots_of(matrix)
        events = np.ascontiguousarray(matrix[:, self.bounds.columns])
        n_at_once = self._n_line_by_line(events)
        if not n_at_once:
            return super().slots_of(matrix)
        found = [new_found(n_at_once)]
        parts = [
            self._slots_by_line(events[first : first + n_at_once], found)
            for first in range(0, len(events), n_at_once)
        ]
        counts = np.concatenate([part[1] for part in parts])
        slots = [part[0] for part in parts]
        return slots[0] if len(slots) == 1 else np.concatenate(slots), offsets_of(counts)

    def _n_line_by_line(self, events: Array) -> int:
        """How many events to match line by line at once; 0 where that does not pay.

        It does where events, one after another, would look at more cache lines than there are;
        not where all the time goes into writing what they match.
        """
        handle, step = self._handle(), -(-len(events) // _N_ASKED)
        n_bits, n_rows = count_looks(handle, events, step)
        n_asked = len(range(0, len(events), step))
        n_at_once = min(_MAX_EVENTS, _MAX_FOUND * n_asked // max(1, n_rows))
        m = events.shape[1]
        if n_at_once < MIN_BY_LINE or m * (N_BUCKETS + 1) > MAX_MAPS:
            return 0
        n_at_once = -(-len(events) // -(-len(events) // n_at_once))  # all about as many
        n_in_line = m * (N_BUCKETS + 1) + LINE * int(handle[2]) // 8
        pays = (n_bits + n_rows) * n_at_once > n_asked * n_in_line * -(-self.n_slots // LINE)
        return n_at_once if pays else 0

    def _slots_by_line(self, events: Array, found: list[Found]) -> tuple[Array, Array]:
        """The slots of some events, one event after another, and how many each has.

        ``found`` is room, which may grow.
        """
        handle = self._handle()
        batch = new_batch(self.n_slots, events.shape[1], int(handle[2]), len(events))
        prepare_many(handle, events, batch)
        held = handle_of_batch(batch)
        counts = np.zeros(len(events), np.int64)
        line, n_runs = 0, list[int]()
        while line < -(-self.n_slots // LINE):
            if len(n_runs) == len(found):
                found.append(new_found(len(events)))
            line, n = match_lines(handle, events, held, line, found[len(n_runs)])
            count_runs(found[len(n_runs)], n, counts)
            n_runs.append(n)
        slots, ends = np.empty(counts.sum(), np.int32), np.cumsum(counts) - counts
        for some, n in zip(found, n_runs, strict=False):
            place_runs(some, n, ends, slots)
        return slots, counts

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
