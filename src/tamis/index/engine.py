"""Engine: slots in a mutable head and immutable blocks, read while they change.

What a reader sees is a *state*: a version, the blocks, the head as it was, the rows. Writers
make a new state and publish it by one assignment; nothing a state refers to is changed in a
way its version can see. Blocks are merged in the background, so there are few of them.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.index.blocks import Block
from tamis.index.building import build_blocks
from tamis.index.columns import Encoded, Vector
from tamis.index.express import Expresses
from tamis.index.head import HEAD_SLOTS, Head, HeadView, SealedHead
from tamis.index.movers import NewMover
from tamis.index.moving import Moving, MovingParts, MovingView
from tamis.index.ranges import Box
from tamis.index.revision import Ask
from tamis.index.rows import Rows
from tamis.index.slot_table import SlotTable, concatenate
from tamis.index.slots import Slot
from tamis.kernels.emit import (
    N_PRIORITIES,
    Found,
    RowTable,
    emit_chain,
    emit_plain,
    order_by_priority,
    settle,
    settle_leaders,
)

RowNumbers = npt.NDArray[np.int32]

MERGE_RATIO = 4
MAX_WAITING = 4  # sealed heads; a writer that is faster than the building builds itself
MANY_BURIED = 256  # rows that died, after which the head is looked through for dead slots
BURIED_SHARE = 1 / 8  # the same of segments, as a part of all slots: looking costs little then

Segment = tuple[Block, ...]  # blocks that were built together

_NOBODY: RowNumbers = np.zeros(0, np.int32)


class State(NamedTuple):
    """What a reader works on."""

    version: int
    segments: tuple[Segment, ...]
    blocks: tuple[Block, ...]  # those of all segments
    n_slots: int  # of all blocks and the head
    rows: RowTable
    n_rows: int
    has_one_priority: bool
    head: HeadView
    moving: MovingView | None = None  # who has a place

    @property
    def parts(self) -> tuple[Block, ...]:
        """Where slots are: the blocks and, unless it is empty, the head."""
        return (*self.blocks, self.head) if self.head.n_slots else self.blocks


@dataclass(slots=True)
class _Scratch:
    """Buffers of one reading thread."""

    slots: RowNumbers
    found: Found
    ordered: RowNumbers


class Engine:
    """Slots and rows; knows nothing of filters or ids."""

    def __init__(
        self,
        rows: Rows | None = None,
        blocks: Sequence[Block] = (),
        moving: tuple[MovingParts, tuple[int, int]] | None = None,
    ) -> None:
        self._rows = rows or Rows()
        self._head = Head()
        self._own = threading.local()
        self.expresses = Expresses()
        self._merging: threading.Thread | None = None
        self._n_buried = 0  # rows that died since segments were looked through, and the head
        self._n_buried_of_head = 0
        self.lock = threading.RLock()
        self.moving: Moving | None = None
        if moving is not None:
            self.moving = Moving(moving[1], self.lock, moving[0])
        # Every row there is was brought by now, or it would be hidden until the next change.
        version = 1 + self._rows.newest_version
        self.state = self._state(version, (tuple(blocks),) if blocks else ())

    # -- writing, under the lock; seen by readers once published

    def add(self, slots: Box | Sequence[Slot], priority: int) -> int:
        """A new row with slots of its own, or with the one slot that is a box."""
        row = self._rows.append(priority, self.state.version + 1)
        if isinstance(slots, Box):
            self._head.append_box(slots, row)
            return row
        for slot in slots:
            self._head.append(slot, row)
            if slot.tests:
                self._rows.flag(row)
        if len(slots) > 1:
            self._rows.mark_many_slots(row)
        return row

    def add_mover(self, mover: NewMover, columns: tuple[int, int], priority: int) -> int:
        """A new row with a place; ``columns``: those of the event's longitude and latitude."""
        version = self.state.version + 1
        row = self._rows.append(priority, version)
        if self.moving is None:
            self.moving = Moving(columns, self.lock)
        self.moving.add(row, mover, version)
        return row

    def can_lead(self, leader: int, priority: int) -> bool:
        """Whether a row of that priority may share the slots of another.

        A leader has the highest priority of its chain: the slots say when to look for it.
        """
        return self._rows.priority_of(leader) <= priority

    def share(self, leader: int, priority: int) -> int:
        """A new row that shares the slots of another."""
        row = self._rows.append(priority, self.state.version + 1)
        self._rows.chain(leader, row)
        return row

    def bury(self, row: int) -> int:
        """Let a row die; return its leader."""
        version = self.state.version + 1
        if self.moving is not None:
            self.moving.remove(row, version)
        self._n_buried += 1
        self._n_buried_of_head += 1
        return self._rows.bury(row, version)

    def is_alive(self, row: int) -> bool:
        """Whether a row has not died."""
        return self._rows.is_alive(row)

    def chain_is_dead(self, leader: int) -> bool:
        """Whether nobody shares the leader's slots any more."""
        return self._rows.chain_is_dead(leader)

    @property
    def next_version(self) -> int:
        """The version that what is written now will be seen from."""
        return self.state.version + 1

    @property
    def rows(self) -> Rows:
        """The rows as writers see them."""
        return self._rows

    def publish(self) -> None:
        """Let readers see all that was written."""
        old = self.state
        view = None
        if self.moving is not None:
            self.moving.tidy(self._show)
            view = self.moving.view
        if self._head.is_full or self._has_hollow_head():
            sealed = self._seal(len(_waiting(old.segments)))
            self.state = self._state(old.version + 1, (*old.segments, sealed))
            self._start_merging()
            return
        rows, head = self._rows, HeadView(self._head)
        n_slots = old.n_slots + head.n_slots - old.head.n_slots
        self.state = State(
            old.version + 1, old.segments, old.blocks, n_slots,
            rows.table, rows.n_rows, rows.only_priority != -1, head, view,
        )  # fmt: skip
        if self._must_look:
            self._start_merging()
        if self.moving is not None:
            self.moving.wait_if_behind()

    def publish_moves(self) -> None:
        """``publish`` where only places were written."""
        moving, old = self.moving, self.state
        assert moving is not None
        moving.tidy(self._show)
        self.state = State(old[0] + 1, *old[1:-1], moving.view)
        moving.wait_if_behind()

    def _show(self, view: MovingView) -> None:
        """Let readers see the same places in other arrays."""
        self.state = self.state._replace(moving=view)

    def _seal(self, n_waiting: int) -> Segment:
        """The head as a segment, built in the background if it is small; a new head."""
        head, self._head = self._head, Head()
        if len(head) <= 2 * HEAD_SLOTS and n_waiting < MAX_WAITING:
            return (SealedHead(head),)
        return build_blocks(self._living(head.table()))

    def _state(self, version: int, segments: tuple[Segment, ...]) -> State:
        rows, head = self._rows, HeadView(self._head)
        blocks = tuple(block for segment in segments for block in segment)
        n_slots = head.n_slots + sum(block.n_slots for block in blocks)
        return State(
            version, segments, blocks, n_slots,
            rows.table, rows.n_rows, rows.only_priority != -1, head,
            None if self.moving is None else self.moving.view,
        )  # fmt: skip

    def dump(self) -> tuple[Rows, SlotTable | None]:
        """The rows, and all slots unless the blocks are the whole and nobody has died."""
        rows, blocks = self._rows, self.state.blocks
        is_built = not len(self._head) and all(block.is_built for block in blocks)
        if is_built and not rows.table.death[: rows.n_rows].any():
            return rows, None
        tables = [block.table() for block in blocks]
        return rows, concatenate([*tables, self._head.table()])

    # -- merging

    def _start_merging(self) -> None:
        if self._merging is None and (self._must_look or _to_merge(self.state.segments)):
            self._merging = threading.Thread(target=self._merge, name="tamis-merge", daemon=True)
            self._merging.start()

    def _merge(self) -> None:
        try:
            while old := self._next_to_merge():
                tables = [block.table() for segment in old for block in segment]
                self._replace(old, build_blocks(self._living(concatenate(tables))))
        except BaseException:
            self._merging = None  # the next full head tries again
            raise

    def _next_to_merge(self) -> tuple[Segment, ...]:
        with self.lock:
            chosen = _to_merge(self.state.segments) or self._hollow()
            if not chosen:
                self._merging = None
            return chosen

    def _hollow(self) -> tuple[Segment, ...]:
        """A segment of which at most half is alive, if it is time to look for one."""
        if not self._must_look:
            return ()
        for segment in self.state.segments:
            if segment and all(map(self._is_hollow, segment)):
                return (segment,)
        self._n_buried = 0
        return ()

    @property
    def _must_look(self) -> bool:
        return self._n_buried >= max(MANY_BURIED, int(self.state.n_slots * BURIED_SHARE))

    def _has_hollow_head(self) -> bool:
        if self._n_buried_of_head < MANY_BURIED:
            return False
        self._n_buried_of_head = 0
        return self._is_hollow(HeadView(self._head))

    def _is_hollow(self, block: Block) -> bool:
        """Whether at most half of a block's slots are somebody's."""
        rows = block.row_of_slot[: block.n_slots]
        if not len(rows):
            rows = np.arange(block.n_slots, dtype=np.int32)
        n_living = np.count_nonzero(self._rows.n_others(rows) >= 0)
        return block.n_slots > 0 and bool(2 * n_living <= block.n_slots)

    def _replace(self, old: tuple[Segment, ...], new: Segment) -> None:
        """Let readers see a new segment where some neighbours were."""
        with self.lock:
            state = self.state
            at = next(i for i, segment in enumerate(state.segments) if segment is old[0])
            before, after = state.segments[:at], state.segments[at + len(old) :]
            self.state = self._state(state.version, (*before, *((new,) if new else ()), *after))

    def wait_for_merging(self) -> None:
        """Return when no merge is under way."""
        while (thread := self._merging) is not None:
            thread.join()
        if self.moving is not None:
            self.moving.wait_for_merging()

    def _living(self, table: SlotTable) -> SlotTable:
        """The slots that somebody still has."""
        return table.select(self._rows.n_others(table.row_of_slot) >= 0)

    # -- reading

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
            asked = self._leaders_in_hull(state, event.vector, event.hull_high, scratch.slots)
        else:
            self._gather_choices(state, event.choices, scratch)
            asked = self._settle(state, found)
        n_rows = _ask_all(asked, ask, state, found)
        if state.moving is not None:
            n_rows = state.moving.match(event, state.version, ask, found.rows, n_rows)
        return self._in_order(state, scratch, n_rows)

    def match_plain(self, state: State, vector: Vector, ask: Ask) -> RowNumbers:
        """``match`` for an event of which the vector says all."""
        scratch = self._scratch(state)
        slots, found, flagged = scratch.slots, scratch.found, state.rows.flagged
        rows, n_rows, is_settled = found.rows, 0, True
        for block in state.parts:
            n_slots = block.candidates(vector, slots)
            n_plain = emit_plain(slots, n_slots, block.row_of_slot, flagged, rows, n_rows)
            if n_plain >= 0:
                n_rows = n_plain
                continue
            if is_settled:
                found.counts.fill(0)
                is_settled = False
            found.counts[0] = n_rows
            settle(
                slots, n_slots, block.row_of_slot, block.tests, vector, True,
                state.rows, state.version, found,
            )  # fmt: skip
            n_rows = int(found.counts[0])
        if not is_settled:
            found.counts[0] = n_rows
            n_rows = _ask_all(self._settle(state, found), ask, state, found)
        if state.moving is not None:
            n_rows = state.moving.match_plain(vector, state.version, ask, rows, n_rows)
        return self._in_order(state, scratch, n_rows)

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

    def _in_order(self, state: State, scratch: _Scratch, n_rows: int) -> RowNumbers:
        if state.has_one_priority:
            return scratch.found.rows[:n_rows]
        order_by_priority(scratch.found.rows, n_rows, state.rows.priority, scratch.ordered)
        return scratch.ordered[:n_rows]

    def _settle(self, state: State, found: Found) -> RowNumbers:
        """Add the leaders with many slots; return those whose filters must be asked."""
        _, n_leaders, n_asked = found.counts.tolist()
        if n_leaders:
            settle_leaders(state.rows, state.version, found)
        if not n_asked:
            return _NOBODY
        asked = np.unique(found.asked[:n_asked])
        accepted = found.leaders[:n_leaders]
        return asked[~np.isin(asked, accepted)] if n_leaders else asked

    def _gather_choices(self, state: State, choices: Sequence[Vector], scratch: _Scratch) -> None:
        """Gather what any choice finds, each row and leader once."""
        found = scratch.found
        gathered: list[list[RowNumbers]] = [[], [], []]
        for vector in choices:
            found.counts[:] = 0
            self._gather(state, vector, scratch)
            for i, many in enumerate(gathered):
                many.append(found[i][: found.counts[i]].copy())
        for i, many in enumerate(gathered):
            unique = np.unique(np.concatenate(many))
            found[i][: len(unique)] = unique
            found.counts[i] = len(unique)

    def _gather(self, state: State, vector: Vector, scratch: _Scratch) -> None:
        """Gather what a choice finds, which decides about no test: there are other choices."""
        slots, found, rows, version = scratch.slots, scratch.found, state.rows, state.version
        for block in state.parts:
            n_slots = block.candidates(vector, slots)
            if n_slots:
                settle(
                    slots, n_slots, block.row_of_slot, block.tests, vector, False,
                    rows, version, found,
                )  # fmt: skip

    def _leaders_in_hull(
        self, state: State, low: Vector, high: Vector, slots: RowNumbers
    ) -> RowNumbers:
        leaders = [_NOBODY]
        for block in state.parts:
            n_slots = block.candidates_in_hull(low, high, slots)
            leaders.append(block.rows_of(slots[:n_slots]))
        return np.unique(np.concatenate(leaders))

    def _scratch(self, state: State) -> _Scratch:
        """This thread's buffers, large enough for every slot and row of the state."""
        size = max(state.n_slots, state.n_rows)
        held: _Scratch | None = getattr(self._own, "scratch", None)
        if held is None or len(held.slots) <= size:
            size += size // 4 + 64
            rows, leaders, asked, slots, ordered = (np.empty(size, np.int32) for _ in range(5))
            found = Found(rows, leaders, asked, np.zeros(3, np.int64))
            held = self._own.scratch = _Scratch(slots, found, ordered)
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


def _to_merge(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The newest segments that are to become one.

    Each is less than MERGE_RATIO times the newer ones together, or waits to be built.
    """
    chosen: list[Segment] = []
    n_slots = 0
    for segment in reversed(segments):
        size = sum(block.n_slots for block in segment)
        if chosen and size > MERGE_RATIO * n_slots:
            break
        chosen.append(segment)
        n_slots += size
    if len(chosen) >= MERGE_RATIO:
        return tuple(reversed(chosen))
    return _waiting(segments)


def _waiting(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The segments that are sealed heads; they are the newest."""
    return tuple(one for one in segments if not all(block.is_built for block in one))
