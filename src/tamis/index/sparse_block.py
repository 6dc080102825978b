"""SparseBlock: slots that constrain a few of many columns."""

from __future__ import annotations

import threading

import numpy as np

from tamis.index.blocks import NO_ROWS, Array, Arrays, offsets_of
from tamis.index.indexed_block import IndexedBlock
from tamis.kernels.compiled import IS_COMPILED
from tamis.kernels.scan import Constraints
from tamis.kernels.sparse_batch import (
    GROUP,
    MAX_AXES,
    PIECE,
    Ranges,
    build_ranges,
    count_blocks,
    count_pairs,
    fill_below,
    match_groups,
    match_strips,
    n_places,
    new_batch,
    place_pairs,
    place_slots,
)
from tamis.kernels.sparse_build import N_AXES, N_FIELDS, SparsePart, build
from tamis.kernels.sparse_match import match_one, match_some
from tamis.kernels.sparse_scratch import handle_of, new_scratch
from tamis.kernels.tests import NO_TESTS, Tests
from tamis.slots.encoding import Vector

MIN_BY_RECORD = 300  # of fewer events it is not asked whether record by record pays
_N_ASKED = 8  # events that tell what the others look at
# Costs in ns: of a block for an event; of a constraint, and of everything else, for a group
_BLOCK_NS, _CONSTRAINT_NS, _GROUP_NS = 4.0, 1.7, 100_000
_MORE_ROOM = 1 << 19  # slots or pairs
_MAX_ROOMS = 12  # of the pairs of a group that is matched record by record


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
        self._ranges: Ranges | None = None

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

    def slots_of(self, matrix: Array) -> tuple[Array, Array]:
        """The slots that the rows of a matrix satisfy: row e those from ``offsets[e]`` on."""
        if len(matrix) < MIN_BY_RECORD or not self._pays_by_record(matrix):
            return super().slots_of(matrix)
        event_by_event = super().slots_of
        groups = np.array_split(matrix, -(-len(matrix) // GROUP))
        parts = [self._slots_by_record(events) or event_by_event(events) for events in groups]
        if len(parts) == 1:
            return parts[0]
        counts = np.concatenate([np.diff(offsets) for _, offsets in parts])
        return np.concatenate([slots for slots, _ in parts]), offsets_of(counts)

    def _pays_by_record(self, events: Array) -> bool:
        """Whether asking all records in strips costs less than all blocks that events touch."""
        part, step = self._part, -(-len(events) // _N_ASKED)
        n_constraints = n_places(part) * (int(part.layout[N_FIELDS]) - 1)
        if not n_constraints or part.layout[N_AXES] > MAX_AXES or not IS_COMPILED:
            return False
        n_blocks = count_blocks(self._handle(), events, step) / len(range(0, len(events), step))
        n_groups = -(-len(events) // GROUP)
        by_record = n_groups * (n_constraints * _CONSTRAINT_NS + _GROUP_NS)
        return bool(by_record < n_blocks * len(events) * _BLOCK_NS)

    def _slots_by_record(self, events: Array) -> tuple[Array, Array] | None:
        """``slots_of`` for a group of events; None where what they match takes too much room."""
        handle, own = self._handle(), self._own
        if self._ranges is None:
            self._ranges = build_ranges(self._part)
        if not hasattr(own, "batch"):
            own.slots = np.empty(self.n_slots + 1 + _MORE_ROOM, np.int32)
            own.pairs = np.empty(PIECE * GROUP + _MORE_ROOM, np.uint64)
            own.batch = new_batch(self._part)  # the last: it says that all are there
        parts, first, counts = list[tuple[Array, Array]](), 0, np.zeros(len(events), np.int64)
        while first < len(events):
            slots = np.empty_like(own.slots) if parts else own.slots
            bounds = np.zeros(len(events) + 1, np.int64)
            first = match_groups(handle, events, first, own.batch.codes, slots, bounds)
            bounds[first + 1 :] = bounds[first]
            counts += np.diff(bounds)
            parts.append((slots, bounds))
        found = self._pairs_in_strips(events, self._ranges, counts)
        if found is None:
            return None
        offsets = offsets_of(counts)
        slots, ends = np.empty(offsets[-1], np.int32), offsets[:-1].copy()
        for some, bounds in parts:
            place_slots(some, bounds, ends, slots)
        for pairs in found:
            place_pairs(pairs, ends, slots)
        return slots, offsets

    def _pairs_in_strips(self, events: Array, ranges: Ranges, counts: Array) -> list[Array] | None:
        """Pairs of events and their slots in strips, which are added to counts: i8[E]."""
        batch, n_axes = self._own.batch, self._part.layout[N_AXES]
        fill_below(batch.codes, ranges.drop, len(events), n_axes, batch.below)
        place, found = 0, list[Array]()
        while place < n_places(self._part):
            if len(found) == _MAX_ROOMS:
                return None
            pairs = np.empty_like(self._own.pairs) if found else self._own.pairs
            place, n = match_strips(self._handle(), events, ranges, batch, place, pairs)
            found.append(pairs[:n])
            count_pairs(found[-1], counts)
        return found

    def columns_in_use(self) -> Array:
        """The columns that slots constrain."""
        return self._part.columns

    def memory_bytes(self) -> int:
        """Bytes of all arrays, and of what batches made."""
        made = self._ranges or ()
        return super().memory_bytes() + sum(array.nbytes for array in made)

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
