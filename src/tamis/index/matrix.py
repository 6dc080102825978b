"""Matrix: a batch of events as numbers, column by column, without touching each value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import InvalidValue
from tamis.model import Schema
from tamis.model.batches import table_of_frame
from tamis.model.event_arrow import EventColumns, coordinates_of, is_point, objects_of
from tamis.slots.columns import Columns
from tamis.slots.encoding import micros_of
from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, PRESENT, TIME
from tamis.values import check_value

Matrix = npt.NDArray[np.float64]

_EXACT = 2**53


def matrix_of(events: Any, columns: Columns) -> Matrix | None:
    """f8[events, columns], or None if some event is not plain or the batch not columnar.

    Plain columns are numbers that float64 holds, booleans, text, timestamps and points; null and
    NaN are missing.
    """
    arrays = _arrays_of(events)
    if arrays is None or not all(isinstance(name, str) and name for name in arrays):
        return None
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) != 1:
        return None
    while True:
        try:
            return _encode(arrays, lengths.copy().pop(), columns)
        except IndexError:  # a column was added meanwhile
            continue


def is_in_domains(matrix: Matrix, columns: Columns, schema: Schema) -> bool:
    """Whether no column that is asked for has a value out of the schema's domain."""
    for name, known in schema.attributes.items():
        domain = known.domain
        column = -1
        if domain is not None:
            column = columns.known(name, TIME if domain.is_of_timestamps else NUMBER)
        if domain is None or column < 0:
            continue
        low, high = (
            micros_of(border) if isinstance(border, datetime) else border
            for border in (domain.low, domain.high)
        )
        held = matrix[:, column]
        is_below = np.less_equal if domain.low_open else np.less
        is_above = np.greater_equal if domain.high_open else np.greater
        if low is not None and bool(is_below(held, low).any()):
            return False
        if high is not None and bool(is_above(held, high).any()):
            return False
    return True


def _encode(arrays: dict[str, Any], n_events: int, columns: Columns) -> Matrix | None:
    matrix = np.full((n_events, len(columns)), np.nan)
    for name, array in arrays.items():
        if _may_nest(array) or (columns.has(name) and not _fill(matrix, name, array, columns)):
            return None
    return matrix


def _arrays_of(events: Any) -> dict[str, Any] | None:
    if isinstance(events, pa.Table | pa.RecordBatch):
        names = events.schema.names
        if EventColumns().id in names or len(set(names)) < len(names):
            return None
        return {name: events.column(name) for name in names}
    if hasattr(events, "iloc") and hasattr(events, "columns"):  # a pandas frame
        return _arrays_of(table_of_frame(events))
    if isinstance(events, Mapping) and all(map(_is_column, events.values())):
        return dict(events)
    return None


def _is_column(array: Any) -> bool:
    if isinstance(array, np.ndarray):
        return array.ndim == 1 and not isinstance(array, np.ma.MaskedArray)
    return isinstance(array, pa.Array | pa.ChunkedArray)


def _may_nest(array: Any) -> bool:
    """Whether a column may hold attributes of its own, with dotted names."""
    if isinstance(array, np.ndarray):
        return array.dtype.kind not in "fiubU"
    kind = array.type
    if is_point(kind):
        return False
    return bool(pa.types.is_nested(kind)) or not (
        pa.types.is_primitive(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
        or pa.types.is_dictionary(kind) or pa.types.is_boolean(kind)
    )  # fmt: skip


def _fill(matrix: Matrix, name: str, array: Any, columns: Columns) -> bool:
    """Write one attribute into its columns; False if that cannot be done column by column."""
    if isinstance(array, np.ndarray):
        if array.ndim != 1 or array.dtype.kind not in "fiub":
            return False
        return _fill_numbers(matrix, name, array, None, columns)
    kind = array.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        is_null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        zero = False if pa.types.is_boolean(kind) else 0
        filled = array.fill_null(zero) if array.null_count else array
        return _fill_numbers(matrix, name, _to_numpy(filled), is_null, columns)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return _fill_values(matrix, name, array, columns)
    if is_point(kind):
        return _fill_points(matrix, name, array, columns)
    return pa.types.is_timestamp(kind) and _fill_values(matrix, name, array, columns)


def _to_numpy(array: Any) -> npt.NDArray[Any]:
    if isinstance(array, pa.ChunkedArray):
        return np.asarray(array.to_numpy())
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _fill_numbers(matrix: Matrix, name: str, numbers: Any, is_null: Any, columns: Columns) -> bool:
    kind = numbers.dtype.kind
    if kind in "iu" and len(numbers) and not _EXACT >= numbers.max() >= numbers.min() >= -_EXACT:
        return False
    is_boolean = kind == "b"
    column = columns.known(name, BOOLEAN if is_boolean else NUMBER)
    if column >= 0:
        matrix[:, column] = numbers
        if is_null is not None:
            matrix[is_null, column] = np.nan
    present = columns.known(name, PRESENT)
    if present >= 0:
        is_missing = (
            np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(len(numbers), bool)
        )
        if is_null is not None:
            is_missing |= is_null
        matrix[~is_missing, present] = 0.0
    return True


def _fill_points(matrix: Matrix, name: str, array: Any, columns: Columns) -> bool:
    sides = coordinates_of(array)
    if sides is None:  # event by event, which says what is wrong
        return False
    is_held = ~np.isnan(sides[0])
    for lane, values in ((LON, sides[0]), (LAT, sides[1]), (PRESENT, np.zeros(len(is_held)))):
        column = columns.known(name, lane)
        if column >= 0:
            matrix[is_held, column] = values[is_held]
    return True


def _fill_values(matrix: Matrix, name: str, array: Any, columns: Columns) -> bool:
    """Text and timestamps: each different value is encoded once, then spread."""
    coded = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if not pa.types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    try:
        values = [check_value(value) for value in objects_of(coded.dictionary)]
    except InvalidValue:  # event by event, which says what is wrong
        return False
    touched = columns.columns_of(name)
    table = np.full((len(values) + 1, len(touched)), np.nan)
    for i, value in enumerate(values):
        if value is None:
            continue
        encoded = columns.encode({name: (value,)})
        if not encoded.is_plain:
            return False
        table[i] = encoded.vector[touched]
    numbers = coded.indices.fill_null(len(values)) if coded.null_count else coded.indices
    matrix[:, touched] = table[_to_numpy(numbers)]
    return True
