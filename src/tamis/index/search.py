"""Search: which rows of a state an event satisfies, highest priority first."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.index.blocks import MORE_ROOM, Block
from tamis.index.express import Expresses
from tamis.index.revision import Ask
from tamis.index.state import State
from tamis.kernels.emit import Found, RowTable, emit_chain
from tamis.kernels.ordering import N_PRIORITIES, order_by_priority
from tamis.kernels.settling import (
    handle_of_rows,
    keep_new,
    settle_choice_one,
    settle_leaders_one,
    settle_one,
)
from tamis.slots.encoding import Encoded, Vector

RowNumbers = npt.NDArray[np.int32]

_NOBODY: RowNumbers = np.zeros(0, np.int32)


@dataclass(slots=True)
class _Scratch:
    """Buffers of one reading thread."""

    size: int  # for so many slots or rows
    slots: RowNumbers
    found: Found
    seen: npt.NDArray[np.uint8]  # what an event has found before, see kernels.settling
    ordered: RowNumbers
    table: RowTable  # the rows that the handle refers to
    handle: npt.NDArray[np.int64]  # of all but ``ordered``, see kernels.settling
    is_in_use: bool = False  # whether ``seen`` is


class Search:
    """Matching on any state, from any thread: each has buffers of its own."""

    def __init__(self) -> None:
        self.expresses = Expresses()
        self._own = threading.local()

    def match(self, state: State, event: Encoded, ask: Ask) -> RowNumbers:
        """The rows an event satisfies, highest priority first.

        ``ask`` tells of a leader whether its filter accepts the event, of one that moves when it
        is at a place. The result is a view of a buffer that this thread's next call overwrites.
        """
        if event.is_plain:
            return self.match_plain(state, event.vector, ask)
        scratch = self._scratch(state)
        found = scratch.found
        found.counts.fill(0)
        if event.hull_high is not None:
            self._gather_in_hull(state, event.vector, event.hull_high, scratch)
        else:
            self._gather_choices(state, event, scratch)
        n_rows = _ask_all(self._settle(state, scratch), ask, state, found)
        if state.moving is not None:
            n_rows = state.moving.match(event, state.version, ask, found.rows, n_rows)
        return self._in_order(state, scratch.found.rows, n_rows, scratch)

    def match_plain(self, state: State, vector: Vector, ask: Ask) -> RowNumbers:
        """``match`` for an event of which the vector says all."""
        scratch, version = self._scratch(state), state.version
        n_rows, is_first, is_settled = 0, True, True
        for block in state.parts:
            n_slots = block.candidates(vector, scratch.slots)
            if n_slots:
                n_rows = settle_one(
                    scratch.handle, block.handle, n_slots, vector, version, n_rows, is_first
                )
                is_first, is_settled = False, n_rows >= 0
                n_rows = n_rows if is_settled else ~n_rows
        if not is_settled:
            scratch.found.counts[0] = n_rows
            n_rows = _ask_all(self._settle(state, scratch), ask, state, scratch.found)
        if state.moving is not None:
            n_rows = state.moving.match_plain(vector, version, ask, scratch.found.rows, n_rows)
        return self._in_order(state, scratch.found.rows, n_rows, scratch)

    def match_only(self, state: State, only: Block, vector: Vector) -> RowNumbers:
        """``match_plain`` where all slots are in one block, and there is nobody to ask."""
        scratch = self._scratch(state)
        n_rows = only.candidates(vector, scratch.slots)
        return self._in_order(state, scratch.slots, n_rows, scratch)

    def match_by_level(self, state: State, event: Encoded, ask: Ask) -> Iterator[RowNumbers]:
        """The rows an event satisfies, as they are determined: those of a level at a time."""
        level = -1
        if not state.has_one_priority:
            level, blocks = self.expresses.over(state.blocks, state.rows.priority)
        if level >= 0:
            early = self.match(state._replace(blocks=blocks), event, ask)
            levels = state.rows.priority[early]
            yield from _levels_of(early.copy(), levels, 0, level)
        rows = self.match(state, event, ask)
        yield from _levels_of(rows.copy(), state.rows.priority[rows], level + 1, N_PRIORITIES)

    def _in_order(
        self, state: State, rows: RowNumbers, n_rows: int, scratch: _Scratch
    ) -> RowNumbers:
        if state.has_one_priority or n_rows < 2:
            return rows[:n_rows]
        order_by_priority(rows, n_rows, state.rows.priority, scratch.ordered)
        return scratch.ordered[:n_rows]

    def _settle(self, state: State, scratch: _Scratch) -> RowNumbers:
        """Add the leaders with many slots; return those whose filters must be asked."""
        found = scratch.found
        _, n_leaders, n_asked = found.counts.tolist()
        if n_leaders:
            settle_leaders_one(scratch.handle, state.version)
        if not n_asked:
            return _NOBODY
        asked = np.unique(found.asked[:n_asked])
        accepted = found.leaders[:n_leaders]
        return asked[~np.isin(asked, accepted)] if n_leaders else asked

    def _gather_choices(self, state: State, event: Encoded, scratch: _Scratch) -> None:
        """Gather what any choice finds, each slot once."""
        if scratch.is_in_use:  # by an event whose matching was broken off
            scratch.seen.fill(0)
        scratch.is_in_use = True
        choices, decides = np.array(event.choices), event.decides
        slots, handle, version = scratch.slots, scratch.handle, state.version
        for block in state.parts:
            n_slots = block.candidates(event.choices[0], slots)
            if block.asks_for(event.chosen):
                n_slots = keep_new(handle, 0, n_slots)
                for vector in event.choices[1:]:
                    n_found = block.candidates(vector, slots[n_slots:])
                    n_slots = keep_new(handle, n_slots, n_slots + n_found)
            if n_slots:
                settle_choice_one(handle, block.handle, n_slots, choices, decides, version)
        scratch.is_in_use = False

    def _gather_in_hull(self, state: State, low: Vector, high: Vector, scratch: _Scratch) -> None:
        """Gather what intervals around the event's values find.

        Slots that hold for all of the values are settled, but for their tests, which are asked; of
        the others the filter is asked.
        """
        slots, found, choices = scratch.slots, scratch.found, low[np.newaxis]
        for block in state.parts:
            n_sure, n_slots = block.candidates_in_hull(low, high, slots)
            settle_choice_one(scratch.handle, block.handle, n_sure, choices, False, state.version)
            asked = block.rows_of(slots[n_sure:n_slots])
            first = int(found.counts[2])
            found.asked[first : first + len(asked)] = asked
            found.counts[2] += len(asked)

    def _scratch(self, state: State) -> _Scratch:
        """This thread's buffers, large enough for every slot and row of the state."""
        table, n_slots, n_rows = state.rows, state.n_slots, state.n_rows
        held: _Scratch | None = getattr(self._own, "scratch", None)
        if held is None or n_slots >= held.size or n_rows >= held.size:
            size = max(n_slots, n_rows)
            size += size // 4 + 64
            rows, leaders, asked, ordered = (np.empty(size, np.int32) for _ in range(4))
            found = Found(rows, leaders, asked, np.zeros(3, np.int64))
            # A choice may find again what others have found.
            slots = np.empty(2 * size + MORE_ROOM, np.int32)
            seen = np.zeros((2, size // 8 + 1), np.uint8)
            handle = handle_of_rows(table, slots, found, seen)
            held = _Scratch(size, slots, found, seen, ordered, table, handle)
            self._own.scratch = held
        elif held.table is not table:
            handle = handle_of_rows(table, held.slots, held.found, held.seen)
            held.handle, held.table = handle, table  # the table last: it says whose the handle is
        return held


def _ask_all(leaders: RowNumbers, ask: Ask, state: State, found: Found) -> int:
    """Add the chains of the leaders whose filters accept the event; return how many rows."""
    for leader in leaders.tolist():
        if ask(leader):
            emit_chain(state.rows, leader, state.version, found)
    return int(found.counts[0])


def _levels_of(
    rows: RowNumbers, levels: npt.NDArray[np.uint8], first: int, last: int
) -> Iterator[RowNumbers]:
    """Rows that are in order of their levels, those of each level from first to last."""
    starts = np.searchsorted(levels, np.arange(first, last + 2)).tolist()
    for start, stop in itertools.pairwise(starts):
        if start < stop:
            yield rows[start:stop]
