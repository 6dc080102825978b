"""Rows of an Arrow batch as Python values, each on its own: one bad value costs one row."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import InvalidEvent, TamisError
from tamis.model.event_arrow import point_of, struct_reader
from tamis.values import load_json

if TYPE_CHECKING:
    from tamis.spark.events import EventMapping

# Arrow counts years in 16 bits: from 32768 on, and from as long before, its texts are of others.
_LAST_SPELT_US = 970_000_000_000_000_000
_DAY_US = 86_400_000_000
_UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(slots=True)
class Row:
    """What a row says of an event, unchecked."""

    id: Any
    time: Any
    until: Any
    payload: bytes | None
    attributes: dict[str, Any]


def read_rows(batch: pa.RecordBatch, mapping: EventMapping) -> Iterator[Row | TamisError]:
    """Each row, or why it cannot be read."""
    columns = {name: list(values_of(batch.column(name))) for name in _needed(batch, mapping)}
    names = mapping.attribute_columns(batch.schema.names)
    for position in range(batch.num_rows):
        try:
            yield _row({name: held[position] for name, held in columns.items()}, names, mapping)
        except TamisError as error:
            yield error


def row_as_json(batch: pa.RecordBatch, position: int) -> str:
    """A row as JSON text: bytes as base64, what JSON does not know as text."""
    row = {}
    for name in batch.schema.names:
        (row[name],) = values_of(batch.column(name).slice(position, 1), is_raw=True)
    return json.dumps(row, default=_written, ensure_ascii=False)


def _needed(batch: pa.RecordBatch, mapping: EventMapping) -> list[str]:
    own = mapping.own_columns
    wanted = set(mapping.attribute_columns(batch.schema.names)) | own
    return [name for name in batch.schema.names if name in wanted]


def _row(held: dict[str, Any], names: list[str], mapping: EventMapping) -> Row:
    for value in held.values():
        if isinstance(value, TamisError):
            raise value
    if mapping.error is not None and held[mapping.error] is not None:
        raise InvalidEvent(held[mapping.error])
    attributes = {name: held[name] for name in names if held[name] is not None}
    objects = mapping.prefix_of_json
    for column, prefix in objects.items():
        text = held[column] if column in held else _pop(attributes, column)
        _add_json(attributes, column, text, prefix)

    def taken(name: str | None) -> Any:
        """What a column holds, or else a field of a JSON object."""
        if name is None:
            return None
        return held[name] if name in held and name not in objects else _pop(attributes, name)

    id, time, until, payload = map(
        taken, (mapping.id, mapping.time, mapping.until, mapping.payload)
    )
    points = {name: point_of(*map(taken, sides)) for name, sides in mapping.points.items()}
    if mapping.fields is not None:
        columns = {name: attributes[name] for name in names if name in attributes}
        attributes = columns | _chosen(attributes, mapping.fields)
    for name, point in points.items():
        if name in attributes:
            raise InvalidEvent(f"attribute {name!r} is given twice; keep one")
        if point is not None:
            attributes[name] = point
    return Row(id, time, until, _payload(payload), attributes)


def _chosen(attributes: dict[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Of the attributes those that are asked for by their dotted names."""
    chosen = {name: _pop(attributes, name) for name in fields}
    return {name: held for name, held in chosen.items() if held is not None}


def _add_json(attributes: dict[str, Any], column: str, text: Any, prefix: str) -> None:
    if text is None:
        return
    try:
        loaded = load_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidEvent(f"the column {column!r} is not JSON: {error}") from None
    if not isinstance(loaded, dict):
        kind = type(loaded).__name__
        raise InvalidEvent(f"the column {column!r} is JSON, but no object: {kind}")
    for key, value in loaded.items():
        if prefix + key in attributes:
            raise InvalidEvent(f"attribute {prefix + key!r} is given twice; keep one")
        attributes[prefix + key] = value


