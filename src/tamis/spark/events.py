"""Events in columns of any shape: which column is what, and the rows nobody can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import InvalidEvent, TamisError
from tamis.model import Schema
from tamis.model.event import id_text, moment
from tamis.model.event_arrow import coordinates_of, is_point, struct_reader
from tamis.spark.rows import read_rows
from tamis.values import Attributes, as_attributes

if TYPE_CHECKING:
    import numpy.typing as npt

TIMESTAMP = pa.timestamp("us", tz="UTC")
# Python's datetimes hold the years 1 to 9999, Spark's go further.
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
_DAY_US = 86_400_000_000
_COORDINATES = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)


@dataclass(frozen=True, slots=True)
class EventMapping:
    """Which columns hold an event's id, time and payload; the others are its attributes.

    ``points`` makes a point of two columns: ``{"place": ("lon", "lat")}``. ``json`` names the
    columns that hold JSON objects as text; their fields are attributes, under the prefix given
    in a mapping (``{"body": "car."}``). ``id``, ``time``, ``until``, ``payload`` and the two of
    a point may also name a field of such an object. ``attributes`` says which columns count, and
    ``fields`` which fields of the JSON objects, by their dotted names; without them all do. A row
    is a dead letter where the column ``error`` is not null, and that is the reason. ``until`` is
    till when an event is valid; a stream keeps those that have one for late joiners.

    A nested struct or map is flattened with dots; an array is several values; a struct of lon
    and lat is a point, one of low and high a range, one of polygon (WKT) a polygon.

    >>> sorted(EventMapping(id="ad", points={"place": ("lon", "lat")}).own_columns)
    ['ad', 'lat', 'lon']
    """

    id: str = "id"
    time: str | None = None
    payload: str | None = None
    points: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    json: Mapping[str, str] | Sequence[str] = ()
    attributes: Sequence[str] | None = None
    error: str | None = None
    until: str | None = None
    fields: Sequence[str] | None = None

    @property
    def own_columns(self) -> set[str]:
        """The columns that are no attributes of their own."""
        named = {self.id, self.time, self.until, self.payload, self.error, *self.prefix_of_json}
        return {name for name in named if name} | {c for pair in self.points.values() for c in pair}

    @property
    def prefix_of_json(self) -> dict[str, str]:
        """The columns of JSON text, and what their attributes' names begin with."""
        if isinstance(self.json, Mapping):
            return dict(self.json)
        return dict.fromkeys([self.json] if isinstance(self.json, str) else self.json, "")

    def attribute_columns(self, names: Sequence[str]) -> list[str]:
        """Of the columns of a table, those that are attributes."""
        wanted = names if self.attributes is None else self.attributes
        return [name for name in wanted if name not in self.own_columns]

    def check(self, schema: pa.Schema) -> None:
        """Raise InvalidEvent if a table of this schema cannot be read with the mapping."""
        names = schema.names
        if len(set(names)) < len(names):
            raise InvalidEvent(f"the events have two columns of the same name: {', '.join(names)}")
        has_json = bool(self.prefix_of_json)
        objects = list(self.prefix_of_json)
        # Where one object is all there is, the others are fields of it.
        needed = [*(objects[:1] if names == objects[:1] else objects), *(self.attributes or [])]
        needed += [self.error] if self.error else []
        sides = (side for pair in self.points.values() for side in pair)
        own = (self.id, self.time, self.until, self.payload, *sides)
        needed += [] if has_json else [name for name in own if name]
        absent = [name for name in needed if name not in names]
        if absent:
            raise InvalidEvent(
                f"the events have no column {absent[0]!r}, which the mapping names; they have "
                f"{', '.join(names)}"
            )
        _check_own(self, schema)
        for name in self.attribute_columns(names):
            _check_attribute(name, schema.field(name).type)


@dataclass(frozen=True, slots=True)
class Checked:
    """Attributes that were checked, in the form the index takes events in."""

    attributes: Attributes


@dataclass(slots=True)
class Events:
    """The readable events of a batch, and the rows that are none.

    ``positions``: the row of the batch of each event. ``attributes``: columns where all events
    are plain, else an object an event. ``dead``: row of the batch and reason.
    """

    positions: npt.NDArray[np.int64]
    ids: pa.Array
    times: pa.Array
    untils: pa.Array
    payloads: pa.Array
    attributes: dict[str, pa.Array] | list[Checked]
    dead: list[tuple[int, str]]

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, which: npt.NDArray[np.int64]) -> Events:
        """Some of the events; ``dead`` stays as it is."""
        rows, held = pa.array(which), self.attributes
        taken = (
            [held[row] for row in which] if isinstance(held, list)
            else {name: column.take(rows) for name, column in held.items()}
        )  # fmt: skip
        return Events(
            self.positions[which], self.ids.take(rows), self.times.take(rows),
            self.untils.take(rows), self.payloads.take(rows), taken, self.dead,
        )  # fmt: skip


