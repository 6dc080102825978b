"""EventTable: many events as columns, and single ones made of them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.events.lanes import Name, encode_many
from tamis.events.moments import NEVER, datetime_of, micros_or
from tamis.model import Event
from tamis.slots.lanes import BOOLEAN, LON, NUMBER, TEXT, TIME

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Texts = dict[str, list[str]]  # of each attribute, ascending

# Flags of an event.
ROUGH = 1  # the columns only bound what it holds; its blob is the whole event as JSON
HAS_TIME = 2  # it has a time of its own, not only one of arrival
HAS_PLACE = 4  # its location is a field, and so an attribute too

NONE_WHOLE, ALL_WHOLE = -2, -1


@dataclass(slots=True)
class EventTable:
    """N events over C columns, each an attribute in a lane; see ``kernels.event_scan.Cells``.

    ``whole_of`` says which numbers of a column were integers: none, all, or those of a row of
    ``whole``. ``texts`` are the texts of each attribute that has some, ascending; their codes
    are their positions. A blob is the payload, or the JSON of a rough event.
    """

    names: tuple[Name, ...]
    low: Floats  # f8[C, N]
    high: Floats  # f8[H, N]
    high_of: npt.NDArray[np.int32]  # i4[C], -1 where low says it all
    whole: npt.NDArray[np.bool_]  # b1[W, N]
    whole_of: npt.NDArray[np.int32]  # i4[C]
    texts: dict[str, pa.Array]
    ids: pa.Array
    until: Integers
    moment: Integers  # the time of an event, or when it arrived
    sequence: Integers  # the how manieth that arrived
    flags: npt.NDArray[np.uint8]
    blobs: pa.Array | None  # large_binary, None if all are empty

    def __len__(self) -> int:
        return len(self.until)

    def blob(self, row: int) -> bytes:
        """The payload of an event, or the JSON of a rough one."""
        if self.blobs is None:
            return b""
        held: bytes = self.blobs[row].as_py()
        return held

    def high_column(self, column: int) -> Floats:
        """The high ends of a column."""
        at = self.high_of[column]
        highs: Floats = self.low[column] if at < 0 else self.high[at]
        return highs

    def value(self, column: int, row: int) -> Any:
        """The value that a column holds of a plain event; of a point its longitude's column."""
        (name, lane), number = self.names[column], float(self.low[column, row])
        if lane == TEXT:
            return self.texts[name][int(number)].as_py()
        if lane == BOOLEAN:
            return number == 1.0
        if lane == TIME:
            return datetime_of(int(number))
        at = self.whole_of[column]
        is_whole = at == ALL_WHOLE or (at >= 0 and bool(self.whole[at, row]))
        return int(number) if is_whole else number


def flags_of(event: Event, is_plain: bool) -> int:
    """The flags of an event."""
    return (
        (0 if is_plain else ROUGH)
        | (0 if event.time is None else HAS_TIME)
        | (0 if event.location is None else HAS_PLACE)
    )


class Filled(NamedTuple):
    """The columns of N events; ``high`` is ``low`` where no event holds more than it says."""

    names: tuple[Name, ...]
    low: Floats  # f8[C, N]
    high: Floats  # f8[C, N]
    is_whole: npt.NDArray[np.bool_]  # b1[C, N], whether the number was an integer

    def recoded(self, codes: Mapping[tuple[str, str], int], texts: Texts) -> Filled:
        """The columns with other codes of texts: their positions in ``texts``."""
        ranks = np.full(len(codes) + 1, np.nan)  # the last for those who have no text
        for name, held in texts.items():
            ranks[[codes[name, text] for text in held]] = np.arange(len(held))
        is_text = np.array([lane == TEXT for _, lane in self.names])
        sides = [self.low.copy(), self.high if self.high is self.low else self.high.copy()]
        for side in sides[: 1 if self.high is self.low else 2]:
            old = side[is_text]
            side[is_text] = ranks[np.where(np.isnan(old), len(codes), old).astype(np.intp)]
        return self._replace(low=sides[0], high=sides[0] if self.high is self.low else sides[1])


