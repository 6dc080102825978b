"""Collection: the events of a store in parts, read while they change.

What a reader sees is a *state*: a version, a clock, segments and the head as it was. A writer
makes a new state and publishes it by one assignment; nothing that a state refers to is changed
in a way its version can see. If a change fails, the collection is again what the state says.

A full head becomes a segment, and segments are merged, without those that died or have expired:
small ones by the writer, large ones by a thread of their own, while the old segments go on.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import InvalidEvent, quoted
from tamis.events.head import Head
from tamis.events.merging import Kept
from tamis.events.moments import LONG_AGO, datetime_of, micros_or
from tamis.events.question import Question
from tamis.events.segment import Segment
from tamis.events.state import Place, State
from tamis.events.table import EventTable, table_of_events
from tamis.kernels.event_cells import Cells
from tamis.kernels.texts import directory_of, find_texts
from tamis.model import Event
from tamis.slots.texts import Stored, letters_of

HEAD_EVENTS = 2048
MIN_MERGED = 4  # segments
MAX_AT_ONCE = 2**18  # events that a writer merges itself, in a tenth of a second
MAX_ROWS = 2**22  # of a segment that merging makes, so that it ends soon
MAX_LETTERS = 2**30  # bytes of a segment's ids, or of its different texts of one attribute
MANY_DEAD = 64  # events of the head; for fewer it is not worth making a new one
MANY = 32  # segments; with more, a writer merges whatever there is to merge
_N_ASKED = 64  # questions that the layout of a new segment follows


class Change:
    """A change of a collection, which is finished or undone: a context manager.

    A class, as a generator would take a microsecond of each insert.
    """

    __slots__ = ("_clock", "_collection")

    def __init__(self, collection: Collection, clock: int) -> None:
        self._collection, self._clock = collection, clock

    def __enter__(self) -> None:
        pass

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            self._collection.finish(self._clock)
        else:
            self._collection.undo()


class Collection:
    """The parts of a store; all but ``state`` belongs to the one who has the lock."""

    def __init__(self, segments: Sequence[Segment] = (), clock: int = LONG_AGO) -> None:
        self.lock = threading.RLock()
        self._is_open = False  # whether a change is under way
        self._head = Head(HEAD_EVENTS)
        self._n_dead = 0  # in the head
        self._segments = tuple(segments)
        self._merged: tuple[Segment, ...] = ()  # neighbours that a thread is merging
        self._merging: threading.Thread | None = None
        self._directory = directory_of([one.ids for one in segments])
        self.n_inserted = 1 + max((int(one.sequence.max()) for one in segments), default=-1)
        self.asked: deque[Question] = deque(maxlen=_N_ASKED)
        self.state = State(1, clock, self._segments, self._directory, self._head, 0)

    def __len__(self) -> int:
        with self.lock:
            state = self.state
            n_held = state.n_head + sum(one.n_rows for one in state.segments)
            return n_held - sum(self._n_dead_of_parts())

    # -- changes, which readers see once they are published

    def change(self, clock: int) -> Change:
        """Within it, what is done will be published at that clock, or undone if it fails."""
        self.begin()
        return Change(self, clock)

    def begin(self) -> None:
        """Begin a change; one that an interrupt left where nothing undoes it is undone now."""
        if self._is_open:
            self.undo()
        self._is_open = True

    def finish(self, clock: int) -> None:
        """Publish a change, or undo it if that fails.

        Large merges begin only then, as one that has begun is not undone.
        """
        before = self.state
        try:
            self.publish(clock)
        except BaseException:
            self.undo()
            raise
        self._is_open = False
        if self._segments is not before.segments:
            self._start_merging(clock)

    def undo(self) -> None:
        """Be again what the state says: what came is forgotten, and what died lives."""
        state = self.state
        self._segments, self._directory, self._head = state.segments, state.directory, state.head
        self._head.cut(state.n_head)
        self._n_dead = _revive(self._head.cells, state.version)
        for segment in self._segments:
            segment.n_dead = _revive(segment.cells, state.version)
        self._is_open = False

    def append(self, events: Sequence[Event], arrival: int, clock: int) -> None:
        """Add events that arrive at this moment; few to the head, many as a segment."""
        if len(self._head) + len(events) > HEAD_EVENTS:
            self.seal(clock)
        if len(events) > HEAD_EVENTS // 2:
            moments = [micros_or(event.time, arrival) for event in events]
            self.append_table(table_of_events(events, moments, range(len(events))), clock)
            return
        for event in events:
            self.append_one(event, arrival, clock)

    def append_one(self, event: Event, arrival: int, clock: int) -> None:
        """Add an event that arrives at this moment."""
        if len(self._head) >= HEAD_EVENTS:
            self.seal(clock)
        self._head.append(event, arrival, self.n_inserted)
        self.n_inserted += 1

    def append_table(self, table: EventTable, clock: int) -> None:
        """Add the events of a table, which are numbered from 0, as a segment."""
        for name, texts in table.texts.items():
            check_letters(texts, f"the attribute {quoted(name)}")
        table.sequence = table.sequence + self.n_inserted
        self.n_inserted += len(table)
        self._segments = (*self._segments, self._segment([table], [None]))
        self._merge(clock)

    def bury(self, places: Iterable[Place]) -> None:
        """Let events die with the next version."""
        for part, row in places:
            part.cells.death[row] = self.state.version + 1
            if isinstance(part, Segment):
                part.n_dead += 1
            else:
                self._n_dead += 1

    def sweep(self, clock: int, limit: int) -> int:
        """Let at most ``limit`` expired events die; return how many."""
        next_version = self.state.version + 1
        kept: list[Segment] = []
        n_swept = self._head.view(len(self._head)).sweep(clock, limit, next_version)
        self._n_dead += n_swept
        for segment in self._segments:
            n_own = segment.sweep(clock, limit - n_swept, next_version)
            segment.n_dead += n_own
            n_swept += n_own
            if 2 * segment.n_dead < segment.n_rows or segment in self._merged:
                kept.append(segment)
            elif len(rows := segment.living(LONG_AGO)):
                kept.append(self._segment([segment.table], [rows]))
        self._segments = tuple(kept)
        self.thin()
        return n_swept

    def thin(self) -> None:
        """Let go of the dead of the head, once they are many and half of it: take a new one."""
        if self._n_dead >= MANY_DEAD and 2 * self._n_dead >= len(self._head):
            self._head, self._n_dead = self._head.thinned(), 0

    def seal(self, clock: int) -> None:
        """Make a segment of the head, and a new head."""
        head, new = self._head, Head(HEAD_EVENTS)
        for table, kept in head.tables(head.living(clock), MAX_LETTERS):
            self._segments = (*self._segments, self._segment([table], [kept]))
            self._merge(clock)
        self._head, self._n_dead = new, 0

    def publish(self, clock: int) -> None:
        """Let readers see all that was changed."""
        old, head = self.state, self._head
        if self._segments is not old.segments:
            self._directory = directory_of([one.ids for one in self._segments])
        self.state = State(
            old.version + 1, clock, self._segments, self._directory, head, len(head.events)
        )

    def stats(self) -> dict[str, Any]:
        """What there is, and what it costs."""
        state = self.state
        n_dead_in_head, *n_dead = self._n_dead_of_parts()
        sizes = [one.memory_bytes() for one in state.segments]
        n_events = [one.n_rows - dead for one, dead in zip(state.segments, n_dead, strict=True)]
        return {
            "n_events": len(self),
            "n_head_events": state.n_head - n_dead_in_head,
            "n_segments": len(state.segments),
            "n_dead": sum(n_dead),
            "n_rough": sum(segment.n_rough for segment in state.segments),
            "segments": [
                {"n_events": n, "memory": size} for n, size in zip(n_events, sizes, strict=True)
            ],
            "memory": sum(sizes),
            "clock": None if state.clock == LONG_AGO else datetime_of(state.clock),
        }

    # -- inside

    def _n_dead_of_parts(self) -> list[int]:
        """How many of the state are dead: of the head, and of each segment.

        Whoever calls has the lock; a change that is open all the same was left by an interrupt,
        and is not over: what died in it lives.
        """
        state = self.state
        if not self._is_open:
            return [self._n_dead, *(one.n_dead for one in state.segments)]
        deaths = [state.head.cells.death, *(one.cells.death for one in state.segments)]
        return [int(np.count_nonzero((one > 0) & (one <= state.version))) for one in deaths]

    def _segment(self, tables: Sequence[EventTable], kept: Sequence[Kept]) -> Segment:
        asked = [intervals for one in list(self.asked) for intervals in one.intervals]
        return Segment.of(tables, kept, asked)

    def _merge(self, clock: int) -> None:
        """Make one of the newest segments while these are many and of like size."""
        self._segments = tuple(
            one for one in self._segments if one.latest > clock or one in self._merged
        )
        while (chosen := self._to_merge()) and not self._is_for_thread(chosen):
            rows = [segment.living(clock) for segment in chosen]
            self._replace(chosen, self._united(chosen, rows))

    def _is_for_thread(self, chosen: Sequence[Segment]) -> bool:
        is_large = sum(one.n_rows for one in chosen) > MAX_AT_ONCE
        return is_large and len(self._segments) <= MANY

    def _to_merge(self) -> tuple[Segment, ...]:
        """The newest segments that are to become one, none of which is being merged."""
        first = self._segments.index(self._merged[-1]) + 1 if self._merged else 0
        newer = self._segments[first:]
        n_chosen = n_to_merge(
            [segment.n_rows for segment in newer], [segment.n_letters for segment in newer]
        )
        return newer[len(newer) - n_chosen :]

    def _united(
        self, segments: Sequence[Segment], rows: Sequence[npt.NDArray[np.intp]]
    ) -> Segment | None:
        """The segment of some rows of segments, if there are any."""
        if not any(map(len, rows)):
            return None
        return self._segment([one.table for one in segments], rows)

    def _replace(self, old: Sequence[Segment], new: Segment | None) -> None:
        """Let a new segment stand where some neighbours were."""
        at = self._segments.index(old[0])
        before, after = self._segments[:at], self._segments[at + len(old) :]
        self._segments = (*before, *((new,) if new else ()), *after)

    # -- merging beside the writer

    def _start_merging(self, clock: int) -> None:
        """Let a thread merge the newest segments, if they are too large for the writer."""
        if self._merging is not None:
            return  # the one that is under way looks for more when it ends
        chosen = self._to_merge()
        if not chosen or not self._is_for_thread(chosen):
            return
        # What was changed is there, whether or not this can be done: then the next change tries.
        with suppress(RuntimeError, MemoryError):
            rows = [segment.living(clock) for segment in chosen]
            thread = threading.Thread(
                target=self._merge_beside, args=(chosen, rows), name="tamis-merge", daemon=True
            )
            thread.start()  # it waits for the lock before it looks at what follows
            self._merged, self._merging = chosen, thread

    def _merge_beside(self, old: tuple[Segment, ...], rows: Sequence[npt.NDArray[np.intp]]) -> None:
        new = None
        try:
            new = self._united(old, rows)
        finally:
            with self.lock:
                self._merged, self._merging = (), None  # if it failed, the next one tries again
                if new is not None or not any(map(len, rows)):
                    self._take_over(old, rows, new)

    def _take_over(
        self, old: Sequence[Segment], rows: Sequence[npt.NDArray[np.intp]], new: Segment | None
    ) -> None:
        """Let readers see a new segment, without what died while it was made."""
        with self.change(self.state.clock):
            if new is not None:
                for segment, kept in zip(old, rows, strict=True):
                    self._bury_in(new, segment, kept)
            self._replace(old, new)
            self._merge(self.state.clock)

    def _bury_in(self, new: Segment, old: Segment, kept: npt.NDArray[np.intp]) -> None:
        """Let what died of the rows of a segment be dead in a new one as well."""
        died = kept[old.cells.death[kept] != 0]
        if not len(died):
            return
        rows = np.empty(len(died), np.int32)
        ids, own = Stored.of(old.ids.array.take(pa.array(died))), new.ids
        find_texts(own.letters, own.offsets, own.table, ids.letters, ids.offsets, rows)
        new.cells.death[rows] = old.cells.death[died]
        new.n_dead += len(died)

    def wait_for_merging(self) -> None:
        """Return when no merge is under way."""
        while True:
            with self.lock:
                thread = self._merging
            if thread is None:
                return
            thread.join()


def _revive(cells: Cells, version: int) -> int:
    """Let live what was to die after a version; how many are dead."""
    cells.death[cells.death > version] = 0
    return int(np.count_nonzero(cells.death))


def n_to_merge(sizes: Sequence[int], letters: Sequence[Counter[str]] | None = None) -> int:
    """How many of the newest segments are to become one, from the sizes of all.

    None is larger than the newer ones together, so an event moves only into a segment of at
    least twice the size: it is written anew a few times, and there are few segments. Large ones,
    which a thread merges, may be twice as large as the newer ones, so that there are fewer yet.
    ``letters`` are the bytes of texts of each; what would hold too many of one kind is not made.

    >>> n_to_merge([100, 2, 2, 2, 2]), n_to_merge([100, 2, 2, 2])
    (4, 0)
    """
    n_chosen = n_rows = 0
    held: Counter[str] = Counter()
    letters = letters or [Counter()] * len(sizes)
    for size, own in zip(reversed(sizes), reversed(letters), strict=True):
        most = n_rows if size <= MAX_AT_ONCE else 2 * n_rows
        held.update(own)
        is_too_large = n_rows + size > MAX_ROWS or max(held.values(), default=0) > MAX_LETTERS
        if n_chosen and (size > most or is_too_large):
            break
        n_chosen += 1
        n_rows += size
    return n_chosen if n_chosen >= MIN_MERGED else 0


def check_letters(texts: Sequence[str] | pa.Array | pa.ChunkedArray, what: str) -> None:
    """Refuse texts that no segment can hold."""
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        n_letters = texts.nbytes  # and a little more
        if n_letters > MAX_LETTERS:
            n_letters = pc.sum(pc.binary_length(texts)).as_py() or 0
    else:
        n_letters = 4 * sum(map(len, texts))  # at most
        if n_letters > MAX_LETTERS:
            n_letters = sum(len(letters_of(text)) for text in texts)
    if n_letters > MAX_LETTERS:
        raise InvalidEvent(
            f"{what} has {n_letters:,} bytes of different texts; expected at most {MAX_LETTERS:,} "
            "at once, insert the events in several parts"
        )
