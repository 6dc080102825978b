"""Events of any shape: what a mapping reads from Arrow batches, and what it cannot read."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Index, Subscription
from tamis.errors import InvalidEvent
from tamis.model.event_arrow import values_of
from tamis.spark.events import EventMapping, EventReader, Events
from tamis.spark.rows import row_as_json
from tamis.values import Point, Polygon, Range

POINT = pa.struct([("lon", pa.float64()), ("lat", pa.float64())])
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def read(columns: dict[str, Any], mapping: EventMapping | None = None) -> Events:
    batch = pa.RecordBatch.from_pydict(columns)
    mapping = mapping or EventMapping()
    mapping.check(batch.schema)
    return EventReader(mapping, batch.schema).read(batch)


def attributes(events: Events) -> list[dict[str, Any]]:
    """What each event holds, whichever way it was read."""
    if isinstance(events.attributes, list):
        return [one.attributes for one in events.attributes]
    names = list(events.attributes)
    rows = zip(*(values_of(events.attributes[name]) for name in names), strict=True)
    return [
        {n: (v,) for n, v in zip(names, row, strict=True) if v is not None and v == v}
        for row in rows
    ]


def test_plain_columns_stay_columns() -> None:
    events = read({"id": ["a", "b"], "price": [1.5, math.nan], "brand": [None, "x"]})
    assert isinstance(events.attributes, dict)
    assert attributes(events) == [{"price": (1.5,)}, {"brand": ("x",)}]
    assert events.ids.to_pylist() == ["a", "b"]
    assert events.times.null_count == events.payloads.null_count == 2


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([2**53 + 1]), 2**53 + 1),
        (pa.array([True]), True),
        (pa.array([NOON], pa.timestamp("us", "UTC")), NOON),
        (pa.array([datetime(2026, 1, 1, 12)], pa.timestamp("us")), NOON),  # without a zone: UTC
        (pa.array([date(2026, 1, 1)]), datetime(2026, 1, 1, tzinfo=UTC)),
        (pa.array([Decimal(7)], pa.decimal128(10, 0)), 7),
        (pa.array([Decimal("7.25")], pa.decimal128(10, 2)), 7.25),
        (pa.array([{"lon": 1.0, "lat": 2.0}], POINT), Point(1, 2)),
        (pa.array([{"low": 1, "high": 2, "ends": "[)"}]), Range(1, 2, "[)")),
        (
            pa.array([{"polygon": "POLYGON ((0 0, 1 0, 1 1, 0 0))"}]),
            Polygon([(0, 0), (1, 0), (1, 1)]),
        ),
    ],
)
def test_a_value_of_any_type(column: pa.Array, expected: Any) -> None:
    events = read({"id": ["a"], "x": column})
    (held,) = attributes(events)
    assert held == {"x": (expected,)}
    assert type(held["x"][0]) is type(expected)


def test_nested_structs_and_maps_are_flattened_and_arrays_are_several_values() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    events = read(
        {
            "id": ["a", "b"],
            "car": [{"mark": "FORD", "engine": {"ccm": 1600}}, None],
            "extra": pa.array([[("doors", 5)], []], kind),
            "tag": [["new", "sale"], []],
            "stops": pa.array(
                [[{"lon": 1, "lat": 2}, {"lon": 3, "lat": 4}], None], pa.list_(POINT)
            ),
        }
    )
    assert attributes(events) == [
        {
            "car.mark": ("FORD",), "car.engine.ccm": (1600,), "extra.doors": (5,),
            "tag": ("new", "sale"), "stops": (Point(1, 2), Point(3, 4)),
        },
        {},
    ]  # fmt: skip


def test_nested_structs_of_plain_values_stay_columns() -> None:
    events = read({"id": ["a", "b"], "car": [{"mark": "FORD", "year": 2014}, None]})
    assert isinstance(events.attributes, dict)
    assert attributes(events) == [{"car.mark": ("FORD",), "car.year": (2014,)}, {}]


def test_two_columns_make_a_point() -> None:
    mapping = EventMapping(points={"place": ("x", "y")})
    events = read({"id": ["a", "b"], "x": [1.0, 1.0], "y": [2.0, None]}, mapping)
    assert isinstance(events.attributes, dict)
    assert attributes(events) == [{"place": (Point(1, 2),)}, {}]


def test_structs_of_points_stay_columns_unless_one_is_none() -> None:
    places = [{"lon": 1.0, "lat": 2.0}, None, {"lon": math.nan, "lat": 2.0}, {"lon": 3.0}]
    events = read({"id": ["a", "b", "c", "d"], "place": pa.array(places, POINT)})
    assert isinstance(events.attributes, dict)
    assert attributes(events) == [{"place": (Point(1, 2),)}, {}, {}, {}]
    places[1] = {"lon": math.inf, "lat": 0.0}
    events = read({"id": ["a", "b", "c", "d"], "place": pa.array(places, POINT)})
    assert events.ids.to_pylist() == ["a", "c", "d"]
    assert "not finite" in events.dead[0][1]


def test_id_time_and_payload_from_columns_of_other_types() -> None:
    mapping = EventMapping(id="number", time="at", payload="text")
    events = read(
        {"number": [7, 8], "at": ["2026-01-01T12:00:00Z", None], "text": ["é", None], "x": [1, 2]},
        mapping,
    )
    assert events.ids.to_pylist() == ["7", "8"]
    assert events.times.to_pylist() == [NOON, None]
    assert events.payloads.to_pylist() == ["é".encode(), None]
    assert attributes(events) == [{"x": (1,)}, {"x": (2,)}]


def test_json_columns_give_attributes_and_the_id() -> None:
    mapping = EventMapping(id="ad.id", time="at", payload="raw", json={"value": ""})
    body = {
        "ad": {"id": 7, "price": 3},
        "at": "2026-01-01T12:00:00Z",
        "raw": {"a": [1]},
        "tag": ["a", "b"],
    }
    events = read({"value": [json.dumps(body)], "offset": [3]}, mapping)
    assert events.ids.to_pylist() == ["7"]
    assert events.times.to_pylist() == [NOON]
    assert json.loads(events.payloads[0].as_py()) == {"a": [1]}
    assert attributes(events) == [{"offset": (3,), "ad.price": (3,), "tag": ("a", "b")}]
    prefixed = read({"id": ["a"], "body": ['{"price": 3}']}, EventMapping(json={"body": "ad."}))
    assert attributes(prefixed) == [{"ad.price": (3,)}]


def test_rows_that_cannot_be_read_are_dead_and_the_others_are_not() -> None:
    texts = ['{"x": 1}', "{", "[1]", '{"x": {"$range": [2, 1]}}', '{"n": 1}', None]
    events = read({"id": ["a", "b", "c", "d", "e", ""], "body": texts, "n": [1, 2, 3, 4, 5, 6]},
                  EventMapping(json=["body"]))  # fmt: skip
    assert events.ids.to_pylist() == ["a"]
    assert [position for position, _ in events.dead] == [1, 2, 3, 4, 5]
    reasons = [reason for _, reason in events.dead]
    for reason, part in zip(
        reasons,
        ["not JSON", "no object", "empty range", "given twice", "not a non-empty"],
        strict=True,
    ):
        assert part in reason


def test_plain_rows_without_an_id_are_dead() -> None:
    events = read({"id": ["a", None, "", "d"], "x": [1, 2, 3, 4]})
    assert events.positions.tolist() == [0, 3]
    assert events.dead == [(1, "the event has no id"), (2, "the event has no id")]
    assert attributes(events) == [{"x": (1,)}, {"x": (4,)}]


def test_times_that_python_cannot_hold_cost_their_row_only() -> None:
    far = pa.array([0, 2**60, None], pa.int64()).cast(pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_pydict({"id": ["a", "b", "c"], "at": far})
    events = EventReader(EventMapping(), batch.schema).read(batch)
    assert events.ids.to_pylist() == ["a", "c"]
    assert [position for position, _ in events.dead] == [1]
    assert json.loads(row_as_json(batch, 1))["id"] == "b"
    texts = read(
        {"id": ["a", "b"], "at": ["yesterday", None], "x": [1, 2]}, EventMapping(time="at")
    )
    assert texts.ids.to_pylist() == ["b"]
    assert "yesterday" in texts.dead[0][1]


def test_a_time_column_that_python_cannot_hold_is_dead_too() -> None:
    far = pa.array([0, 2**60], pa.int64()).cast(pa.timestamp("us", "UTC"))
    events = read({"id": ["a", "b"], "at": far, "x": [1, 2]}, EventMapping(time="at"))
    assert events.ids.to_pylist() == ["a"]
    assert len(events.dead) == 1


def not_utf8(*held: bytes) -> pa.Array:
    """Texts as Spark hands them over, which looks at no byte of them."""
    return pa.Array.from_buffers(pa.string(), len(held), pa.array(held, pa.binary()).buffers())


@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_not_utf8_costs_its_row_only(nested: bool) -> None:
    more = {"tags": [["x"]] * 3} if nested else {}
    events = read({"id": ["1", "2", "3"], "brand": not_utf8(b"a", b"b\xff", b"c"), **more})
    assert [position for position, _ in events.dead] == [1]
    assert "b\\xff" in events.dead[0][1]
    assert [held["brand"] for held in attributes(events)] == [("a",), ("c",)]
    ids = read(
        {"id": not_utf8(b"1", b"\xfe2"), "price": [1, 2], **{k: v[:2] for k, v in more.items()}}
    )
    assert [position for position, _ in ids.dead] == [1]
    row = pa.RecordBatch.from_pydict({"id": not_utf8(b"\xfe2"), "price": [2]})
    assert json.loads(row_as_json(row, 0)) == {"id": "\\xfe2", "price": 2}


def test_a_row_as_json_says_all_it_holds() -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["é"], "raw": [b"\xff"], "at": [NOON], "x": [None]})
    row = json.loads(row_as_json(batch, 0))
    assert row == {"id": "é", "raw": "/w==", "at": "2026-01-01 12:00:00+00:00", "x": None}


@pytest.mark.parametrize(
    ("columns", "mapping", "part"),
    [
        ({"x": [1]}, EventMapping(), "no column 'id'"),
        ({"id": [1.5]}, EventMapping(), "expected text or whole numbers"),
        ({"id": ["a"], "raw": [b"x"]}, EventMapping(), "name it as the payload"),
        ({"id": ["a"], "at": [1]}, EventMapping(time="at"), "expected timestamps"),
        ({"id": ["a"], "x": [[[1]]]}, EventMapping(), "no attribute can hold"),
        ({"id": ["a"], "x": ["1"], "y": [1]}, EventMapping(points={"p": ("x", "y")}), "of a point"),
        ({"id": ["a"]}, EventMapping(attributes=["x"]), "no column 'x'"),
    ],
)
def test_a_mapping_that_cannot_work_is_an_error_before_the_job(
    columns: dict[str, Any], mapping: EventMapping, part: str
) -> None:
    with pytest.raises(InvalidEvent, match=part):
        mapping.check(pa.RecordBatch.from_pydict(columns).schema)


def test_only_the_attributes_asked_for_count() -> None:
    events = read({"id": ["a"], "x": [1], "raw": [b"x"]}, EventMapping(attributes=["x"]))
    assert attributes(events) == [{"x": (1,)}]


def test_a_schema_of_the_index_makes_dead_letters() -> None:
    index = Index(schema={"tag": "text"})
    index.add(Subscription("s", "tag = 'a'"))
    batch = pa.RecordBatch.from_pydict({"id": ["a", "b"], "tag": [["a", "b"], ["a"]]})
    events = EventReader(EventMapping(), batch.schema, index.schema).read(batch)
    assert events.ids.to_pylist() == ["b"]
    assert "has 2 values" in events.dead[0][1]


def test_a_schema_of_the_index_costs_only_the_rows_of_plain_columns_that_break_it() -> None:
    index = Index(schema={"price": {"kind": "number", "low": 0, "high": 10}})
    index.add(Subscription("s", "price < 5"))
    batch = pa.RecordBatch.from_pydict({"id": ["a", "b"], "price": [11.0, 1.0]})
    events = EventReader(EventMapping(), batch.schema, index.schema).read(batch)
    assert events.ids.to_pylist() == ["b"]
    assert list(index.match_batch(events.attributes)) == [["s"]]


def test_dates_that_python_cannot_hold_cost_their_row_only() -> None:
    far = pa.array([0, 200_000_000, 2_932_897, None], pa.int32()).cast(pa.date32())
    columns = {"id": ["a", "b", "c", "d"], "day": far, "x": [1, 2, 3, 4]}
    for mapping in (EventMapping(), EventMapping(time="day"), EventMapping(until="day")):
        events = read(columns, mapping)
        assert events.ids.to_pylist() == ["a", "d"]
        assert [position for position, _ in events.dead] == [1, 2]


def test_an_id_with_half_a_surrogate_pair_costs_its_row_only() -> None:
    lines = ['{"id": "a", "x": 1}', '{"id": "\\ud800", "x": 1}', '{"id": "c", "x": 1}']
    events = read({"line": lines}, EventMapping(json=["line"]))
    assert events.ids.to_pylist() == ["a", "c"]
    ((position, reason),) = events.dead
    assert position == 1
    assert "lone surrogate" in reason
    reason.encode()


def test_an_error_that_is_not_utf8_costs_its_row_only() -> None:
    columns = {"id": ["a", "b"], "x": [1, 2], "e": not_utf8(b"no\xff", b"never")}
    events = read(columns, EventMapping(error="e"))
    assert [position for position, _ in events.dead] == [0, 1]
    assert "no\\xff" in events.dead[0][1]


def test_what_python_cannot_hold_inside_of_others_is_told_too() -> None:
    kind = pa.struct([("a", pa.string()), ("b", pa.list_(pa.string()))])
    inner = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), not_utf8(b"x", b"\xff"))
    held = pa.StructArray.from_arrays([pa.array(["y"]), inner], fields=list(kind))
    batch = pa.RecordBatch.from_arrays([pa.array(["1"]), held], ["id", "deep"])
    assert json.loads(row_as_json(batch, 0)) == {"id": "1", "deep": {"a": "y", "b": ["x", "\\xff"]}}
    ((_, reason),) = EventReader(EventMapping(), batch.schema).read(batch).dead
    assert "\\xff" in reason


def test_times_whose_years_arrow_cannot_count_are_told_as_microseconds() -> None:
    us = np.datetime64("99999-01-01", "us").astype(int).item()
    days = np.datetime64("99999-01-01", "D").astype(int).item()
    columns = {
        "us": pa.array([us], pa.timestamp("us")),
        "s": pa.array([-us // 1_000_000], pa.timestamp("s", "UTC")),
        "day": pa.array([days], pa.int32()).cast(pa.date32()),
        "near": pa.array([2**59], pa.timestamp("us")),
    }
    told = json.loads(row_as_json(pa.RecordBatch.from_pydict(columns), 0))
    assert told["us"] == told["day"] == f"{us} microseconds since 1970"
    assert told["s"] == f"-{us} microseconds since 1970"
    assert told["near"].startswith("20237-")  # as Arrow spells it
    (_, reason) = read({"id": ["a"], "at": columns["us"]}).dead[0]
    assert f"{us} microseconds since 1970" in reason


def test_coordinates_may_be_decimals() -> None:
    numbers = pa.array([Decimal("4.50")], pa.decimal128(8, 2))
    place = pa.StructArray.from_arrays([numbers, numbers], ["lon", "lat"])
    events = read(
        {"id": ["a"], "x": numbers, "y": numbers, "place": place, "tags": [["t"]]},
        EventMapping(points={"p": ("x", "y")}),
    )
    (held,) = attributes(events)
    assert held["p"] == held["place"] == (Point(4.5, 4.5),)
    plain = read({"id": ["a"], "x": numbers, "y": numbers}, EventMapping(points={"p": ("x", "y")}))
    assert attributes(plain) == [{"p": (Point(4.5, 4.5),)}]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_point_and_an_attribute_of_its_name_are_given_twice(as_json: bool) -> None:
    row = {"lon": 1.0, "lat": 2.0, "place": "Paris"}
    mapping = EventMapping(points={"place": ("lon", "lat")}, json=["line"] if as_json else ())
    columns = {"line": [json.dumps(row)]} if as_json else {name: [v] for name, v in row.items()}
    events = read({"id": ["a"], **columns}, mapping)
    assert "'place' is given twice" in events.dead[0][1]


def test_a_side_of_a_point_may_have_the_name_of_the_column_of_lines() -> None:
    columns = {"value": ['{"id": "a", "value": 4, "lat": 52}']}
    mapping = EventMapping(json=["value"], points={"place": ("value", "lat")})
    mapping.check(pa.RecordBatch.from_pydict(columns).schema)
    assert attributes(read(columns, mapping)) == [{"place": (Point(4, 52),)}]


def test_fields_of_lines_are_chosen_and_hold_json_themselves() -> None:
    line = {"value": "a", "car": {"mark": "FORD", "year": 2014}, "x": 1, "body": '{"y": 2}'}
    mapping = EventMapping(id="value", json=["value", "body"], fields=["car.mark", "y"])
    events = read({"value": [json.dumps(line)]}, mapping)
    assert events.ids.to_pylist() == ["a"]
    assert attributes(events) == [{"car.mark": ("FORD",), "y": (2,)}]
    with pytest.raises(InvalidEvent, match="no column 'body'"):
        read({"value": ["{}"], "other": [1]}, mapping)


def test_points_and_validity_in_json() -> None:
    mapping = EventMapping(
        json=["line"], until="to", points={"place": ("at.lon", "at.lat"), "other": ("x", "y")}
    )
    lines = [
        '{"id": "a", "at": {"lon": 4.5, "lat": 52}, "to": "2026-01-01T00:00:00Z", "n": 1}',
        '{"id": "b", "x": 1}',
        '{"id": "c", "x": "east", "y": 1}',
        '{"id": "d", "to": "soon"}',
    ]
    events = read({"line": lines}, mapping)
    assert events.ids.to_pylist() == ["a", "b"]
    first, second = (one.attributes for one in events.attributes)
    assert first == {"place": (Point(4.5, 52),), "n": (1,)}
    assert second == {}
    assert events.untils.to_pylist() == [datetime(2026, 1, 1, tzinfo=UTC), None]
    assert [row for row, _ in events.dead] == [2, 3]
