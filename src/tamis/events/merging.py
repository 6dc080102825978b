"""Merging: the events of several tables as one, in a new order and without those that went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.events.layout import Intervals, order_of
from tamis.events.table import ALL_WHOLE, NONE_WHOLE, EventTable, Floats, numbered
from tamis.slots.lanes import TEXT

Kept = npt.NDArray[np.intp] | None  # the rows of a table that stay, None for all


class Source:
    """Tables and which of their rows stay, read column by column."""

    def __init__(self, tables: Sequence[EventTable], kept: Sequence[Kept]) -> None:
        self.tables, self.kept = tables, kept
        self.names = tuple(dict.fromkeys(name for table in tables for name in table.names))
        lengths = [
            len(table) if rows is None else len(rows)
            for table, rows in zip(tables, kept, strict=True)
        ]
        self.n_rows = sum(lengths)
        self._lengths = lengths
        self._columns = [{name: c for c, name in enumerate(table.names)} for table in tables]
        self.texts: dict[str, pa.Array] = {}
        self._codes: dict[str, list[Floats]] = {}
        for name, lane in self.names:
            if lane == TEXT:
                self._merge_texts(name)

    def concatenated(self, part_of: Callable[[EventTable], Any]) -> npt.NDArray[Any]:
        """One array of all tables, an element an event."""
        parts = [
            part_of(table) if rows is None else part_of(table)[rows]
            for table, rows in zip(self.tables, self.kept, strict=True)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def column(self, number: int, high: bool = False) -> Floats:
        """A column of all tables, NaN where one has no such column."""
        name = self.names[number]
        parts = []
        for i, (table, rows) in enumerate(zip(self.tables, self.kept, strict=True)):
            column = self._columns[i].get(name)
            if column is None:
                parts.append(np.full(self._lengths[i], np.nan))
                continue
            held = table.high_column(column) if high else table.low[column]
            held = held if rows is None else held[rows]
            if name[1] == TEXT:
                held = _recoded(held, self._codes[name[0]][i])
            parts.append(held)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def has_highs(self, number: int) -> bool:
        """Whether some event holds more than one number in a column."""
        return any(
            name in columns and table.high_of[columns[name]] >= 0
            for name in (self.names[number],)
            for table, columns in zip(self.tables, self._columns, strict=True)
        )

    def wholes(self, number: int) -> npt.NDArray[np.bool_] | int:
        """Which numbers of a column were integers: none, all, or these."""
        name = self.names[number]
        parts = []
        kinds = set()
        for i, (table, rows) in enumerate(zip(self.tables, self.kept, strict=True)):
            column = self._columns[i].get(name)
            at = NONE_WHOLE if column is None else int(table.whole_of[column])
            if column is not None:
                kinds.add(at)
            held = table.whole[at] if at >= 0 else np.full(len(table), at == ALL_WHOLE)
            parts.append(held if rows is None else held[rows])
        if len(kinds) == 1 and max(kinds) < 0:
            return kinds.pop()
        return np.concatenate(parts)

    def arrays(self, part_of: Callable[[EventTable], pa.Array]) -> pa.Array:
        """One Arrow array of all tables."""
        parts = [
            part_of(table) if rows is None else part_of(table).take(pa.array(rows))
            for table, rows in zip(self.tables, self.kept, strict=True)
        ]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def _merge_texts(self, attribute: str) -> None:
        """The texts that are still held, and the new code of each old one."""
        used = []
        for i, table in enumerate(self.tables):
            texts = table.texts.get(attribute, pa.array([], pa.string()))
            column = self._columns[i].get((attribute, TEXT))
            if column is not None and self.kept[i] is not None:
                low, high = table.low[column], table.high_column(column)
                codes = _codes_between(low[self.kept[i]], high[self.kept[i]], len(texts))
                texts = texts.take(pa.array(codes))
            used.append(texts)
        all_texts = pa.concat_arrays(used).unique()
        all_texts = all_texts.take(pc.array_sort_indices(all_texts))
        self.texts[attribute] = all_texts
        self._codes[attribute] = [
            pc.index_in(table.texts.get(attribute, pa.array([], pa.string())), value_set=all_texts)
            .cast(pa.float64())
            .to_numpy(zero_copy_only=False)
            for table in self.tables
        ]


def _codes_between(low: Floats, high: Floats, n: int) -> npt.NDArray[np.intp]:
    """Which of n codes lie between the two of an event: those of its other texts are among them.

    >>> _codes_between(np.array([1.0, np.nan]), np.array([3.0, np.nan]), 5).tolist()
    [1, 2, 3]
    """
    held = ~np.isnan(low)
    starts = np.bincount(low[held].astype(np.intp), minlength=n + 1)
    ends = np.bincount(high[held].astype(np.intp) + 1, minlength=n + 1)
    return np.flatnonzero(np.cumsum(starts - ends)[:n])


def _recoded(held: Floats, codes: Floats) -> Floats:
    is_missing = np.isnan(held)
    made = np.append(codes, np.nan)[np.where(is_missing, len(codes), held).astype(np.int64)]
    return made


def merge(
    tables: Sequence[EventTable], kept: Sequence[Kept], asked: Sequence[Intervals]
) -> EventTable:
    """The events that stay, in an order that suits what was asked."""
    source = Source(tables, kept)
    names, n_rows = source.names, source.n_rows
    order = order_of(n_rows, names, source.column, asked)

    def ordered(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array if order is None else array[order]

    low = np.empty((len(names), n_rows))
    for column in range(len(names)):
        low[column] = ordered(source.column(column))
    has_highs = np.array([source.has_highs(c) for c in range(len(names))], np.bool_)
    high = np.empty((int(has_highs.sum()), n_rows))
    for at, column in enumerate(np.flatnonzero(has_highs).tolist()):
        high[at] = ordered(source.column(column, high=True))
    wholes = [source.wholes(c) for c in range(len(names))]
    mixed = [ordered(one) for one in wholes if not isinstance(one, int)]
    is_mixed = np.array([not isinstance(one, int) for one in wholes], np.bool_)
    whole_of = np.array([one if isinstance(one, int) else 0 for one in wholes], np.int32)
    whole_of[is_mixed] = numbered(is_mixed)[is_mixed]
    ids, blobs = source.arrays(lambda table: table.ids), _blobs_of(source)
    if order is not None:
        ids = ids.take(pa.array(order))
        blobs = None if blobs is None else blobs.take(pa.array(order))
    until, moment, sequence, flags = (
        ordered(source.concatenated(attrgetter(name)))
        for name in ("until", "moment", "sequence", "flags")
    )
    return EventTable(
        names, low, high, numbered(has_highs),
        np.array(mixed, np.bool_).reshape(len(mixed), n_rows), whole_of,
        source.texts, ids, until, moment, sequence, flags, blobs,
    )  # fmt: skip


def _blobs_of(source: Source) -> pa.Array | None:
    if all(table.blobs is None for table in source.tables):
        return None
    empty = pa.scalar(b"", pa.large_binary())
    return source.arrays(lambda t: pa.repeat(empty, len(t)) if t.blobs is None else t.blobs)
