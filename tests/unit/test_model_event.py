"""Event: from dicts, JSON and CloudEvents, and back."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Event, Point, Polygon, Range, evaluate, parse_filter
from tamis.errors import InvalidEvent, TamisError

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SQUARE = Polygon([(0, 0), (2, 0), (2, 2), (0, 2)])
FULL = Event(
    "é1",
    {
        "text": "O'Neill",
        "number": 2**53 + 1,
        "float": 0.1,
        "inf": float("inf"),
        "flag": True,
        "when": NOON,
        "range": Range(1, None, "(]"),
        "times": Range(NOON, NOON + timedelta(1), "[)"),
        "spot": Point(1.5, -2),
        "area": SQUARE,
        "many": ["a", 1, 1.5, True, Range(0, 1), Point(0, 0)],
    },
    payload=b"\x00\xff",
    time=NOON,
    until=NOON + timedelta(microseconds=1),
    location=Point(37.6, 55.75),
)


def test_attributes_are_checked_and_flattened() -> None:
    event = Event("e", {"car": {"mark": "FORD"}, "x": None, "nan": float("nan"), "l": []})
    assert event.attributes == {"car.mark": ("FORD",)}


def test_the_location_is_an_attribute_too() -> None:
    event = Event("e", {}, location=(1, 2))
    assert event.location == Point(1, 2)
    assert event.attributes == {"location": (Point(1, 2),)}
    assert Event("e", {"location": Point(1, 2)}, location=(1, 2)) == event
    with pytest.raises(InvalidEvent, match="keep one"):
        Event("e", {"location": Point(1, 3)}, location=(1, 2))


@pytest.mark.parametrize("digits", ["1234567", "123456789", "123456999999999999"])
def test_digits_beyond_microseconds_are_dropped_from_the_time(digits: str) -> None:
    time, micros = f"2026-01-31T14:00:00.{digits}+02:00", NOON.replace(microsecond=123456)
    cloud = {"specversion": "1.0", "id": "c", "source": "s", "type": "t", "time": time}
    assert Event.from_json(cloud).time == micros
    event = Event.from_json({"id": "e", "attributes": {"x": time}, "time": time, "until": time})
    assert (event.time, event.until) == (micros, micros)
    assert not evaluate(parse_filter("x > DATE '2000-01-01'"), event)  # no text spells this moment


def test_times_are_instants_in_utc() -> None:
    east = timezone(timedelta(hours=3))
    assert Event("e", {}, time=datetime(2026, 1, 31, 15, tzinfo=east)).time == NOON
    assert Event("e", {}, until=date(2026, 1, 31)).until == datetime(2026, 1, 31, tzinfo=UTC)
    assert Event("e", {}, time=datetime(2026, 1, 31, 12)).time == NOON


@pytest.mark.parametrize(
    "fields",
    [
        {"id": ""},
        {"id": 7},
        {"id": None},
        {"id": "\ud800"},
        {"attributes": None},
        {"attributes": [1]},
        {"attributes": {1: 2}},
        {"attributes": {"": 2}},
        {"attributes": {"a": b"bytes"}},
        {"attributes": {"a": object()}},
        {"attributes": {"a": [[1]]}},
        {"attributes": {"a": 2**63}},
        {"attributes": {"a.b": 1, "a": {"b": 2}}},
        {"attributes": {"a": Range(2, 1)}},
        {"payload": "text"},
        {"payload": None},
        {"time": "2026-01-31"},
        {"until": 0},
        {"location": "ab"},
        {"location": (1,)},
        {"location": (1, float("nan"))},
        {"location": (True, 1)},
    ],
)
def test_what_is_no_event_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent):
        Event(**{"id": "e", "attributes": {}, **fields})


def test_events_are_immutable_and_can_be_copied() -> None:
    with pytest.raises(AttributeError):
        FULL.id = "other"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(FULL)) == FULL
    assert copy.deepcopy(FULL) == FULL


# -- JSON


def test_json_and_back() -> None:
    text = json.dumps(FULL.to_json(), allow_nan=False)
    assert Event.from_json(text) == FULL
    assert Event.from_json(text.encode()) == FULL
    assert list(Event.from_json(text).attributes) == list(FULL.attributes)


def test_a_flat_object_is_the_attributes() -> None:
    event = Event.from_json({"id": 7, "time": "noon", "payload": "p", "attributes": 3})
    assert event.id == "7"
    assert event.attributes == {"time": ("noon",), "payload": ("p",), "attributes": (3,)}


def test_the_default_id_serves_where_there_is_none() -> None:
    assert Event.from_json("{}", default_id="d").id == "d"
    assert Event.from_json('{"id": null}', default_id="d").id == "d"
    assert Event.from_json('{"attributes": {}}', default_id="d").id == "d"
    assert Event.from_json('{"id": "x"}', default_id="d").id == "x"
    with pytest.raises(InvalidEvent, match='no "id"'):
        Event.from_json("{}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '"text"',
        b"\xff",
        "[" * 100_000,
        '{"id": true}',
        '{"id": 1.5}',
        '{"id": ""}',
        '{"id": {}}',
        '{"id": "e", "a": 1' + "0" * 5000 + "}",
        '{"id": "e", "a": 1e400}',
        '{"id": "e", "a": 1, "a": 2}',
        '{"id": "e", "a": {"$range": [1]}}',
        '{"id": "e", "a": {"$range": [2, 1]}}',
        '{"id": "e", "a": {"$timestamp": "soon"}}',
        '{"id": "e", "a": {"$number": "many"}}',
        '{"id": "e", "a": {"type": "Point", "coordinates": [1]}}',
        '{"id": "e", "a": {"type": "Polygon", "coordinates": [[[0,0],[2,2],[2,0],[0,2]]]}}',
        '{"id": "e", "attributes": {}, "colour": "red"}',
        '{"id": "e", "attributes": {}, "payload": "not base64!"}',
        '{"id": "e", "attributes": {}, "time": "soon"}',
        '{"id": "e", "attributes": {}, "until": 12}',
        '{"id": "e", "attributes": {}, "location": [1, 2, 3]}',
        '{"id": "e", ' + '"a": {' * 40 + '"b": 1' + "}" * 41,
    ],
)
def test_bad_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidEvent):
        Event.from_json(text)


# -- CloudEvents

CLOUD = {
    "specversion": "1.0",
    "id": "c1",
    "source": "/shop",
    "type": "com.example.offer",
    "subject": "phones",
    "tenant": "t1",
    "time": "2026-01-31T12:00:00Z",
    "datacontenttype": "application/json",
    "data": {"brand": "Huawei", "price": 3200},
}


def test_a_cloudevent_gives_its_data_and_its_context() -> None:
    event = Event.from_json(json.dumps(CLOUD))
    assert (event.id, event.time) == ("c1", NOON)
    assert event.attributes == {
        "brand": ("Huawei",),
        "price": (3200,),
        "ce.source": ("/shop",),
        "ce.type": ("com.example.offer",),
        "ce.subject": ("phones",),
        "ce.tenant": ("t1",),
    }


def test_cloudevents_and_back() -> None:
    event = Event.from_cloudevent(CLOUD)
    made = event.to_cloudevent()
    assert Event.from_json(json.dumps(made)) == event
    assert {**made, "data": 0} == {**CLOUD, "data": 0}
    made = FULL.to_cloudevent(source="/s", type="t")
    read = Event.from_json(json.dumps(made, allow_nan=False))
    assert (read.payload, read.until, read.location) == (FULL.payload, FULL.until, FULL.location)
    assert {n: v for n, v in read.attributes.items() if not n.startswith("ce.")} == FULL.attributes


def test_attributes_that_look_like_the_frame_do_not_replace_it() -> None:
    event = Event(
        "e", {"ce.id": "x", "ce.data": 1, "ce.Odd": 2, "ce.type": "t", "ce.l": ["a", "b"]}
    )
    made = event.to_cloudevent(source="/s")
    assert (made["id"], made["type"], made["source"]) == ("e", "t", "/s")
    read = Event.from_cloudevent(made)
    assert read.id == "e"
    assert read.attributes == {**event.attributes, "ce.source": ("/s",)}


def test_binary_data_is_the_payload() -> None:
    frame = {k: v for k, v in CLOUD.items() if k != "data"}
    assert Event.from_cloudevent({**frame, "data_base64": "aGk="}).payload == b"hi"
    assert Event.from_cloudevent(frame).attributes["ce.type"] == ("com.example.offer",)
    assert Event.from_cloudevent({**frame, "data": None}).payload == b""


@pytest.mark.parametrize(
    "changes",
    [
        {"specversion": "0.3"},
        {"specversion": None},
        {"id": ""},
        {"id": 3},
        {"source": None},
        {"type": ""},
        {"data": "text"},
        {"data": [1]},
        {"data_base64": "aGk="},
        {"time": "yesterday"},
        {"tenant": {"a": object()}},
        {"data": {"price": 1, "ce.type": "mine"}},
    ],
)
def test_bad_cloudevents_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent):
        Event.from_cloudevent({**CLOUD, **changes})


def test_a_cloudevent_needs_a_source_and_a_type() -> None:
    with pytest.raises(InvalidEvent, match="source"):
        Event("e", {}).to_cloudevent()
    with pytest.raises(InvalidEvent, match="type"):
        Event("e", {"ce.type": ["a", "b"]}).to_cloudevent(source="/s")


# -- whatever comes in

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


fields = st.sampled_from(["id", "attributes", "time", "specversion", "a", "location"])


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(fields, json_values, max_size=4))
def test_any_json_is_read_or_refused_and_what_is_read_comes_back(raw: dict[str, Any]) -> None:
    try:
        event = Event.from_json(raw, default_id="d")
    except TamisError:
        return
    assert Event.from_json(json.dumps(event.to_json(), allow_nan=False)) == event