class EventReader:
    """Reads batches of one schema."""

    def __init__(self, mapping: EventMapping, schema: pa.Schema, known: Schema | None = None):
        self.mapping, self.known = mapping, known
        self.names = mapping.attribute_columns(schema.names)
        self.is_plain = not mapping.prefix_of_json and known is None
        self.is_plain &= all(_is_plain(schema.field(n).type) for n in self.names)
        self.is_plain &= bool(self.names or mapping.points)

    def read(self, batch: pa.RecordBatch) -> Events:
        """The events of a batch; never raises for what a row holds."""
        columns = self._plain_columns(batch) if self.is_plain else None
        if columns is None:
            return self._read_rows(batch)
        ids = _as_text(batch.column(self.mapping.id))
        times, dead = _moments(batch, self.mapping.time)
        untils, worse = _moments(batch, self.mapping.until)
        dead.update(worse)
        dead.update(dict.fromkeys(_without_id(ids), "the event has no id"))
        dead.update(self._errors(batch))
        payloads = self._payloads(batch)
        all_rows = np.arange(batch.num_rows)
        events = Events(all_rows, ids, times, untils, payloads, columns, sorted(dead.items()))
        return events.take(np.delete(all_rows, list(dead))) if dead else events

    def _plain_columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array] | None:
        """Attributes as flat columns; None if a row holds more than columns can say."""
        columns: dict[str, pa.Array] = {}
        mapping = self.mapping
        for own in (mapping.id, mapping.time, mapping.until, mapping.error):
            if own and not _is_in_python(batch.column(own)):
                return None
        for name in self.names:
            for dotted, column in _flat(name, batch.column(name)):
                if dotted in columns or not _is_in_python(column):
                    return None
                columns[dotted] = _as_values(column)
        for name, sides in self.mapping.points.items():
            parts = [batch.column(side).cast(pa.float64(), safe=False) for side in sides]
            if name in columns:
                return None
            columns[name] = pa.StructArray.from_arrays(parts, ["lon", "lat"])
        points = (column for column in columns.values() if is_point(column.type))
        return columns if all(coordinates_of(column) for column in points) else None

    def _errors(self, batch: pa.RecordBatch) -> dict[int, str]:
        """The rows that are said to be none, with the reason."""
        if self.mapping.error is None:
            return {}
        errors = batch.column(self.mapping.error)
        rows = np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False))
        return {int(row): errors[row].as_py() for row in rows}

    def _payloads(self, batch: pa.RecordBatch) -> pa.Array:
        name = self.mapping.payload
        if name is None:
            return pa.nulls(batch.num_rows, pa.binary())
        return _as_bytes(batch.column(name))

    def _read_rows(self, batch: pa.RecordBatch) -> Events:
        """Row by row, for nested values, several values and JSON."""
        positions, ids, times, untils, payloads, checked = [], [], [], [], [], []
        dead: list[tuple[int, str]] = []
        for position, row in enumerate(read_rows(batch, self.mapping)):
            try:
                if isinstance(row, TamisError):
                    raise row
                identity = id_text(row.id)
                time = moment(row.time, self.mapping.time or "time")
                until = moment(row.until, self.mapping.until or "until")
                attributes = as_attributes(row.attributes)
                if self.known is not None:
                    self.known.check_event(attributes)
            except TamisError as error:
                dead.append((position, str(error)))
                continue
            positions.append(position)
            ids.append(identity)
            times.append(time)
            untils.append(until)
            payloads.append(row.payload)
            checked.append(Checked(attributes))
        return Events(
            np.array(positions, np.int64), pa.array(ids, pa.string()), pa.array(times, TIMESTAMP),
            pa.array(untils, TIMESTAMP), pa.array(payloads, pa.binary()), checked, dead,
        )  # fmt: skip


def _moments(batch: pa.RecordBatch, name: str | None) -> tuple[pa.Array, dict[int, str]]:
    """The times in a column, and the rows that hold none that can be read, with the reason."""
    dead: dict[int, str] = {}
    if name is None:
        return pa.nulls(batch.num_rows, TIMESTAMP), dead
    column = batch.column(name)
    if not pa.types.is_string(column.type):
        return column.cast(TIMESTAMP), dead
    times: list[Any] = []
    for row, text in enumerate(column.to_pylist()):
        try:
            times.append(moment(text, name))
        except TamisError as error:
            times.append(None)
            dead[row] = str(error)
    return pa.array(times, TIMESTAMP), dead


