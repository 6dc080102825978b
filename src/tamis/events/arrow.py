"""Arrow tables as event tables, column by column, without touching each value."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.events.lanes import Name, encode
from tamis.events.moments import NEVER
from tamis.events.table import (
    ALL_WHOLE,
    HAS_PLACE,
    HAS_TIME,
    NONE_WHOLE,
    EventTable,
    Floats,
    Integers,
)
from tamis.model import EventColumns
from tamis.model.event import LOCATION
from tamis.slots.encoding import micros_of
from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, TEXT, TIME

_EXACT = 2**53
_FIRST, _LAST = (
    micros_of(moment)
    for moment in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
)
_NEAREST = 1e-100  # coordinates nearer to zero are zero, as in Point


class NotPlain(Exception):
    """The table holds what cannot be read column by column; events_from_arrow reads it."""


class _Columns:
    """The columns of an event table as they are made."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.low: dict[Name, Floats] = {}
        self.whole_of: list[int] = []
        self.texts: dict[str, pa.Array] = {}

    def add(self, attribute: str, lane: int, held: Floats, whole: int = NONE_WHOLE) -> None:
        if not np.isnan(held).all():
            self.low[attribute, lane] = held
            self.whole_of.append(whole)


def table_of_arrow(batch: pa.Table | pa.RecordBatch, arrival: int) -> EventTable:
    """The events of an Arrow table that arrive at one moment, numbered from 0.

    Raises NotPlain where some event is not plain, or not to be read without a look at it.
    """
    own, names = EventColumns(), batch.schema.names
    if len(set(names)) < len(names) or own.id not in names or not all(names):
        raise NotPlain
    arrays = {name: _in_one(batch.column(name)) for name in names}
    columns = _Columns(batch.num_rows)
    until = _moments(arrays.pop(own.until, None), columns.n_rows)
    time = _moments(arrays.pop(own.time, None), columns.n_rows)
    ids, payloads = _ids(arrays.pop(own.id)), _payloads(arrays.pop(own.payload, None))
    place = arrays.pop(own.location, None)
    flags = np.where(time == NEVER, 0, HAS_TIME).astype(np.uint8)
    if place is not None and not pa.types.is_null(place.type):
        if LOCATION in arrays:
            raise NotPlain
        _add_points(columns, LOCATION, place)
        held = columns.low.get((LOCATION, LON))
        if held is not None:
            flags[~np.isnan(held)] |= HAS_PLACE
    for name, array in arrays.items():
        _add(columns, name, array)
    return EventTable(
        tuple(columns.low),
        np.array(list(columns.low.values())).reshape(len(columns.low), columns.n_rows),
        np.zeros((0, columns.n_rows)), np.full(len(columns.low), -1, np.int32),
        np.zeros((0, columns.n_rows), np.bool_), np.array(columns.whole_of, np.int32),
        columns.texts, ids, until, np.where(time == NEVER, arrival, time),
        np.arange(columns.n_rows), flags, payloads,
    )  # fmt: skip


