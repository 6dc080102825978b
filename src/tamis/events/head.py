"""Head: the newest events, few enough to be scanned."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt

from tamis.events.lanes import Name, encode_many
from tamis.events.moments import NEVER, micros_or
from tamis.events.part import Part, Rows
from tamis.events.question import Question
from tamis.events.table import (
    EventTable,
    Filled,
    flags_of,
    table_of_columns,
    table_of_events,
    texts_in_order,
)
from tamis.kernels.event_cells import LEAF, Cells, handle_of
from tamis.kernels.event_ranking import where_of
from tamis.kernels.event_scan import Moment
from tamis.model import Event
from tamis.slots.lanes import TEXT
from tamis.values import Attributes

_COLUMNS = 32
_MOST_BYTES = 4  # of a letter
_MANY = 64  # events that become columns at once; who asks may have to wait for so many


class Head:
    """Events that are appended one by one; a reader scans as many as there were.

    They become columns several at a time, which takes a fraction of the time: when there are
    enough of them, or when somebody asks. This writes only behind what any reader looks at; full
    arrays are replaced by longer ones, and a reader keeps those it began with. Texts are numbered
    as they come.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.events: list[Event] = []
        self._rows_of_id: dict[str, tuple[int, ...]] = {}  # ascending
        self._arrivals: list[tuple[int, int]] = []  # when, and the how manieth
        self.column_of: dict[Name, int] = {}
        self.codes: dict[tuple[str, str], int] = {}
        self.has_rough = False
        self.lock = threading.Lock()  # of what follows from the events: columns, codes, flags
        self._view: HeadView | None = None
        self._n_encoded = 0
        self._has_highs = self._has_disordered = False  # texts that only codes in order can bound
        n_rows, n_leaves = capacity, -(-capacity // LEAF)
        self.flags = np.zeros(n_rows, np.uint8)
        self.moment, self.sequence = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        self.where = where_of(self.moment, self.sequence)
        self._is_whole = np.zeros((_COLUMNS, n_rows), np.bool_)
        low, high = np.full((2, _COLUMNS, n_rows), np.nan)
        self.cells = Cells(
            low, high, np.arange(_COLUMNS, dtype=np.int32),
            np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64),
            *_unbounded(_COLUMNS, n_leaves), np.full(n_leaves, NEVER),
            np.zeros((0, 0, LEAF), np.uint8),
            *_unbounded(_COLUMNS, 1), *_unbounded(_COLUMNS),
        )  # fmt: skip
        self.handle = handle_of(self.cells)

    def __len__(self) -> int:
        return len(self.events)

    def append(self, event: Event, arrival: int, sequence: int) -> None:
        """Add an event that arrives at this moment."""
        row = len(self.events)
        self.events.append(event)
        self._arrivals.append((arrival, sequence))
        before = self._rows_of_id.get(event.id)
        self._rows_of_id[event.id] = (row,) if before is None else (*before, row)
        if row - self._n_encoded >= _MANY:
            with self.lock:
                self.encode(row + 1)

    def row_of(self, id: str, n_rows: int) -> int:
        """The last of the first rows that has an id, or -1.

        >>> head = Head(8)
        >>> for _ in range(2):
        ...     head.append(Event("e", {}), 0, 0)
        >>> head.row_of("e", 2), head.row_of("e", 1), head.row_of("e", 0)
        (1, 0, -1)
        """
        for row in reversed(self._rows_of_id.get(id, ())):
            if row < n_rows:
                return row
        return -1

    def cut(self, n_rows: int) -> None:
        """Forget all but the first rows; nobody may have read the others."""
        for id in {event.id for event in self.events[n_rows:]}:
            rows = tuple(row for row in self._rows_of_id.get(id, ()) if row < n_rows)
            if rows:
                self._rows_of_id[id] = rows
            else:
                self._rows_of_id.pop(id, None)
        with self.lock:
            del self.events[n_rows:], self._arrivals[n_rows:]
            self._n_encoded = min(self._n_encoded, n_rows)
            for held in (self.cells.low, self.cells.high):
                held[:, n_rows:] = np.nan
            self._is_whole[:, n_rows:] = False
            self._view = None

    def view(self, n_rows: int) -> HeadView:
        """The first rows as a part of the store."""
        view = self._view
        if view is None or view.n_rows != n_rows:
            view = self._view = HeadView(self, n_rows)
        return view

    def encode(self, n_rows: int) -> None:
        """Let the columns hold so many events at least; whoever calls has the lock."""
        first = self._n_encoded
        if first >= n_rows:
            return
        events = self.events[first:n_rows]
        arrivals, sequence = zip(*self._arrivals[first:n_rows], strict=True)
        self.cells.until[first:n_rows] = [micros_or(event.until, NEVER) for event in events]
        self.sequence[first:n_rows] = sequence
        self.moment[first:n_rows] = [
            micros_or(event.time, arrival) for event, arrival in zip(events, arrivals, strict=True)
        ]
        plain = self._encode_values(events, first)
        self.flags[first:n_rows] = [flags_of(*pair) for pair in zip(events, plain, strict=True)]
        self.has_rough |= not all(plain)
        self._n_encoded = n_rows

    def _encode_values(self, events: list[Event], first: int) -> list[bool]:
        """Write what events from row ``first`` on hold; which of them the columns say all of."""
        attributes = [event.attributes for event in events]
        spans = encode_many(attributes, self._code_of, self.column_of)
        while len(self.column_of) > len(self.cells.low):
            self._widen()
        low, high, rows = spans.low, spans.high, spans.rows + first
        if high is not low:
            is_text = np.array([lane == TEXT for _, lane in self.column_of])
            has_no_order = is_text[spans.columns] & (low != high)  # codes have none yet
            self._has_disordered |= bool(has_no_order.any())
            self._has_highs |= bool((low != high).any())
            low = np.where(has_no_order, -np.inf, low)
            high = np.where(has_no_order, np.inf, high)
            self._is_whole[spans.columns, rows] = spans.is_whole
        self.cells.low[spans.columns, rows] = low
        self.cells.high[spans.columns, rows] = high
        return list(spans.is_plain.tolist())

    def living(self, clock: int) -> npt.NDArray[np.intp]:
        """The rows of the events that neither died nor have expired."""
        n_rows = len(self.events)
        with self.lock:
            self.encode(n_rows)
        death, until = self.cells.death[:n_rows], self.cells.until[:n_rows]
        return np.flatnonzero((death == 0) & (until > clock))

    def thinned(self) -> Head:
        """A head of the events that did not die; readers of this one are not disturbed."""
        made = Head(self.capacity)
        is_dead = self.cells.death[: len(self.events)] != 0
        for row in np.flatnonzero(~is_dead).tolist():
            made.append(self.events[row], *self._arrivals[row])
        self._view = None  # it knows this head: both would wait for the collector of cycles
        return made

    def tables(
        self, rows: npt.NDArray[np.intp], most: int
    ) -> Iterator[tuple[EventTable, npt.NDArray[np.intp] | None]]:
        """Tables, and which of their rows stay (None for all), that together are some rows.

        It is one, unless that could hold more bytes of texts than allowed.
        """
        if not len(rows):
            return
        n_letters = sum(len(text) for _, text in self.codes)
        n_letters += sum(len(event.id) for event in self.events)
        if _MOST_BYTES * n_letters <= most:
            yield self.table(), None if len(rows) == len(self) else rows
            return
        ends = np.cumsum([_MOST_BYTES * _n_letters(self.events[row]) for row in rows.tolist()])
        while len(rows):
            n = max(1, int(np.searchsorted(ends, most, "right")))
            events = [self.events[row] for row in rows[:n].tolist()]
            moments, sequence = self.moment[rows[:n]].tolist(), self.sequence[rows[:n]].tolist()
            yield table_of_events(events, moments, sequence), None
            rows, ends = rows[n:], ends[n:] - ends[n - 1]

    def table(self) -> EventTable:
        """All events as a table."""
        n_rows = len(self.events)
        with self.lock:
            self.encode(n_rows)
        moments, sequence = self.moment[:n_rows], self.sequence[:n_rows]
        if self._has_disordered:
            return table_of_events(self.events, moments.tolist(), sequence.tolist())
        n_columns = len(self.column_of)
        filled = Filled(
            tuple(self.column_of),
            self.cells.low[:n_columns, :n_rows],
            self.cells.high[:n_columns, :n_rows],
            self._is_whole[:n_columns, :n_rows],
        )
        if not self._has_highs:
            filled = filled._replace(high=filled.low)
        texts = texts_in_order(self.codes)
        if texts:
            filled = filled.recoded(self.codes, texts)
        until, flags = self.cells.until[:n_rows], self.flags[:n_rows]
        return table_of_columns(self.events, filled, texts, until, moments, sequence, flags)

    def _code_of(self, attribute: str, text: str) -> float:
        return self.codes.setdefault((attribute, text), len(self.codes))

    def _widen(self) -> None:
        """Twice the columns."""
        cells = self.cells
        n_columns, n_rows = cells.low.shape
        self._is_whole = np.concatenate([self._is_whole, np.zeros_like(self._is_whole)])
        empty = np.full((n_columns, n_rows), np.nan)
        n_leaves = len(cells.zone_until)
        zone_low, zone_high = _unbounded(2 * n_columns, n_leaves)
        group_low, group_high = _unbounded(2 * n_columns, 1)
        least, most = _unbounded(2 * n_columns)
        self.cells = cells._replace(
            low=np.concatenate([cells.low, empty]),
            high=np.concatenate([cells.high, empty]),
            high_of=np.arange(2 * n_columns, dtype=np.int32),
            zone_low=zone_low, zone_high=zone_high,
            group_low=group_low, group_high=group_high, least=least, most=most,
        )  # fmt: skip
        self.handle = handle_of(self.cells)