def texts_in_order(codes: Iterable[tuple[str, str]]) -> Texts:
    """The texts of each attribute, ascending, from pairs of an attribute and a text."""
    texts: dict[str, list[str]] = {}
    for name, text in codes:
        texts.setdefault(name, []).append(text)
    return {name: sorted(held) for name, held in texts.items()}


def table_of_events(
    events: Sequence[Event], moments: Sequence[int], sequence: Sequence[int]
) -> EventTable:
    """Events as a table; the times and numbers of their arrival are the caller's."""
    texts = _texts_of(events)
    codes = {name: {text: i for i, text in enumerate(held)} for name, held in texts.items()}
    column_of: dict[Name, int] = {}
    spans = encode_many(
        [event.attributes for event in events], lambda name, text: codes[name][text], column_of
    )
    low = np.full((len(column_of), len(events)), np.nan)
    low[spans.columns, spans.rows] = spans.low
    high, is_whole = low, np.zeros(low.shape, np.bool_)
    if spans.high is not spans.low:
        high = low.copy()
        high[spans.columns, spans.rows] = spans.high
        is_whole[spans.columns, spans.rows] = spans.is_whole
    plain = spans.is_plain.tolist()
    return table_of_columns(
        events, Filled(tuple(column_of), low, high, is_whole), texts,
        np.array([micros_or(event.until, NEVER) for event in events], np.int64),
        np.array(moments, np.int64), np.array(sequence, np.int64),
        np.array([flags_of(*pair) for pair in zip(events, plain, strict=True)], np.uint8),
    )  # fmt: skip


def table_of_columns(
    events: Sequence[Event], filled: Filled, texts: Texts,
    until: Integers, moments: Integers, sequence: Integers, flags: npt.NDArray[np.uint8],
) -> EventTable:  # fmt: skip
    """Events as a table, from their columns."""
    names, low, high, is_whole = filled
    blobs = [
        json.dumps(event.to_json(), ensure_ascii=False).encode() if flag & ROUGH else event.payload
        for event, flag in zip(events, flags.tolist(), strict=True)
    ]
    return EventTable(
        names, low, *_highs(low, high), *_wholes(low, is_whole),
        {name: pa.array(held, pa.string()) for name, held in texts.items()},
        pa.array([event.id for event in events], pa.string()),
        until, moments, sequence, flags,
        pa.array(blobs, pa.large_binary()) if any(blobs) else None,
    )  # fmt: skip


def _texts_of(events: Sequence[Event]) -> Texts:
    texts: dict[tuple[str, str], None] = {}
    for event in events:
        for name, values in event.attributes.items():
            if type(values[0]) is float and len(values) == 1:  # mostly
                continue
            for value in values:
                if type(value) is str:
                    texts[name, value] = None
    return texts_in_order(texts)


def _highs(low: Floats, high: Floats) -> tuple[Floats, npt.NDArray[np.int32]]:
    """The high ends of the columns where some differ from the low ones, and which these are."""
    if high is low:
        return np.zeros((0, low.shape[1])), np.full(len(low), -1, np.int32)
    differs: npt.NDArray[np.bool_] = ((low != high) & ~np.isnan(low)).any(axis=1)
    return high[differs], numbered(differs)


def numbered(chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """The chosen ones numbered from 0, -1 for the others."""
    return np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)


def _wholes(
    low: Floats, is_whole: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    has_whole = np.asarray(is_whole.any(axis=1))
    if not has_whole.any():
        return np.zeros((0, low.shape[1]), np.bool_), np.full(len(low), NONE_WHOLE, np.int32)
    is_mixed = has_whole & np.asarray((~is_whole & ~np.isnan(low)).any(axis=1))
    whole_of = np.where(has_whole, ALL_WHOLE, NONE_WHOLE).astype(np.int32)
    whole_of[is_mixed] = numbered(is_mixed)[is_mixed]
    return is_whole[is_mixed], whole_of


VALUE_LANES = (TEXT, BOOLEAN, TIME, NUMBER, LON)  # a text also stands in lanes after its own