def _in_one(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    try:
        return array.combine_chunks()
    except pa.ArrowInvalid:  # more than two gigabytes of texts
        raise NotPlain from None


def _texts(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:  # as above
        raise NotPlain from None


def _ids(array: pa.Array) -> pa.Array:
    if pa.types.is_integer(array.type):
        array = array.cast(pa.string())
    if not _is_text(array.type) or array.null_count or pc.any(pc.equal(array, "")).as_py():
        raise NotPlain
    return _texts(array)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _payloads(array: pa.Array | None) -> pa.Array | None:
    if array is None or pa.types.is_null(array.type):
        return None
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise NotPlain
    held = pc.fill_null(array.cast(pa.large_binary()), b"")
    return held if pc.any(pc.not_equal(pc.binary_length(held), 0)).as_py() else None


def _moments(array: pa.Array | None, n_rows: int) -> Integers:
    """Microseconds since 1970, NEVER where there is none."""
    if array is None or pa.types.is_null(array.type):
        return np.full(n_rows, NEVER)
    micros = _micros(array)
    made = np.asarray(pc.fill_null(micros, NEVER).to_numpy(zero_copy_only=False))
    return made.astype(np.int64)


def _micros(array: pa.Array) -> pa.Array:
    if not pa.types.is_timestamp(array.type) or array.type.unit == "ns":
        raise NotPlain
    kind = pa.timestamp("us", array.type.tz)
    try:
        pa.scalar(0, kind).as_py()  # or the zone is not known here
        micros = array.cast(kind).cast(pa.int64())
    except (LookupError, pa.ArrowInvalid):  # the latter for moments far beyond the calendar
        raise NotPlain from None
    bounds = pc.min_max(micros)
    if bounds["min"].as_py() is not None and not (
        _FIRST <= bounds["min"].as_py() <= bounds["max"].as_py() <= _LAST
    ):
        raise NotPlain
    return micros


def _add(columns: _Columns, name: str, array: pa.Array) -> None:
    kind = array.type
    if pa.types.is_null(kind):
        return
    if pa.types.is_floating(kind):
        columns.add(name, NUMBER, _floats(array))
    elif pa.types.is_integer(kind):
        columns.add(name, NUMBER, _exact(array), ALL_WHOLE)
    elif pa.types.is_boolean(kind):
        columns.add(name, BOOLEAN, _floats(array.cast(pa.uint8())))
    elif pa.types.is_timestamp(kind):
        columns.add(name, TIME, _exact(_micros(array)))
    elif _is_text(kind) or (pa.types.is_dictionary(kind) and _is_text(kind.value_type)):
        _add_texts(columns, name, _texts(array))
    elif pa.types.is_struct(kind):
        _add_points(columns, name, array)
    else:
        raise NotPlain


def _floats(array: pa.Array) -> Floats:
    held = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(held, np.float64)


def _exact(array: pa.Array) -> Floats:
    """Integers as floats."""
    bounds = pc.min_max(array)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    if least is not None and not -_EXACT <= least <= most <= _EXACT:
        raise NotPlain
    return _floats(array)


def _add_texts(columns: _Columns, name: str, array: pa.Array) -> None:
    """Each different text is read once, then spread."""
    coded = array.dictionary_encode()
    order = pc.array_sort_indices(coded.dictionary)
    texts = coded.dictionary.take(order)
    n_texts = len(texts)
    lanes = np.full((3, n_texts + 1), np.nan)
    for code, text in enumerate(texts.to_pylist()):
        spans, is_plain = encode({name: (text,)}, lambda *_, code=code: code)
        if not is_plain:
            raise NotPlain
        for (_, lane), number, _ in spans:
            lanes[lane, code] = number
    ranks = np.empty(n_texts + 1, np.int64)
    ranks[order.to_numpy()] = np.arange(n_texts)
    ranks[n_texts] = n_texts
    codes = ranks[np.asarray(pc.fill_null(coded.indices, n_texts).to_numpy(zero_copy_only=False))]
    if n_texts:
        columns.texts[name] = texts
    for lane in (TEXT, NUMBER, TIME):
        columns.add(name, lane, lanes[lane][codes])


def _add_points(columns: _Columns, name: str, array: pa.Array) -> None:
    kind = array.type
    fields = {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}
    if set(fields) != {"lon", "lat"} or not all(map(pa.types.is_floating, fields.values())):
        raise NotPlain
    lon, lat = (_floats(pc.struct_field(array, side)) for side in ("lon", "lat"))
    if np.isinf(lon).any() or np.isinf(lat).any():
        raise NotPlain
    is_missing: npt.NDArray[np.bool_] = np.isnan(lon) | np.isnan(lat)
    for lane, side in ((LON, lon), (LAT, lat)):
        columns.add(
            name, lane, np.where(is_missing, np.nan, np.where(abs(side) < _NEAREST, 0.0, side))
        )
