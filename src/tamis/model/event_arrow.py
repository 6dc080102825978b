"""Events as Arrow record batches: a column an attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import InvalidEvent, InvalidValue, TamisError, quoted
from tamis.model.event import LOCATION, Event, id_text, moment
from tamis.values import Attributes, Kind, Point, Polygon, Range, Value, kind_of
from tamis.values.shapes import NEAREST

Floats = npt.NDArray[np.float64]

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_POINT = pa.struct([("lon", pa.float64()), ("lat", pa.float64())])
_POLYGON = pa.struct([("polygon", pa.string())])
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Which columns hold an event's own fields; every other column is an attribute."""

    id: str = "event_id"
    time: str = "event_time"
    until: str = "event_until"
    payload: str = "event_payload"
    location: str = "event_location"


def events_to_arrow(events: Iterable[Event], columns: EventColumns | None = None) -> pa.Table:
    """A table with a row an event; an attribute must be of one kind throughout.

    >>> table = events_to_arrow([Event("e1", {"price": 3200}), Event("e2", {"tag": ["a", "b"]})])
    >>> table.column_names
    ['event_id', 'event_time', 'event_until', 'event_payload', 'event_location', 'price', 'tag']
    """
    names, rows = columns or EventColumns(), list(events)
    made: dict[str, pa.Array] = {
        names.id: pa.array([e.id for e in rows], pa.string()),
        names.time: pa.array([e.time for e in rows], _TIMESTAMP),
        names.until: pa.array([e.until for e in rows], _TIMESTAMP),
        names.payload: pa.array([e.payload for e in rows], pa.binary()),
        names.location: pa.array([_to_plain(e.location) for e in rows], _POINT),
    }
    attributes = dict.fromkeys(
        name for e in rows for name in e.attributes if name != LOCATION or e.location is None
    )
    for name in attributes:
        if name in made:
            raise InvalidEvent(f"the attribute {quoted(name)} has the name of an event column")
        made[name] = _column(name, [_own(e, name) for e in rows])
    return pa.table(made)


def events_from_arrow(
    batch: pa.RecordBatch | pa.Table, columns: EventColumns | None = None
) -> list[Event]:
    """The events of a table; null is missing, a list is several values."""
    names = columns or EventColumns()
    if names.id not in batch.schema.names:
        raise InvalidEvent(f"the table has no column {quoted(names.id)} for the event id")
    own = {names.id, names.time, names.until, names.payload, names.location}
    return [_event(row, names, own) for row in rows_of(batch)]


def _event(row: dict[str, Any], names: EventColumns, own: set[str]) -> Event:
    identity = id_text(row[names.id])
    try:
        time = moment(row.get(names.time), names.time)
        until = moment(row.get(names.until), names.until)
    except InvalidValue as error:
        raise InvalidEvent(f"event {quoted(identity)}: {error}") from None
    attributes = {name: held for name, held in row.items() if name not in own}
    payload, place = row.get(names.payload), row.get(names.location)
    return Event(identity, attributes, payload or b"", time, until, place)


