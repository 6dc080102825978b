"""Events as Arrow tables, and batches of events in every form."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Event, Point, Polygon, Range
from tamis.errors import InvalidEvent
from tamis.model import EventColumns, attributes_of_batch, events_from_arrow, events_to_arrow

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EVENTS = [
    Event("e1", {"n": 2**53 + 1, "tag": ["a", "é"], "p": Point(1, 2)}, payload=b"\x00", time=NOON),
    Event("e2", {"f": 0.1, "flag": False, "when": NOON, "tag": "b"}, location=(37.6, 55.75)),
    Event("e3", {"r": Range(1, None, "(]"), "area": Polygon([(0, 0), (1, 0), (0, 1)])}, until=NOON),
    Event("e4", {"rs": [Range(1, 2), Range(high=3, ends="[)")], "ts": Range(NOON, None)}),
    Event("e5", {"f": math.inf, "ps": [Point(0, 0), Point(1, 1)]}),
    Event("e6", {}),
]


def test_arrow_and_back() -> None:
    table = events_to_arrow(EVENTS)
    assert events_from_arrow(table) == EVENTS
    for batch in table.to_batches(max_chunksize=2):
        assert events_from_arrow(batch)
    assert events_from_arrow(events_to_arrow([])) == []
    assert table.schema.field("n").type == pa.int64()
    assert table.schema.field("tag").type == pa.list_(pa.string())


def test_the_columns_may_have_other_names() -> None:
    names = EventColumns(id="key", time="at")
    table = events_to_arrow(EVENTS, names)
    assert table.column_names[:2] == ["key", "at"]
    assert events_from_arrow(table, names) == EVENTS
    with pytest.raises(InvalidEvent, match="event_id"):
        events_from_arrow(table)


@pytest.mark.parametrize(
    "attributes",
    [
        [{"a": 1}, {"a": "text"}],
        [{"a": [1, "text"]}],
        [{"a": True}, {"a": 1}],
        [{"a": 2**53 + 1}, {"a": 0.5}],
        [{"a": Range(1, 2)}, {"a": Range(NOON, None)}],
        [{"a": Range(2**53 + 1, None)}, {"a": Range(0.5, None)}],
        [{"event_id": "x"}],
    ],
)
def test_what_does_not_fit_one_column_is_refused(attributes: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidEvent):
        events_to_arrow([Event(str(n), held) for n, held in enumerate(attributes)])


def test_ids_and_times_come_in_other_types_too() -> None:
    table = pa.table({"event_id": [7], "event_time": ["2026-01-31T12:00:00Z"]})
    assert events_from_arrow(table) == [Event("7", {}, time=NOON)]
    table = pa.table({"event_id": ["e"], "event_time": [date(2026, 1, 31)]})
    assert events_from_arrow(table)[0].time == datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    "columns",
    [
        {"event_id": pa.array([None], pa.string())},
        {"event_id": [""]},
        {"event_id": [1.5]},
        {"event_id": ["e"], "event_time": ["soon"]},
        {"event_id": ["e"], "event_time": [7]},
        {"event_id": ["e"], "event_payload": ["text"]},
        {"event_id": ["e"], "event_location": ["text"]},
        {"event_id": ["e"], "a": [b"bytes"]},
        {"event_id": ["e"], "a": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))},
        {"event_id": ["e"], "a": [{"polygon": "POINT (1 2)"}]},
        {"event_id": ["e"], "a": [{"low": 2, "high": 1}]},
        {"event_id": ["e"], "a": [{"low": 1, "high": 2, "ends": "<>"}]},
    ],
)
def test_bad_tables_are_refused(columns: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent):
        events_from_arrow(pa.table(columns))


FAR = [
    pa.array([10**18]).cast(pa.timestamp("us")),
    pa.array([2**63 - 1]).cast(pa.timestamp("us", "Europe/Moscow")),
    pa.array([10**15]).cast(pa.timestamp("s")),
    pa.array([-(10**14)]).cast(pa.timestamp("s")),
    pa.array([10**8], pa.int32()).cast(pa.date32()),
    pa.array([10**18]).cast(pa.timestamp("us")).dictionary_encode(),
]
NO_MOMENTS = [
    *((column, "outside the years 1 to 9999") for column in FAR),
    (pa.array([[10**18]], pa.list_(pa.timestamp("us"))), "outside the years 1 to 9999"),
    (pa.array([0]).cast(pa.timestamp("us", "Mars/Base")), "'Mars/Base' is not a time zone"),
    (pa.array([pa.MonthDayNano([1, 2, 3])]), "is not a value"),
    (pa.array([{"a": pa.MonthDayNano([1, 2, 3])}]), "is not a value"),
]


@pytest.mark.parametrize(
    ("column", "said"), NO_MOMENTS, ids=[str(column.type) for column, _ in NO_MOMENTS]
)
def test_what_no_timestamp_can_be_is_refused(column: pa.Array, said: str) -> None:
    with pytest.raises(InvalidEvent, match=said):
        events_from_arrow(pa.table({"event_id": ["e"], "a": column}))
    for batch in (pa.table({"a": column}), {"a": column}):
        with pytest.raises(InvalidEvent, match=said):
            attributes_of_batch(batch)


def test_two_columns_of_one_name_are_refused() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(InvalidEvent, match="same name"):
        attributes_of_batch(table)


POINT = pa.struct([("lon", pa.float64()), ("lat", pa.float64())])


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array([1, None]), [(1,), ()]),
        (pa.array([1.5, math.nan]), [(1.5,), ()]),
        (pa.array([2**63 - 1], pa.uint64()), [(2**63 - 1,)]),
        (pa.array([Decimal("1.50")]), [(1.5,)]),
        (pa.array(["a", None]).dictionary_encode(), [("a",), ()]),
        (pa.array(["a"], pa.large_string()), [("a",)]),
        (pa.array([["a", None, "a"], [], None]), [("a",), (), ()]),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), [(1, 2)]),
        (pa.array([NOON], pa.timestamp("ms", "Europe/Moscow")), [(NOON,)]),
        (pa.array([date(2026, 1, 31)]), [(datetime(2026, 1, 31, tzinfo=UTC),)]),
        (pa.array([{"lon": 1, "lat": 2}, {"lon": None, "lat": 2}, None]), [(Point(1, 2),), (), ()]),
        (pa.array([{"lon": 1.0, "lat": math.nan}]), [()]),
        (pa.array([[{"lon": 1, "lat": 2}]], pa.list_view(POINT)), [(Point(1, 2),)]),
        (pa.array([{"polygon": None}], pa.struct([("polygon", pa.string())])), [()]),
        (pa.array([{"low": 1, "high": None}]), [(Range(1, None),)]),
        (pa.array([{"low": 1, "high": 2, "ends": None}]), [(Range(1, 2),)]),
    ],
)
def test_arrow_types(column: pa.Array, wanted: list[Any]) -> None:
    batch = pa.table({"a": column})
    assert [held.get("a", ()) for held in attributes_of_batch(batch)] == wanted


def test_a_struct_is_nested_attributes() -> None:
    table = pa.table({"car": [{"mark": "FORD", "year": 2016}, None]})
    assert attributes_of_batch(table) == [{"car.mark": ("FORD",), "car.year": (2016,)}, {}]


def test_a_table_of_events_is_a_batch() -> None:
    assert attributes_of_batch(events_to_arrow(EVENTS)) == [e.attributes for e in EVENTS]


def test_pandas_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "n": pandas.array([1, None], dtype="Int64"),
            "f": [0.5, math.nan],
            "c": pandas.Categorical(["x", None]),
            "t": pandas.to_datetime(["2026-01-31T12:00:00Z", None]),
        },
        index=["i", "j"],
    )
    wanted = {"n": (1,), "f": (0.5,), "c": ("x",), "t": (NOON,)}
    assert attributes_of_batch(frame) == [wanted, {}]
    with pytest.raises(InvalidEvent, match="one kind"):
        attributes_of_batch(pandas.DataFrame({"a": [1, "x"]}))
    with pytest.raises(InvalidEvent, match="nanoseconds"):
        attributes_of_batch(pandas.DataFrame({"a": [pandas.Timestamp(1)]}))


def test_dicts_of_arrays() -> None:
    arrays = {
        "list": [1, None],
        "numpy": np.array([1.5, np.nan]),
        "texts": np.array(["a", "b"]),
        "arrow": pa.chunked_array([[1], [2]]),
        "rows": np.array([[1, 2], [3, 3]]),
        "points": [Point(0, 0), None],
        "places": pa.array([{"lon": 1.0, "lat": 2.0}, None]),
        "ranges": pa.chunked_array([[{"low": 1, "high": 2}, None]]),
    }
    assert attributes_of_batch(arrays) == [
        {"list": (1,), "numpy": (1.5,), "texts": ("a",), "arrow": (1,), "rows": (1, 2),
         "points": (Point(0, 0),), "places": (Point(1, 2),), "ranges": (Range(1, 2),)},
        {"texts": ("b",), "arrow": (2,), "rows": (3,)},
    ]  # fmt: skip
    assert attributes_of_batch({}) == []


@pytest.mark.parametrize(
    "batch",
    [
        None,
        7,
        "text",
        b"bytes",
        {"a": 7},
        {"a": "text"},
        {"a": {"b": 1}},
        {"a": {1, 2}},
        {"a": [1], "b": [1, 2]},
        {"a": pa.array([{"low": 1, "high": 2, "ends": "<>"}])},
        [None],
        ["text"],
        [[1]],
        [{"a": b"bytes"}],
    ],
)
def test_what_is_no_batch_is_refused(batch: Any) -> None:
    with pytest.raises(InvalidEvent):
        attributes_of_batch(batch)


def test_the_place_of_a_bad_event_is_named() -> None:
    with pytest.raises(InvalidEvent, match="event 2 of the batch: attribute 'a'"):
        attributes_of_batch([{}, {}, {"a": 2**64}])


def test_large_integers_beside_floats() -> None:
    events = [
        Event("e1", {"a": [0.5, -(2**63)], "r": Range(-(2**63), 0.5)}),
        Event("e2", {"a": 2**60, "r": Range(None, 2**60)}),
    ]
    assert events_from_arrow(events_to_arrow(events)) == events
