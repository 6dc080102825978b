"""Published events: read from a request, given what they lack, spelt as the pipeline reads them."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tamis.errors import InvalidEvent, TamisError, quoted
from tamis.model import Event
from tamis.values import parse_timestamp, read_json, timestamp_text, value_to_json

__all__ = [
    "ID",
    "PAYLOAD",
    "TIME",
    "UNTIL",
    "event_of",
    "line_of",
    "new_id",
    "read_batch",
    "read_events",
]

# What a line has beside the attributes; no attribute may have such a name.
ID, TIME, PAYLOAD, UNTIL = "@id", "@time", "@payload", "@until"
_OWN = (ID, TIME, PAYLOAD, UNTIL)
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id() -> str:
    """A new id: 26 letters and digits that sort by the time they were made.

    >>> first = new_id(); time.sleep(0.002)
    >>> len(first), first < new_id()
    (26, True)
    """
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))


def time_of_id(id: str) -> float | None:
    """When an id was made, in seconds since 1970; None if it is none of ours.

    >>> abs(time_of_id(new_id()) - time.time()) < 10, time_of_id("my-events")
    (True, None)
    """
    if len(id) != 26 or any(letter not in _DIGITS for letter in id):
        return None
    number = 0
    for letter in id[:10]:
        number = number << 5 | _DIGITS.index(letter)
    return number / 1_000


def event_of(
    raw: bytes | dict[str, Any], make_id: Callable[[], str] = new_id, *, is_cloud: bool = False
) -> Event:
    """An event from its JSON, with an id, a time and a payload if it had none.

    The payload is what a subscriber is told of the event: where none was given, its attributes
    as JSON. If it ``is_cloud``, it must be a CloudEvent.
    """
    held = read_json(raw, "the event", InvalidEvent) if isinstance(raw, bytes) else raw
    if is_cloud and isinstance(held, dict) and "specversion" not in held:
        raise InvalidEvent(
            'it is no CloudEvent, for it has no "specversion"; give it one, or send it as '
            "application/json"
        )
    event = Event.from_json(held, default_id=make_id())
    if taken := [name for name in _OWN if name in event.attributes]:
        raise InvalidEvent(
            f"event {quoted(event.id)} has an attribute {quoted(taken[0])}, which the event log "
            "keeps for itself; rename it"
        )
    if not event.id.isprintable():
        raise InvalidEvent(f"the event id {quoted(event.id)} cannot be shown; choose another")
    payload = event.payload or _text(_attributes(event)).encode()
    return event.completed(event.time or datetime.now(UTC), payload)


def read_events(
    body: bytes,
    *,
    is_lines: bool = False,
    is_cloud: bool = False,
    make_id: Callable[[int], str] | None = None,
) -> list[Event]:
    """The events of a body: one JSON object, perhaps a CloudEvent, or one a line.

    All or nothing: an error says in which line it is.
    """
    if not is_lines:
        make = make_id or (lambda number: new_id())
        return [event_of(body, lambda: make(0), is_cloud=is_cloud)]
    lines = enumerate(body.split(b"\n"), 1)
    return _read_all(((number, line) for number, line in lines if line.strip()), "line", make_id)


def read_batch(held: Sequence[Any], make_id: Callable[[int], str] | None = None) -> list[Event]:
    """The events of a JSON array of CloudEvents; all or nothing, as above."""
    return _read_all(enumerate(held, 1), "event", make_id, is_cloud=True)


def _read_all(
    given: Iterable[tuple[int, Any]],
    what: str,
    make_id: Callable[[int], str] | None,
    *,
    is_cloud: bool = False,
) -> list[Event]:
    make = make_id or (lambda number: new_id())
    events = []
    for number, raw in given:
        try:
            if not isinstance(raw, bytes | dict):
                raise InvalidEvent(f"it is no JSON object but {quoted(raw)}")
            events.append(event_of(raw, partial(make, number), is_cloud=is_cloud))
        except TamisError as error:
            raise InvalidEvent(f"{what} {number}: {error}") from None
    return events


def line_of(event: Event) -> bytes:
    r"""The line of an event in the event log: its attributes, and beside them what is its own.

    >>> line_of(Event("e1", {"price": 3}, b"x", datetime(2026, 1, 1, tzinfo=UTC)))
    b'{"price":3,"@id":"e1","@time":"2026-01-01T00:00:00Z","@payload":"x"}\n'
    """
    made = _attributes(event)
    made[ID] = event.id
    assert event.time is not None
    made[TIME] = timestamp_text(event.time)
    made[PAYLOAD] = _payload_text(event.payload)
    if event.until is not None:
        made[UNTIL] = timestamp_text(event.until)
    return _text(made).encode() + b"\n"


def event_of_line(line: bytes) -> Event:
    """The event of a line in the event log."""
    held = json.loads(line)
    own = {name: held.pop(name, None) for name in _OWN}
    payload = (own[PAYLOAD] or "").encode()
    time, until = (parse_timestamp(own[name] or "") for name in (TIME, UNTIL))
    return Event(own[ID], held, payload, time, until)


def _attributes(event: Event) -> dict[str, Any]:
    return {
        name: value_to_json(values[0]) if len(values) == 1 else [value_to_json(v) for v in values]
        for name, values in event.attributes.items()
    }


def _payload_text(payload: bytes) -> str:
    """Bytes as a line of JSON can hold them; those that are no text as a data URL."""
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return "data:application/octet-stream;base64," + base64.b64encode(payload).decode()


def _text(held: Any) -> str:
    return json.dumps(held, ensure_ascii=False, separators=(",", ":"))
