"""Segment: many events that no longer change, with the zones of their leaves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.events.layout import Intervals
from tamis.events.merging import Kept, merge
from tamis.events.moments import NEVER, datetime_of
from tamis.events.part import Part, Rows
from tamis.events.table import HAS_PLACE, HAS_TIME, ROUGH, VALUE_LANES, EventTable
from tamis.kernels.event_cells import GROUP, LEAF, Cells, handle_of
from tamis.kernels.event_ranking import where_of
from tamis.kernels.event_scan import fill_codes, fill_zones
from tamis.model import Event
from tamis.model.event import LOCATION
from tamis.slots.lanes import LAT, LON
from tamis.slots.texts import Stored
from tamis.values import Attributes, Point, Value


class Segment(Part):
    """A table of events behind its zones; only deaths are ever written."""

    has_stored_ids = True

    def __init__(
        self, table: EventTable, ids: Stored, texts: dict[str, Stored], cells: Cells
    ) -> None:
        self.table, self.ids, self.texts, self.cells = table, ids, texts, cells
        self.handle = handle_of(cells)
        self.n_rows, self.n_columns = len(table), len(table.names)
        self.layout = table.names
        self.moment, self.sequence, self.flags = table.moment, table.sequence, table.flags
        self.where = where_of(table.moment, table.sequence, ids.offsets, ids.letters)
        self.n_rough = int(np.count_nonzero(table.flags & ROUGH))
        self.has_rough = self.n_rough > 0
        self.n_dead = int(np.count_nonzero(cells.death))
        self.latest = int(cells.zone_until.max())  # when the last event expires
        # Bytes of the ids, under a name that no attribute has, and of the texts of each attribute.
        self.n_letters = Counter({name: len(held.letters) for name, held in texts.items()})
        self.n_letters[""] = len(ids.letters)
        self._columns = {name: column for column, name in enumerate(table.names)}
        self._lanes: dict[str, list[tuple[int, int]]] = {}
        for lane in VALUE_LANES:
            for name in dict.fromkeys(attribute for attribute, _ in table.names):
                if (name, lane) in self._columns:
                    self._lanes.setdefault(name, []).append((lane, self._columns[name, lane]))

    @classmethod
    def of(
        cls, tables: Sequence[EventTable], kept: Sequence[Kept], asked: Sequence[Intervals]
    ) -> Segment:
        """The events of tables that stay; a ValueError names an id that is there twice."""
        table = merge(tables, kept, asked)
        ids = Stored.of(table.ids)
        texts = {name: Stored.of(held) for name, held in table.texts.items()}
        table.ids, table.texts = ids.array, {name: held.array for name, held in texts.items()}
        return cls(table, ids, texts, cells_of(table, np.zeros(len(table), np.int64)))

    # -- what a question asks

    def column_of(self, name: tuple[str, int]) -> int:
        """The column of an attribute in a lane, or -1."""
        return self._columns.get(name, -1)

    def code_of(self, attribute: str, text: str) -> float:
        """The code of a text, or -1 if no event holds it."""
        texts = self.texts.get(attribute)
        return -1.0 if texts is None else float(texts.number_of(text))

    def codes_with(self, attribute: str, prefix: str) -> tuple[float, float]:
        """The first and last code of the texts that start so."""
        texts = self.texts.get(attribute)
        if texts is None:
            return 1.0, 0.0
        held = _Ascending(texts.array, len(prefix))
        return float(bisect_left(held, prefix)), float(bisect_right(held, prefix) - 1)

    # -- events

    def ids_of(self, rows: Rows) -> list[str]:
        """The ids of rows."""
        return self.ids.texts_of(rows)

    def event(self, row: int) -> Event:
        """The event of a row."""
        table, flags = self.table, int(self.flags[row])
        if flags & ROUGH:
            return Event.from_json(table.blob(row))
        attributes = self.attributes(row, self._lanes)
        until, moment = int(table.until[row]), int(table.moment[row])
        return Event(
            self.ids.texts_of(np.array([row], np.int32))[0],
            attributes,
            table.blob(row),
            datetime_of(moment) if flags & HAS_TIME else None,
            None if until == NEVER else datetime_of(until),
            attributes[LOCATION][0] if flags & HAS_PLACE else None,  # type: ignore[arg-type]
        )

    def attributes(self, row: int, names: Collection[str]) -> Attributes:
        """What an event holds of some attributes, or all where it is rough."""
        table = self.table
        if self.flags[row] & ROUGH:
            return Event.from_json(table.blob(row)).attributes
        made: Attributes = {}
        for name in names:
            for lane, column in self._lanes.get(name, ()):
                if np.isnan(table.low[column, row]):
                    continue
                if lane == LON:
                    lat = self._columns[name, LAT]
                    made[name] = (Point(table.low[column, row], table.low[lat, row]),)
                else:
                    made[name] = (table.value(column, row),)
                break
        return made

    def places(self, rows: Rows) -> list[tuple[Value, ...]]:
        """What each of some events holds as its location."""
        columns = [self.column_of((LOCATION, lane)) for lane in (LON, LAT)]
        if -1 in columns or bool((self.flags[rows] & ROUGH).any()):
            return super().places(rows)
        lons, lats = (self.table.low[column, rows].tolist() for column in columns)
        pairs = zip(lons, lats, strict=True)
        return [(Point(lon, lat),) if lon == lon else () for lon, lat in pairs]

    # -- going

    def living(self, clock: int) -> npt.NDArray[np.intp]:
        """The rows of the events that neither died nor have expired."""
        return np.flatnonzero((self.cells.death == 0) & (self.cells.until > clock))

    def memory_bytes(self) -> int:
        """Bytes of all arrays."""
        table = self.table
        arrays = [*self.cells, table.whole, table.whole_of, table.moment, table.sequence]
        stored = [*self.ids.arrays().values(), table.flags]
        stored += [array for texts in self.texts.values() for array in texts.arrays().values()]
        blobs = 0 if table.blobs is None else table.blobs.nbytes
        return sum(array.nbytes for array in (*arrays, *stored)) + int(blobs)


class _Ascending(Sequence[str]):
    """The beginnings of ascending texts, which ascend too."""

    def __init__(self, texts: pa.Array, n_letters: int) -> None:
        self._texts, self._n_letters = texts, n_letters

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, i: int) -> str:  # type: ignore[override]  # bisect asks for one
        text: str = self._texts[i].as_py()
        return text[: self._n_letters]


def cells_of(table: EventTable, death: npt.NDArray[np.int64]) -> Cells:
    """The columns of a table with their zones."""
    n_columns, n_leaves = len(table.names), -(-len(table) // LEAF)
    zone_low, zone_high = np.zeros((2, n_columns, n_leaves))
    codes = np.zeros((n_leaves, n_columns, LEAF), np.uint8)
    for column in range(n_columns):
        low, zones = table.low[column], (zone_low[column], zone_high[column])
        fill_zones(low, table.high_column(column), *zones)
        if table.high_of[column] < 0:
            fill_codes(low, *zones, column, codes)
    latest = np.maximum.reduceat(table.until, np.arange(0, len(table), LEAF))
    groups = np.arange(0, n_leaves, GROUP)
    group_low = np.minimum.reduceat(zone_low, groups, axis=1)
    group_high = np.maximum.reduceat(zone_high, groups, axis=1)
    return Cells(
        table.low, table.high, table.high_of, table.until, death,
        zone_low, zone_high, latest, codes,
        group_low, group_high, group_low.min(axis=1), group_high.max(axis=1),
    )  # fmt: skip
