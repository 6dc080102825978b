"""Event: what a publisher says; made from a dict, JSON or a CloudEvents envelope."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from tamis.errors import InvalidEvent, InvalidValue, quoted
from tamis.values import (
    Attributes,
    Point,
    Value,
    as_attributes,
    as_timestamp,
    check_value,
    parse_timestamp,
    read_json,
    timestamp_text,
    value_from_json,
    value_to_json,
)

LOCATION = "location"
_ENVELOPE = frozenset({"id", "attributes", "payload", "time", "until", LOCATION})
# The CloudEvents 1.0 context attributes that say nothing filters can use.
_CLOUD_FRAME = frozenset(
    {"specversion", "id", "time", "data", "data_base64", "datacontenttype", "dataschema"}
)

_FINER = re.compile(r"(?<=\.\d{6})\d+", re.ASCII)
_CLOUD_NAME = re.compile(r"[a-z0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Event:
    """Named attribute values with an opaque payload.

    >>> event = Event("e1", {"brand": "Huawei", "price": 3200, "tag": ["new", "sale"]})
    >>> event.attributes["tag"]
    ('new', 'sale')
    >>> Event.from_json(event.to_json()) == event
    True

    ``location``, where given, is also the attribute of that name.
    """

    id: str
    attributes: Attributes
    payload: bytes = b""
    time: datetime | None = None
    until: datetime | None = None
    location: Point | None = None

    def __init__(
        self,
        id: str,
        attributes: Mapping[str, Any],
        payload: bytes = b"",
        time: datetime | date | None = None,
        until: datetime | date | None = None,
        location: Point | tuple[float, float] | None = None,
    ) -> None:
        if not isinstance(id, str) or not id:
            raise InvalidEvent(f"event id {quoted(id)} is not a non-empty text")
        if not isinstance(payload, bytes):
            raise InvalidEvent(
                f"event {quoted(id)}: the payload is {type(payload).__name__}, not bytes"
            )
        given: object = attributes
        if not isinstance(given, Mapping):
            raise InvalidEvent(
                f"event {quoted(id)}: the attributes are no mapping: {quoted(given)}"
            )
        try:
            check_value(id)
            checked = as_attributes(attributes)
            place = place_of(location)
            times = [_instant(time, "time"), _instant(until, "until")]
        except InvalidValue as error:
            raise InvalidEvent(f"event {quoted(id)}: {error}") from None
        if place is not None:
            if LOCATION in checked and checked[LOCATION] != (place,):
                raise InvalidEvent(
                    f"event {id!r} has a location and another attribute {LOCATION!r}; keep one"
                )
            checked[LOCATION] = (place,)
        for name, held in (
            ("id", id), ("attributes", checked), ("payload", payload),
            ("time", times[0]), ("until", times[1]), ("location", place),
        ):  # fmt: skip
            object.__setattr__(self, name, held)

    def completed(self, time: datetime, payload: bytes) -> Event:
        """The same event with another time, in UTC, and payload; nothing is checked again.

        >>> from datetime import UTC
        >>> moment = datetime(2026, 1, 1, tzinfo=UTC)
        >>> whole = Event("e1", {"x": 1}).completed(moment, b"one")
        >>> whole == Event("e1", {"x": 1}, b"one", moment)
        True
        """
        made = object.__new__(Event)
        for name in ("id", "attributes", "until", "location"):
            object.__setattr__(made, name, getattr(self, name))
        object.__setattr__(made, "time", time)
        object.__setattr__(made, "payload", payload)
        return made

    # -- JSON

    @classmethod
    def from_json(cls, raw: str | bytes | Mapping[str, Any], default_id: str = "") -> Event:
        """Read an event from JSON text or an object of it.

        An object with ``specversion`` is a CloudEvent; one with ``attributes`` is an event as
        ``to_json`` writes it; any other is taken as the attributes themselves, its ``id`` as
        the id. ``default_id`` serves where there is none.

        >>> event = Event.from_json('{"id": 7, "price": 3200}')
        >>> event.id, event.attributes
        ('7', {'price': (3200,)})
        """
        held = raw
        if isinstance(raw, str | bytes):
            held = read_json(raw, "the event", InvalidEvent, is_lenient=True)
        if not isinstance(held, Mapping):
            raise InvalidEvent(f"an event is a JSON object; {type(held).__name__} was given")
        if "specversion" in held:
            return cls.from_cloudevent(held)
        if isinstance(held.get("attributes"), Mapping):
            return _from_envelope(held, default_id)
        attributes = {name: value for name, value in held.items() if name != "id"}
        return cls(id_text(held.get("id"), default_id), attributes)

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON object."""
        attributes = {
            name: _values_to_json(values)
            for name, values in self.attributes.items()
            if not (name == LOCATION and self.location is not None)
        }
        made: dict[str, Any] = {"id": self.id, "attributes": attributes}
        if self.payload:
            made["payload"] = base64.b64encode(self.payload).decode()
        if self.time is not None:
            made["time"] = timestamp_text(self.time)
        if self.until is not None:
            made["until"] = timestamp_text(self.until)
        if self.location is not None:
            made["location"] = [self.location.lon, self.location.lat]
        return made

    # -- CloudEvents

    @classmethod
    def from_cloudevent(cls, raw: Mapping[str, Any]) -> Event:
        """Read a CloudEvents 1.0 envelope in its JSON format.

        The attributes are those of ``data``; the context attributes that a filter can use
        (type, source, subject, extensions) are there as ``ce.type`` and so on. ``data_base64``
        is the payload. Digits of the time beyond microseconds are dropped.
        """
        if not str(raw.get("specversion", "")).startswith("1."):
            raise InvalidEvent(f"CloudEvents {quoted(raw.get('specversion'))} is not 1.x")
        for name in ("id", "source", "type"):
            if not isinstance(raw.get(name), str) or not raw[name]:
                raise InvalidEvent(f"the CloudEvent has no {quoted(name)}, which is required")
        data = raw.get("data")
        if data is None:
            data = {"attributes": {}, "payload": raw.get("data_base64")}
        elif "data_base64" in raw:
            raise InvalidEvent(f"CloudEvent {quoted(raw['id'])} has data and data_base64; keep one")
        if not isinstance(data, Mapping):
            raise InvalidEvent(
                f"CloudEvent {quoted(raw['id'])}: data is {type(data).__name__}; expected an "
                "object of attributes (datacontenttype application/json)"
            )
        inner = data if isinstance(data.get("attributes"), Mapping) else {"attributes": data}
        context = {f"ce.{k}": v for k, v in raw.items() if k not in _CLOUD_FRAME and v is not None}
        if taken := [name for name in context if name in inner["attributes"]]:
            raise InvalidEvent(
                f"CloudEvent {quoted(raw['id'])}: its data has an attribute {quoted(taken[0])}, "
                "which is the name of its context; rename it in the data"
            )
        attributes = {**inner["attributes"], **context}
        return _from_envelope(
            {"time": raw.get("time"), **inner, "id": raw["id"], "attributes": attributes}, ""
        )

    def to_cloudevent(self, source: str = "", type: str = "") -> dict[str, Any]:
        """The event as a CloudEvents 1.0 envelope; ``from_cloudevent`` reads it back.

        ``source`` and ``type`` default to those the event came with.
        """
        context = {
            name.removeprefix("ce."): values[0]
            for name, values in self.attributes.items()
            if _is_context(name, values)
        }
        made = {"specversion": "1.0", "id": self.id, **context}
        made.update({k: v for k, v in (("source", source), ("type", type)) if v})
        for name in ("source", "type"):
            if not isinstance(made.get(name), str) or not made[name]:
                raise InvalidEvent(f"a CloudEvent needs a {name}; give to_cloudevent({name}=…)")
        data = self.to_json()
        data["attributes"] = {
            k: v for k, v in data["attributes"].items() if not _is_context(k, self.attributes[k])
        }
        del data["id"]
        if self.time is not None:
            made["time"] = data.pop("time")
        return {**made, "datacontenttype": "application/json", "data": data}


