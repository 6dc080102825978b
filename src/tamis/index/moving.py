"""Moving: the subscriptions with a place, found by it and moved at little cost.

``Moving`` is what writers change under the index's lock, ``MovingView`` what a reader sees of it:
arrays that are only appended to, of which its version says how much is there. A delta that is
full is merged into a new base in the background; the arrays it replaces go when the last reader
has let go of them. So memory does not grow, however often subscriptions move.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.index.merge_thread import has_started, is_under_way
from tamis.index.movers import Area, MoverTable, NewMover, area_of, grown
from tamis.index.revision import Ask, Place
from tamis.kernels.moving import (
    CARD,
    PART_BITS,
    ROW,
    Base,
    Delta,
    Movers,
    Work,
    find_mover,
    handle_of,
    kill,
    move_row,
    move_rows,
    new_work,
    place_at,
    places_of,
    put,
    put_many,
)
from tamis.kernels.moving_match import list_in_hull, match_matrix_movers, match_movers
from tamis.kernels.moving_merge import adopt, merge, new_base, new_delta
from tamis.slots.encoding import Encoded, Vector

Array = npt.NDArray[Any]
RowNumbers = npt.NDArray[np.int32]
Columns = tuple[int, int]


MIN_DELTA = 2048  # entries from which on a delta is merged, or ...
DELTA_SHARE = 1 / 16  # ... this part of the movers, if that is more, but ...
MAX_DELTA = 32_768  # ... no more than so many: a longer one is slow to look through
MAX_WAITING = 4  # deltas' worth of entries; a writer that is faster than the merging waits

_NO_DELTA = new_delta(0, 0)


class MovingParts(NamedTuple):
    """Movers that nobody changes, as files hold them."""

    movers: Movers
    base: Base


class MovingView:
    """What a reader sees: everything behind one handle."""

    def __init__(
        self, columns: Columns, table: MoverTable, base: Base, deltas: Sequence[Delta]
    ) -> None:
        self.arrays, self.base, self.deltas = table.arrays, base, deltas
        self.handle = handle_of(table.levels, columns, self.arrays, base, deltas)
        self.n_movers = len(self.arrays.card) // CARD
        self.n_entries = len(base.entries.death) + sum(len(delta.birth) for delta in deltas)

    def match_plain(
        self, vector: Vector, version: int, ask: Ask, rows: RowNumbers, n_rows: int
    ) -> int:
        """Add the rows that a plain event satisfies to ``rows``; return their new number."""
        work, scratch = self._work()
        n_rows = match_movers(self.handle, scratch, vector, version, True, rows, n_rows)
        n_asked = work.asked[0]
        return self._ask(work.asked[1 : n_asked + 1], ask, rows, n_rows) if n_asked else n_rows

    def match(self, event: Encoded, version: int, ask: Ask, rows: RowNumbers, n_rows: int) -> int:
        """Add the rows that an event satisfies to ``rows``; return their new number."""
        if event.is_plain:
            return self.match_plain(event.vector, version, ask, rows, n_rows)
        work, scratch = self._work()
        if event.hull_high is not None:
            list_in_hull(self.handle, scratch, event.vector, event.hull_high, version)
            return self._ask(work.asked[1 : work.asked[0] + 1], ask, rows, n_rows)
        first = n_rows
        asked = [np.zeros(0, np.int64)]
        accepted = [np.zeros(0, np.int32)]
        for vector in event.choices:
            last = match_movers(self.handle, scratch, vector, version, False, rows, first)
            accepted.append(rows[first:last].copy())
            asked.append(work.asked[1 : work.asked[0] + 1].copy())
        found = np.unique(np.concatenate(accepted))
        rows[first : first + len(found)] = found
        codes = np.unique(np.concatenate(asked))
        codes = codes[~np.isin(self._rows_of(codes), found)]
        return self._ask(codes, ask, rows, first + len(found))

    def match_many(self, matrix: Array, version: int, is_open: Array) -> tuple[Array, Array]:
        """The rows of plain events, those of event e from ``offsets[e]`` on.

        Sets ``is_open`` of events that need a filter asked.
        """
        offsets = np.zeros(len(matrix) + 1, np.int64)
        parts, first = [np.zeros(0, np.int32)], 0
        _, scratch = self._work()
        while first < len(matrix):
            rows = np.empty(2 * self.n_movers + (1 << 16), np.int32)
            ends = np.zeros(len(matrix) + 1, np.int64)
            last = match_matrix_movers(
                self.handle, scratch, matrix, first, version, rows, ends, is_open
            )
            offsets[first + 1 : last + 1] = offsets[first] + ends[first + 1 : last + 1]
            parts.append(rows[: ends[last]])
            first = last
        return np.concatenate(parts), offsets

    def memory_bytes(self) -> int:
        """Bytes of the arrays of entries."""
        deltas = [array for one in self.deltas for array in (*one[:-1], *one.entries)]
        return sum(array.nbytes for array in (*self.base[:-1], *self.base.entries, *deltas))

    def _ask(self, codes: Array, ask: Ask, rows: RowNumbers, n_rows: int) -> int:
        """Add the rows of the entries whose filter accepts the event; return their new number."""
        for code, row in zip(codes.tolist(), self._rows_of(codes).tolist(), strict=True):
            if ask(row, place_at(self.handle, code)):
                rows[n_rows] = row
                n_rows += 1
        return n_rows

    def _rows_of(self, codes: Array) -> RowNumbers:
        parts = [self.base.entries, *(delta.entries for delta in self.deltas)]
        movers = [parts[code & 3].mover[code >> PART_BITS] for code in codes.tolist()]
        rows: RowNumbers = self.arrays.card[np.array(movers, np.int64) * CARD + ROW]
        return rows

    def _work(self) -> tuple[Work, Array]:
        """This thread's scratch."""
        held: tuple[Work, Array] | None = getattr(_scratch, "held", None)
        if held is None or len(held[0].code) <= self.n_entries:
            held = _scratch.held = new_work(self.n_entries + self.n_entries // 4)
        return held


_scratch = threading.local()


class Moving:
    """The movers of an index; all but ``view`` is for writers, under the index's lock.

    ``columns``: those of the event's longitude and latitude.
    """

    def __init__(self, columns: Columns, lock: Any, held: MovingParts | None = None) -> None:
        self._columns = columns
        self._table = MoverTable(None if held is None else held.movers)
        self._base = new_base() if held is None else held.base
        self._deltas = [_NO_DELTA, _NO_DELTA]
        self._live = 1  # the part that grows
        self._n_live = 0
        self._n_frozen = 0  # entries of the other delta, which is being merged
        self.n_movers = len(self._table)  # that live
        self._where: Array | None = None  # the code of each mover's entry, -1 of those that went
        self._merging: threading.Thread | None = None
        self._lock, self._merged = lock, threading.Condition(lock)
        self.view = self._new_view()

    # -- changes; seen from the version on

    def add(self, row: int, new: NewMover, version: int) -> None:
        """A new mover; its row is higher than all others."""
        mover = self._table.append(row, new)
        where = self._located()
        if mover >= len(where):
            where = self._where = grown(where, mover, mover + 1)
        where[mover] = -1
        if self._table.is_new:
            self.view = self._new_view()
        at = self._new_entries(1)
        put(self.view.handle, where, self._live, at, mover, *new.place, version)
        self.n_movers += 1

    def move(self, row: int, place: Place, version: int) -> bool:
        """Let a row be at a place; False, and nothing done, if it has none."""
        where, n_all = self._located(), len(self._table)
        at = self._new_entries(1)
        moved = move_row(
            self.view.handle, where, n_all, self._live, at, row, *place, version
        )  # fmt: skip
        if not moved:
            self._n_live -= 1
        return bool(moved)

    def move_many(self, rows: Array, lon: Array, lat: Array, version: int) -> bool:
        """``move`` for different rows; False, and nothing done, if one of them has no place."""
        where, n_all = self._located(), len(self._table)
        at = self._new_entries(len(rows))
        failed = move_rows(self.view.handle, where, n_all, self._live, at, rows, lon, lat, version)
        if failed >= 0:
            self._n_live -= len(rows)
        return bool(failed < 0)

    def remove(self, row: int, version: int) -> None:
        """Let a row have no place any more, if it has one."""
        where = self._located()
        mover = find_mover(self.view.handle, len(self._table), row)
        if mover >= 0 and where[mover] >= 0:
            kill(self.view.handle, where[mover], version)
            where[mover] = -1
            self.n_movers -= 1

    def place_of(self, row: int) -> Place | None:
        """Where a row is, if it has a place."""
        where = self._located()
        mover = find_mover(self.view.handle, len(self._table), row)
        if mover < 0 or where[mover] < 0:
            return None
        lon, lat = place_at(self.view.handle, where[mover])
        return lon, lat

    def area_of(self, row: int) -> Area:
        """The area of a row that has or had a place; to be called without the lock too."""
        view = self.view
        # The table may have more than the view by now, but nobody knows of those yet.
        n_known = min(len(self._table), view.n_movers)
        return area_of(view.arrays, find_mover(view.handle, n_known, row))

    def compacted(self, new_row: Array) -> MovingParts | None:
        """The movers that live and where they are, under other rows: new_row[row]."""
        where = self._located()[: len(self._table)]
        living = np.nonzero(where >= 0)[0]
        if not len(living):
            return None
        lon, lat = np.empty(len(living)), np.empty(len(living))
        places_of(self.view.handle, where[living], lon, lat)
        rows = self._table.arrays.card[living * CARD + ROW]
        table = self._table.select(living, new_row[rows])
        delta = new_delta(len(living), 1)
        view = MovingView(self._columns, table, new_base(), [delta, _NO_DELTA])
        put_many(view.handle, np.full(len(living), -1, np.int64), 1, lon, lat, 0)
        base, _ = merge(new_base(), delta, len(living), table.arrays)
        return MovingParts(table.trimmed, base)

    def memory_bytes(self) -> int:
        """Bytes of all arrays."""
        where = 0 if self._where is None else self._where.nbytes
        return self._table.memory_bytes() + self.view.memory_bytes() + where

    # -- merging

    def tidy(self, show: Callable[[MovingView], None]) -> None:
        """Start to merge a delta that is full; to be called before a change is published.

        ``show`` lets readers see the view that comes of it.
        """
        if self._n_live < self._limit() or is_under_way(self._merging):
            return
        if not self._n_frozen:
            self._live, self._n_frozen, self._n_live = 3 - self._live, self._n_live, 0
            self._deltas[self._live - 1] = _NO_DELTA
            self.view = self._new_view()
        self._merging = threading.Thread(
            target=self._merge, args=(show,), name="tamis-moving", daemon=True
        )
        if not has_started(self._merging):
            self._merging = None  # the next change tries again

    def wait_if_behind(self) -> None:
        """Wait for the merging if too much is left to it; to be called after publishing."""
        while is_under_way(self._merging) and self._n_live >= MAX_WAITING * self._limit():
            self._merged.wait()

    def wait_for_merging(self) -> None:
        """Return when no merge is under way."""
        while (thread := self._merging) is not None and is_under_way(thread):
            thread.join()

    def _merge(self, show: Callable[[MovingView], None]) -> None:
        try:
            frozen = self._deltas[2 - self._live]
            base, number = merge(self._base, frozen, self._n_frozen, self._table.arrays)
            with self._lock:
                adopt(self._located(), number, self._live, base.entries.death)
                self._base, self._n_frozen = base, 0
                self._deltas[2 - self._live] = _NO_DELTA
                self.view = self._new_view()
                show(self.view)
        finally:  # if it failed, the next change tries again
            with self._lock:
                self._merging = None
                self._merged.notify_all()

    def _limit(self) -> int:
        return min(MAX_DELTA, max(MIN_DELTA, int(self.n_movers * DELTA_SHARE)))

    def _new_entries(self, n: int) -> int:
        """The number of the first of n new entries of the delta that grows."""
        first, delta = self._n_live, self._deltas[self._live - 1]
        self._n_live += n
        if self._n_live > len(delta.birth):
            n_entries = max(self._n_live, 2 * len(delta.birth), self._limit() + MIN_DELTA)
            n_lists = len(delta.head) or 1 << self._limit().bit_length()
            larger = new_delta(n_entries, n_lists)
            larger.head[: len(delta.head)] = delta.head
            for old, new in zip(_flat(delta), _flat(larger), strict=True):
                new[: len(old)] = old
            self._deltas[self._live - 1] = larger
            self.view = self._new_view()
        return first

    def _new_view(self) -> MovingView:
        self._table.is_new = False
        return MovingView(self._columns, self._table, self._base, tuple(self._deltas))

    def _located(self) -> Array:
        """Where all movers are; of an index that was opened it is found out when first needed."""
        if self._where is None:
            self._where = np.full(len(self._table), -1, np.int64)
            numbers = np.arange(len(self._base.entries.mover), dtype=np.int64)
            self._where[self._base.entries.mover] = numbers << PART_BITS
        return self._where


def _flat(delta: Delta) -> list[Array]:
    return [*delta[1:-1], *delta.entries]