def _n_letters(event: Event) -> int:
    """Letters of the id and of the texts of an event."""
    held = (value for values in event.attributes.values() for value in values)
    return len(event.id) + sum(len(value) for value in held if isinstance(value, str))


def _unbounded(*shape: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return np.full(shape, -np.inf), np.full(shape, np.inf)


class HeadView(Part):
    """The head as it was at some moment."""

    has_stored_ids = False

    def __init__(self, head: Head, n_rows: int) -> None:
        self._head, self.n_rows, self.where = head, n_rows, head.where
        # Of the cells until and death are always those of the head.
        self.cells, self.handle = head.cells, head.handle
        self.moment, self.sequence, self.flags = head.moment, head.sequence, head.flags
        self.layout, self._is_encoded = (), False

    def find(self, question: Question, moment: Moment) -> Rows:
        """The rows of the valid events that satisfy a question, ascending."""
        self._encode()
        return super().find(question, moment)

    def sweep(self, clock: int, limit: int, version: int) -> int:
        """Let at most ``limit`` expired events die with a version; return how many."""
        self._encode()
        return super().sweep(clock, limit, version)

    def until_of(self, row: int) -> int:
        """When an event expires."""
        return micros_or(self._head.events[row].until, NEVER)

    def _encode(self) -> None:
        if self._is_encoded:
            return
        head = self._head
        with head.lock:
            if not self._is_encoded:  # so that other readers of this view see no change
                head.encode(self.n_rows)
                self.cells, self.handle = head.cells, head.handle
                self.n_columns = len(head.column_of)
                self.has_rough, self._is_encoded = head.has_rough, True

    def column_of(self, name: tuple[str, int]) -> int:
        """The column of an attribute in a lane, or -1."""
        column = self._head.column_of.get(name, -1)
        return column if column < self.n_columns else -1

    def code_of(self, attribute: str, text: str) -> float:
        """The code of a text, or -1 if no event holds it."""
        return self._head.codes.get((attribute, text), -1)

    def codes_with(self, attribute: str, prefix: str) -> None:
        """The codes have no order."""
        return None

    def ids_of(self, rows: Rows) -> list[str]:
        """The ids of rows."""
        return [self._head.events[row].id for row in rows.tolist()]

    def event(self, row: int) -> Event:
        """The event of a row."""
        return self._head.events[row]

    def attributes(self, row: int, names: Collection[str]) -> Attributes:
        """What an event holds."""
        return self._head.events[row].attributes