def _is_context(name: str, values: tuple[Value, ...]) -> bool:
    """Whether an attribute can stand in a CloudEvents envelope; the others travel in the data."""
    word = name.removeprefix("ce.")
    if word == name or word in _CLOUD_FRAME or not _CLOUD_NAME.fullmatch(word):
        return False
    return len(values) == 1 and isinstance(values[0], str | int)


def _from_envelope(held: Mapping[str, Any], default_id: str) -> Event:
    unknown = [name for name in held if name not in _ENVELOPE]
    if unknown:
        raise InvalidEvent(
            f"an event with attributes has the unknown field {quoted(unknown[0])}; expected "
            f"{', '.join(sorted(_ENVELOPE))}"
        )
    identity = id_text(held.get("id"), default_id)
    try:
        return Event(
            identity,
            held["attributes"],
            _payload(held.get("payload")),
            moment(held.get("time"), "time"),
            moment(held.get("until"), "until"),
            place_of(held.get(LOCATION)),
        )
    except InvalidValue as error:
        raise InvalidEvent(f"event {quoted(identity)}: {error}") from None


def id_text(raw: Any, default: str = "") -> str:
    """The id that a text or a whole number stands for; the default where there is none."""
    if raw is None:
        if default:
            return default
        raise InvalidEvent('the event has no "id"; give one')
    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)
    if not isinstance(raw, str) or not raw:
        raise InvalidEvent(f"event id {quoted(raw)} is not a non-empty text or a whole number")
    check_value(raw)  # half a surrogate pair, which JSON can spell, is no text
    return raw


def _values_to_json(values: tuple[Value, ...]) -> Any:
    return value_to_json(values[0]) if len(values) == 1 else [value_to_json(v) for v in values]


def _payload(raw: Any) -> bytes:
    if raw is None:
        return b""
    try:
        return base64.b64decode(raw, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise InvalidValue("the payload is not base64 text") from None


def moment(raw: Any, name: str) -> datetime | None:
    """The instant that a datetime or a text stands for; None for None."""
    if isinstance(raw, date):
        return as_timestamp(raw)
    # Publishers write nanoseconds; an event keeps microseconds.
    spelt = parse_timestamp(_FINER.sub("", raw)) if isinstance(raw, str) else None
    if spelt is None and raw is not None:
        raise InvalidValue(f"{name} {quoted(raw)} is not a timestamp such as 2026-01-31T12:00:00Z")
    return spelt


def _instant(given: Any, name: str) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, date):
        raise InvalidValue(f"{name} {quoted(given)} is not a datetime or a date")
    return as_timestamp(given)


def place_of(raw: Any) -> Point | None:
    """The point that ``[lon, lat]``, GeoJSON or ``{lon, lat}`` stands for; None for None."""
    if raw is None or isinstance(raw, Point):
        return raw
    if isinstance(raw, Mapping) and raw.keys() == {"lon", "lat"}:
        return Point(raw["lon"], raw["lat"])
    if isinstance(raw, Mapping):
        raw = value_from_json(raw)
        if isinstance(raw, Point):
            return raw
    if isinstance(raw, list | tuple) and len(raw) == 2:
        return Point(raw[0], raw[1])
    raise InvalidValue(f"location {quoted(raw)} is not a point; expected [lon, lat]")