def _pop(attributes: dict[str, Any], name: str) -> Any:
    """Take a field out of the attributes, by its name or its dotted name."""
    if name in attributes:
        return attributes.pop(name)
    first, dot, rest = name.partition(".")
    inner = attributes.get(first)
    if not dot or not isinstance(inner, dict):
        return None
    inner = attributes[first] = dict(inner)
    return _pop(inner, rest)


def _payload(held: Any) -> bytes | None:
    if held is None or isinstance(held, bytes):
        return held
    text = held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)
    return text.encode(errors="surrogatepass")


def values_of(column: pa.Array, is_raw: bool = False) -> Iterator[Any]:
    """What each row holds; an error in the place of a value that Python cannot hold."""
    read: Callable[[Any], Any] = _same if is_raw else _reader(column.type)
    try:
        held = column.to_pylist()
    except (ValueError, OverflowError):
        held = [_python_value(one, is_raw) for one in column]
    for one in held:
        if isinstance(one, TamisError):
            yield one
            continue
        try:
            yield None if one is None else read(one)
        except TamisError as error:
            yield error


def _python_value(scalar: pa.Scalar, is_raw: bool) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError) as error:
        return (
            _shown(scalar)
            if is_raw
            else InvalidEvent(f"{shown_text(scalar)} cannot be read: {error}")
        )


def shown_text(scalar: pa.Scalar) -> str:
    """What can be told of a value that Python cannot hold, as a text."""
    shown = _shown(scalar)
    return shown if isinstance(shown, str) else json.dumps(shown, default=_written)


def _shown(scalar: pa.Scalar) -> Any:
    """What can be told of a value that Python cannot hold: a text, or what it is made of.

    Arrow's own text is made by way of Python.
    """
    kind = scalar.type
    if pa.types.is_struct(kind):
        return {inner.name: _python_value(scalar[i], True) for i, inner in enumerate(kind)}
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return [_python_value(one, True) for one in scalar.values]
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        held: bytes = scalar.as_buffer().to_pybytes()
        return held.decode(errors="backslashreplace")  # not UTF-8: every byte can be told
    microseconds = _microseconds(scalar)
    if abs(microseconds) > _LAST_SPELT_US:
        return f"{microseconds} microseconds since 1970"
    try:
        return str(scalar.cast(pa.string()).as_py())
    except pa.ArrowException:
        return f"a value of type {scalar.type}"


def _microseconds(scalar: pa.Scalar) -> int:
    """How far a time is from 1970; 0 for what is none."""
    kind = scalar.type
    if pa.types.is_date32(kind):
        return int(scalar.value) * _DAY_US
    if pa.types.is_timestamp(kind) and kind.unit in _UNITS_US:
        return int(scalar.value) * _UNITS_US[kind.unit]
    return 0


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """What turns Arrow's Python form of a type into what attributes are made of."""
    if pa.types.is_struct(kind):
        read = struct_reader(kind)
        if read is not None:
            return _guarded(read)
        readers = {inner.name: _reader(inner.type) for inner in kind}
        return lambda held: {
            name: None if held[name] is None else reader(held[name])
            for name, reader in readers.items()
        }
    if pa.types.is_map(kind):
        item = _reader(kind.item_type)
        return lambda held: {key: None if v is None else item(v) for key, v in held}
    if pa.types.is_list(kind):
        inner_reader = _reader(kind.value_type)
        return lambda held: [None if one is None else inner_reader(one) for one in held]
    return _same


def _same(held: Any) -> Any:
    return held


def _guarded(read: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """A reader whose every trouble with a value is an InvalidEvent."""

    def guarded(held: dict[str, Any]) -> Any:
        try:
            return read(held)
        except TamisError:
            raise
        except (ValueError, TypeError) as error:
            raise InvalidEvent(f"{held} is not a value: {error}") from None

    return guarded


def _written(held: Any) -> Any:
    return base64.b64encode(held).decode() if isinstance(held, bytes) else str(held)
