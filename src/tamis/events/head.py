"""Head: the newest events, few enough to be scanned."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from tamis.events.lanes import Name, encode
from tamis.events.moments import NEVER, micros_or
from tamis.events.part import Part, Rows
from tamis.events.table import EventTable, flags_of, table_of_events
from tamis.index.columns import TEXT
from tamis.kernels.event_scan import LEAF, Cells
from tamis.model import Event
from tamis.values import Attributes

_COLUMNS = 32


class Head:
    """Events that are appended one by one; a reader scans as many as there were.

    Appending writes only behind what any reader looks at; full arrays are replaced by longer
    ones, and a reader keeps those it began with. Texts are numbered as they come.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.events: list[Event] = []
        self.row_of_id: dict[str, int] = {}
        self.column_of: dict[Name, int] = {}
        self.codes: dict[tuple[str, str], int] = {}
        self.has_rough = False
        n_rows, n_leaves = capacity, -(-capacity // LEAF)
        self.flags = np.zeros(n_rows, np.uint8)
        self.moment, self.sequence = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        low, high = np.full((2, _COLUMNS, n_rows), np.nan)
        self.cells = Cells(
            low, high, np.arange(_COLUMNS, dtype=np.int32),
            np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64),
            *_unbounded(_COLUMNS, n_leaves), np.full(n_leaves, NEVER),
            np.zeros((0, 0, LEAF), np.uint8),
            *_unbounded(_COLUMNS, 1), *_unbounded(_COLUMNS),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.events)

    def append(self, event: Event, arrival: int, sequence: int) -> None:
        """Add an event that arrives at this moment."""
        row = len(self.events)
        spans, is_plain = encode(event.attributes, self._code_of)
        columns = [self._column_of(name) for name, _, _ in spans]
        cells = self.cells
        lows, highs = cells.low, cells.high
        for column, (name, low, high) in zip(columns, spans, strict=True):
            if low != high and name[1] == TEXT:  # codes have no order yet
                low, high = -math.inf, math.inf
            lows[column, row] = low
            highs[column, row] = high
        cells.until[row] = micros_or(event.until, NEVER)
        self.moment[row] = micros_or(event.time, arrival)
        self.sequence[row] = sequence
        self.flags[row] = flags_of(event, is_plain)
        self.has_rough |= not is_plain
        self.events.append(event)
        self.row_of_id[event.id] = row

    def living(self, clock: int) -> npt.NDArray[np.intp]:
        """The rows of the events that neither died nor have expired."""
        n_rows = len(self.events)
        death, until = self.cells.death[:n_rows], self.cells.until[:n_rows]
        return np.flatnonzero((death == 0) & (until > clock))

    def table(self) -> EventTable:
        """All events as a table."""
        n_rows = len(self.events)
        moments, sequence = self.moment[:n_rows], self.sequence[:n_rows]
        return table_of_events(self.events, moments.tolist(), sequence.tolist())

    def _code_of(self, attribute: str, text: str) -> float:
        return self.codes.setdefault((attribute, text), len(self.codes))

    def _column_of(self, name: Name) -> int:
        column = self.column_of.get(name)
        if column is None:
            column = len(self.column_of)
            if column >= len(self.cells.low):
                self._widen()
            self.column_of[name] = column
        return column

    def _widen(self) -> None:
        """Twice the columns."""
        cells = self.cells
        n_columns, n_rows = cells.low.shape
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


def _unbounded(*shape: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return np.full(shape, -np.inf), np.full(shape, np.inf)


class HeadView(Part):
    """The head as it was at some moment."""

    def __init__(self, head: Head) -> None:  # made at every change, so without a copy
        self._head, self.n_rows, self.cells = head, len(head.events), head.cells
        self.n_columns = len(head.column_of)
        self.moment, self.sequence, self.flags = head.moment, head.sequence, head.flags
        self.has_rough = head.has_rough

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

    def number_of(self, id: str) -> int:
        """The row of the newest event of an id, or -1; it may have died."""
        row = self._head.row_of_id.get(id, -1)
        return row if row < self.n_rows else -1

    def ids_of(self, rows: Rows) -> list[str]:
        """The ids of rows."""
        return [self._head.events[row].id for row in rows.tolist()]

    def event(self, row: int) -> Event:
        """The event of a row."""
        return self._head.events[row]

    def attributes(self, row: int, names: Collection[str]) -> Attributes:
        """What an event holds."""
        return self._head.events[row].attributes
