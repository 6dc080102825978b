"""Engine: slots in a mutable head and immutable blocks, read while they change.

What a reader sees is a *state*: a version, the blocks, the head as it was, the rows. Writers
make a new state and publish it by one assignment; nothing a state refers to is changed in a
way its version can see. Blocks are merged in the background, so there are few of them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from tamis.errors import UnfinishedChange
from tamis.index.blocks import Array, Block
from tamis.index.building import build_blocks
from tamis.index.head import HEAD_SLOTS, Head, HeadView, SealedHead
from tamis.index.merge_thread import has_started, is_under_way
from tamis.index.movers import NewMover
from tamis.index.moving import Moving, MovingParts, MovingView
from tamis.index.ranges import Box
from tamis.index.rows import Rows
from tamis.index.search import Search
from tamis.index.slot_table import SlotTable, concatenate
from tamis.index.state import Segment, State
from tamis.slots.slots import Slot

MERGE_RATIO = 4
MIN_SEGMENT = 4 * HEAD_SLOTS  # slots; as long as newer ones have no more they become one
MAX_WAITING = 4  # sealed heads; a writer that is faster than the building builds itself
MANY_BURIED = 256  # rows that died, after which the head is looked through for dead slots
BURIED_SHARE = 1 / 8  # the same of segments, as a part of all slots: looking costs little then


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
        self.search = Search()
        self._merging: threading.Thread | None = None
        self._n_buried = 0  # rows that died since segments were looked through, and the head
        self._n_buried_of_head = 0
        self.lock = threading.RLock()
        self._is_unfinished = False  # something was written that is not published yet
        self.moving: Moving | None = None
        if moving is not None:
            self.moving = Moving(moving[1], self.lock, moving[0])
        # Every row there is was brought by now, or it would be hidden until the next change.
        version = 1 + self._rows.newest_version
        self.state = self._state(version, (tuple(blocks),) if blocks else ())

    # -- writing, under the lock; seen by readers once published

    def check_finished(self) -> None:
        """Refuse to go on from the middle of a change. Whoever has taken the lock asks first."""
        if self._is_unfinished:
            raise UnfinishedChange(
                "a change of the index was broken off halfway; it matches as before or after it, "
                "but can no longer be changed or saved: make it anew, or open it from its files"
            )

    def begin(self) -> None:
        """Let nobody go on if what follows is broken off before it is published.

        To be called before anything is written, in columns and texts too, and after all checks.
        """
        self._is_unfinished = True

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

    def move(self, row: int, place: tuple[float, float]) -> bool:
        """Let a row be at another place; False, and nothing done, if it has none."""
        if self.moving is None:
            return False
        before, self._is_unfinished = self._is_unfinished, True
        has_moved = self.moving.move(row, place, self.next_version)
        self._is_unfinished = before or has_moved
        return has_moved

    def move_many(self, rows: Array, lons: Array, lats: Array) -> bool:
        """``move`` for different rows; False, and nothing done, if one of them has no place."""
        if self.moving is None:
            return False
        self._is_unfinished = True
        have_moved = self.moving.move_many(rows, lons, lats, self.next_version)
        self._is_unfinished = have_moved
        return have_moved

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
            self._is_unfinished = False
            self._start_merging()
            return
        rows, head = self._rows, HeadView(self._head)
        n_slots = old.n_slots + head.n_slots - old.head.n_slots
        self.state = State(
            old.version + 1, old.segments, old.blocks, n_slots,
            rows.table, rows.n_rows, rows.only_priority != -1, not rows.has_flagged, head, None,
            view,
        )  # fmt: skip
        self._is_unfinished = False
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
        self._is_unfinished = False
        moving.wait_if_behind()

    def _show(self, view: MovingView) -> None:
        """Let readers see the same places in other arrays."""
        if self._is_unfinished:
            return  # these have what nobody may see
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
        moving, only = None if self.moving is None else self.moving.view, None
        if len(blocks) == 1 and blocks[0].slots_are_rows and not head.n_slots:
            only = None if rows.has_flagged or moving is not None else blocks[0]
        return State(
            version, segments, blocks, n_slots,
            rows.table, rows.n_rows, rows.only_priority != -1, not rows.has_flagged, head, only,
            moving,
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
        """Let a thread merge what there is to merge; if none can be had, the next change tries."""
        if is_under_way(self._merging):
            return
        if self._must_look or _to_merge(self.state.segments):
            self._merging = threading.Thread(target=self._merge, name="tamis-merge", daemon=True)
            if not has_started(self._merging):
                self._merging = None

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
            is_whole = not self._is_unfinished
            chosen = (_to_merge(self.state.segments) or self._hollow()) if is_whole else ()
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
            if self._is_unfinished:
                return  # the head and the rows have what nobody may see
            state = self.state
            at = next(i for i, segment in enumerate(state.segments) if segment is old[0])
            before, after = state.segments[:at], state.segments[at + len(old) :]
            self.state = self._state(state.version, (*before, *((new,) if new else ()), *after))

    def wait_for_merging(self) -> None:
        """Return when no merge is under way."""
        while (thread := self._merging) is not None and is_under_way(thread):
            thread.join()
        if self.moving is not None:
            self.moving.wait_for_merging()

    def _living(self, table: SlotTable) -> SlotTable:
        """The slots that somebody still has."""
        return table.select(self._rows.n_others(table.row_of_slot) >= 0)


def _to_merge(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The newest segments that are to become one.

    Each is less than MERGE_RATIO times the newer ones together, or waits to be built. As long as
    they are few, all go together: each more costs every event half a microsecond.
    """
    waiting = _waiting(segments)
    chosen: list[Segment] = []
    n_slots = 0
    for segment in reversed(segments):
        size = sum(block.n_slots for block in segment)
        if chosen and size > MERGE_RATIO * n_slots and n_slots + size > MIN_SEGMENT:
            break
        chosen.append(segment)
        n_slots += size
    are_few = waiting and len(chosen) > len(waiting) and n_slots <= MIN_SEGMENT
    if len(chosen) >= MERGE_RATIO or are_few:
        return tuple(reversed(chosen))
    return waiting


def _waiting(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The segments that are sealed heads; they are the newest."""
    return tuple(one for one in segments if not all(block.is_built for block in one))