def rows_of(batch: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Each row as a dict of values that ``as_attributes`` reads."""
    if len(set(batch.schema.names)) < len(batch.schema.names):
        raise InvalidEvent("the table has two columns of the same name")
    columns = {}
    for name in batch.schema.names:
        try:
            columns[name] = values_of(batch.column(name))
        except TamisError as error:
            raise InvalidEvent(f"the column {quoted(name)} cannot be read: {error}") from None
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ] or [{} for _ in range(batch.num_rows)]


def flat_columns(rows: Sequence[Attributes]) -> dict[str, pa.Array] | None:
    """A column an attribute; None if one holds several values, two kinds, or what is not flat.

    >>> flat_columns([{"price": (3200,)}, {"price": (2.5,), "tag": ("a",)}])["price"].to_pylist()
    [3200.0, 2.5]
    >>> flat_columns([{"tag": ("a", "b")}]) is None
    True
    """
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        held = [row.get(name, ()) for row in rows]
        if any(len(values) > 1 for values in held):
            return None
        kinds = {type(values[0]) for values in held if values}
        if not any(kinds <= flat for flat in _FLAT):
            return None
        if int in kinds and any(_is_inexact(value) for values in held for value in values):
            return None
        columns[name] = _column(name, held)
    return columns


def _is_inexact(value: Value) -> bool:
    return type(value) is int and abs(value) > _EXACT


_FLAT = ({int, float}, {str}, {bool}, {datetime}, {Point})


def _own(event: Event, name: str) -> tuple[Value, ...]:
    return event.attributes.get(name, ())


def _column(name: str, held: list[tuple[Value, ...]]) -> pa.Array:
    kinds = {kind_of(value) for values in held for value in values}
    if len(kinds) != 1:
        found = " and ".join(sorted(kind.value for kind in kinds))
        raise InvalidEvent(f"attribute {quoted(name)} holds {found}; a column holds one kind")
    (kind,) = kinds
    value_type = _arrow_type(kind, name, [value for values in held for value in values])
    plain = [[_to_plain(value, value_type) for value in values] for values in held]
    if all(len(values) <= 1 for values in held):
        return pa.array([values[0] if values else None for values in plain], value_type)
    return pa.array([values or None for values in plain], pa.list_(value_type))


def _arrow_type(kind: Kind, name: str, values: list[Any]) -> pa.DataType:
    if kind is Kind.NUMBER:
        return _number_type(name, values)
    if kind is Kind.RANGE:
        borders = [b for r in values for b in (r.low, r.high) if b is not None]
        is_time = any(isinstance(b, datetime) for b in borders)
        if is_time and not all(isinstance(b, datetime) for b in borders):
            raise InvalidEvent(
                f"attribute {quoted(name)} holds ranges of numbers and of timestamps; a column "
                "holds one kind"
            )
        border = _TIMESTAMP if is_time else _number_type(name, borders)
        return pa.struct([("low", border), ("high", border), ("ends", pa.string())])
    return {
        Kind.TEXT: pa.string(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.TIMESTAMP: _TIMESTAMP,
        Kind.POINT: _POINT,
        Kind.POLYGON: _POLYGON,
    }[kind]


def _number_type(name: str, numbers: list[Any]) -> pa.DataType:
    if all(isinstance(number, int) for number in numbers):
        return pa.int64()
    inexact = next((n for n in numbers if float(n) != n), None)
    if inexact is not None:
        raise InvalidEvent(
            f"attribute {quoted(name)} mixes floats with {inexact}, which float64 cannot hold"
        )
    return pa.float64()


def _to_plain(value: Value | None, type: pa.DataType | None = None) -> Any:
    if isinstance(value, Point):
        return {"lon": value.lon, "lat": value.lat}
    if isinstance(value, Polygon):
        return {"polygon": value.to_wkt()}
    if isinstance(value, Range):
        border = None if type is None else type.field("low").type
        low, high = (None if b is None else _to_plain(b, border) for b in (value.low, value.high))
        return {"low": low, "high": high, "ends": value.ends}
    # Arrow itself takes no integers beyond 2^53 for float64, not even those that it holds.
    return float(value) if type == pa.float64() else value  # type: ignore[arg-type]


def objects_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """What each row holds as a Python object; an InvalidValue where there is none for it.

    >>> objects_of(pa.array([10**18]).cast(pa.timestamp("us")))
    Traceback (most recent call last):
        ...
    tamis.errors.InvalidValue: a moment of type timestamp[us] is outside the years 1 to 9999
    """
    try:
        held: list[Any] = column.to_pylist()
    except OverflowError:
        raise InvalidValue(
            f"a moment of type {column.type} is outside the years 1 to 9999"
        ) from None
    except LookupError as error:  # of pytz or zoneinfo
        raise InvalidValue(f"{error} is not a time zone known here") from None
    except ValueError as error:  # text that is not UTF-8, nanoseconds
        raise InvalidValue(str(error)) from None
    return held


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """What each row holds, structs of points, polygons and ranges as such."""
    held = objects_of(column)
    is_list = any(test(column.type) for test in _LIST_TESTS)
    inner = column.type.value_type if is_list else column.type
    if not pa.types.is_struct(inner):
        return held
    read = struct_reader(inner)
    if read is None:
        return held
    if is_list:
        return [many and [one and read(one) for one in many] for many in held]
    return [one and read(one) for one in held]


def struct_reader(kind: pa.StructType) -> Callable[[dict[str, Any]], Value | None] | None:
    """What makes a value of a struct's dict: a point, a polygon or a range; else None."""
    return _STRUCTS.get(frozenset(field.name for field in kind))


def is_point(kind: pa.DataType) -> bool:
    """Whether a type is a struct of two numbers, lon and lat."""
    if not pa.types.is_struct(kind) or struct_reader(kind) is not _point:
        return False
    return all(pa.types.is_floating(f.type) or pa.types.is_integer(f.type) for f in kind)


def coordinates_of(column: pa.Array | pa.ChunkedArray) -> tuple[Floats, Floats] | None:
    """The longitudes and latitudes of a column of points, NaN where one is missing.

    None if some row is no point, for it has a coordinate that is not finite.

    >>> column = pa.array([{"lon": 1.5, "lat": 2.0}, None, {"lon": None, "lat": 2.0}])
    >>> coordinates_of(column)
    (array([1.5, nan, nan]), array([ 2., nan, nan]))
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    parts = dict(zip((field.name for field in whole.type), whole.flatten(), strict=True))
    try:
        lon, lat = (
            parts[side].cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
            for side in ("lon", "lat")
        )
    except pa.ArrowInvalid:  # an integer that float64 does not hold
        return None
    is_missing = np.isnan(lon) | np.isnan(lat)
    lon[is_missing], lat[is_missing] = np.nan, np.nan
    for side in (lon, lat):
        if np.isinf(side).any():
            return None
        side[abs(side) < NEAREST] = 0.0
    return lon, lat


_LIST_TESTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def point_of(lon: Any, lat: Any) -> Point | None:
    """The point of two coordinates as columns hold them, if neither is null or NaN."""
    if any(side is None or side != side for side in (lon, lat)):
        return None
    return Point(*(float(side) if isinstance(side, Decimal) else side for side in (lon, lat)))


def _point(struct: dict[str, Any]) -> Point | None:
    return point_of(struct["lon"], struct["lat"])


def _polygon(struct: dict[str, Any]) -> Polygon | None:
    return None if struct["polygon"] is None else Polygon.from_wkt(struct["polygon"])


_STRUCTS: dict[frozenset[str], Callable[[dict[str, Any]], Value | None]] = {
    frozenset({"lon", "lat"}): _point,
    frozenset({"polygon"}): _polygon,
    frozenset({"low", "high", "ends"}): lambda s: Range(s["low"], s["high"], s["ends"] or "[]"),
    frozenset({"low", "high"}): lambda s: Range(s["low"], s["high"]),
}
