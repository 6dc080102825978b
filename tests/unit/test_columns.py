"""Plain events become vectors the same way by every path, and grow with the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.slots.columns import Columns
from tamis.slots.lanes import LAT, LON, NUMBER, PRESENT, TEXT
from tamis.values import Point, attributes_of

PLACE = Point(121.5, -31.25)
EVENTS: list[dict[str, Any]] = [
    {},
    {"a": 1.0, "b": -0.0},
    {"b": float("inf"), "a": 2.0},
    {"a": 1.0, "at": PLACE},
    {"at": PLACE, "b": 2.5, "a": 1.5},
    {"at": PLACE},
    {"a": 3, "at": PLACE},
    {"a": 1.0, "unknown": 2.0, "at": PLACE},
    {"a": PLACE, "b": 1.0},
    {"a": PLACE, "at": PLACE, "b": 1.0},
    {"at": 7.0, "b": 1.0},
    {"unknown": PLACE, "at": PLACE, "b": 1.0},
    {"unknown": PLACE, "b": 1.0},
]
KINDS: list[list[tuple[str, int]]] = [
    [],
    [("a", NUMBER), ("b", NUMBER)],
    [("a", NUMBER), ("at", LON), ("b", NUMBER), ("at", LAT)],
    [("at", LAT), ("at", LON), ("a", NUMBER), ("b", NUMBER)],
    [("a", NUMBER), ("at", LON), ("at", LAT), ("b", NUMBER), ("b", PRESENT)],
    [("a", NUMBER), ("at", LON), ("at", LAT), ("b", NUMBER), ("x", LON), ("x", LAT)],
    [("a", NUMBER), ("b", NUMBER), ("c", TEXT)],
    [("a", NUMBER), ("at", LON), ("b", NUMBER)],
]


@pytest.mark.parametrize("names", KINDS)
def test_what_is_plain_is_encoded_as_all_is(names: list[tuple[str, int]]) -> None:
    columns = Columns()
    for attribute, lane in names:
        columns.column(attribute, lane)
    for event in EVENTS:
        wanted = columns.encode(attributes_of(event))
        vector = columns.encode_plain(event)
        if vector is not None:
            assert wanted.is_plain
            assert np.array_equal(vector, wanted.vector, equal_nan=True), event


def test_a_place_and_numbers_are_plain_and_columns_may_come_later() -> None:
    columns = Columns()
    event = {"at": PLACE, "a": 1.5}
    for number, (attribute, lane) in enumerate([("a", NUMBER), ("at", LON), ("at", LAT)]):
        columns.column(attribute, lane)
        columns.encode_plain(event)
        assert len(columns) == number + 1
    vector = columns.encode_plain(event)
    assert vector is not None
    assert vector.tolist() == [1.5, 121.5, -31.25]