def _flat(name: str, column: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """A column, or those of a struct with dotted names."""
    if pa.types.is_struct(column.type) and not is_point(column.type):
        for inner, part in zip(column.type, column.flatten(), strict=True):
            yield from _flat(f"{name}.{inner.name}", part)
    elif not pa.types.is_null(column.type):
        yield name, column


def _as_values(column: pa.Array) -> pa.Array:
    """A column that Python can hold, in the type in which the index takes it."""
    if pa.types.is_date(column.type):
        return column.cast(pa.timestamp("us")).cast(TIMESTAMP)
    if pa.types.is_decimal(column.type):
        return column.cast(pa.int64())
    return column.cast(TIMESTAMP) if pa.types.is_timestamp(column.type) else column


def _is_in_python(column: pa.Array) -> bool:
    """Whether Python's values hold all of a column's: times of four digits, texts in UTF-8."""
    if pa.types.is_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            return False
    if pa.types.is_timestamp(column.type):
        first, last, numbers = _FIRST_US, _LAST_US, pa.int64()
    elif pa.types.is_date32(column.type):
        first, last, numbers = _FIRST_US // _DAY_US, _LAST_US // _DAY_US, pa.int32()
    else:
        return True
    ends = pc.min_max(column.cast(numbers)).as_py()
    return ends["min"] is None or (ends["min"] >= first and ends["max"] <= last)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether each value of a type is one that a flat column can hold."""
    if is_point(kind):
        return True
    if pa.types.is_struct(kind):
        return struct_reader(kind) is None and all(_is_plain(inner.type) for inner in kind)
    if pa.types.is_decimal(kind):
        return bool(kind.scale == 0 and kind.precision <= 18)
    tests = (
        pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_string,
        pa.types.is_timestamp, pa.types.is_date32, pa.types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _check_own(mapping: EventMapping, schema: pa.Schema) -> None:
    times = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_string)
    tests: dict[str | None, tuple[tuple[Any, ...], str]] = {
        mapping.id: ((pa.types.is_string, pa.types.is_integer), "text or whole numbers"),
        mapping.time: (times, "timestamps, dates or text"),
        mapping.until: (times, "timestamps, dates or text"),
        mapping.payload: ((pa.types.is_binary, pa.types.is_string), "binary or text"),
        mapping.error: ((pa.types.is_string,), "text"),
        **dict.fromkeys(mapping.prefix_of_json, ((pa.types.is_string, pa.types.is_binary), "text")),
    }
    for name, (allowed, what) in tests.items():
        if name is None or name not in schema.names:
            continue
        kind = schema.field(name).type
        if not any(test(kind) for test in allowed):
            raise InvalidEvent(f"the column {name!r} is of type {kind}; expected {what}")
    for pair in mapping.points.values():
        # A side that has the name of a JSON column is a field of the object.
        for name in (set(pair) & set(schema.names)) - set(mapping.prefix_of_json):
            kind = schema.field(name).type
            if not any(test(kind) for test in _COORDINATES):
                raise InvalidEvent(f"the column {name!r} of a point is {kind}; expected numbers")


def _check_attribute(name: str, kind: pa.DataType, in_list: bool = False) -> None:
    if pa.types.is_struct(kind):
        if struct_reader(kind) is not None:
            return
        if not in_list:
            for inner in kind:
                _check_attribute(f"{name}.{inner.name}", inner.type)
            return
    elif pa.types.is_list(kind) and not in_list:
        return _check_attribute(name, kind.value_type, in_list=True)
    elif pa.types.is_map(kind) and not in_list and pa.types.is_string(kind.key_type):
        return _check_attribute(name, kind.item_type)
    elif _is_plain(kind) or pa.types.is_decimal(kind):
        return
    raise InvalidEvent(
        f"the column {name!r} is of type {kind}, which no attribute can hold; name it as the "
        "payload, or say which columns are attributes with EventMapping(attributes=[…])"
    )


def _as_text(column: pa.Array) -> pa.Array:
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _as_bytes(column: pa.Array) -> pa.Array:
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def _without_id(ids: pa.Array) -> list[int]:
    is_absent = pc.fill_null(pc.equal(ids, ""), True)
    return [] if not pc.any(is_absent).as_py() else pc.indices_nonzero(is_absent).to_pylist()
