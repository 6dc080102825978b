"""Plain events become vectors the same way by every path, and grow with the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.errors import InvalidValue
from tamis.slots.columns import Columns
from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, PREFIX, PRESENT, TEXT
from tamis.slots.texts import Texts
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
    {"a": 1.0, "c": "x", "t": True},
    {"c": ["x", "y", "x"], "t": False, "a": 2},
    {"c": ["x", "y"], "d": ["u", "v", "w"], "t": True},
    {"c": ["x"], "unknown": ["a", "b"], "b": 2**53 + 1},
    {"c": ["x", "x"], "d": [], "t": [True]},
    {"c": ["x", 1], "b": 1.0},
    {"c": ["é", "y"], "d": "é"},
    {"c": [["x"]], "a": None},
    {"c": True, "t": "x", "a": "1"},
    {"c": [f"{n}" for n in range(9)], "d": [f"{n}" for n in range(9)]},
    {"no identifier": 1.0, "a": 1.0},
    {"a": float("nan"), "c": "y", "t": None},
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
    [("a", NUMBER), ("c", TEXT), ("d", TEXT), ("t", BOOLEAN), ("at", LON), ("at", LAT)],
    [("a", NUMBER), ("c", TEXT), ("c", NUMBER), ("t", BOOLEAN), ("t", TEXT)],
    [("c", TEXT), ("c", PREFIX + 1), ("d", TEXT), ("t", PRESENT)],
]


@pytest.mark.parametrize("names", KINDS)
def test_what_is_plain_is_encoded_as_all_is(names: list[tuple[str, int]]) -> None:
    columns = Columns()
    for attribute, lane in names:
        if lane > PREFIX:
            columns.prefix(attribute, "x" * (lane - PREFIX))
            continue
        columns.column(attribute, lane)
        if lane == TEXT:
            columns.code(attribute, "x")
    for event in EVENTS:
        try:
            attributes_of(event)
        except InvalidValue:
            assert columns.encode_simply(event) is None
            continue
        wanted = columns.encode(attributes_of(event))
        vector, simple = columns.encode_quickly(event), columns.encode_simply(event)
        if vector is not None:
            assert wanted.is_plain
            assert np.array_equal(vector, wanted.vector, equal_nan=True), event
        if simple is not None:
            assert simple.is_plain == wanted.is_plain
            assert np.array_equal(simple.vector, wanted.vector, equal_nan=True), event
            assert np.array_equal(simple.choices, wanted.choices, equal_nan=True), event
            assert simple.decides == wanted.decides


def test_a_place_and_numbers_are_plain_and_columns_may_come_later() -> None:
    columns = Columns()
    event = {"at": PLACE, "a": 1.5}
    for number, (attribute, lane) in enumerate([("a", NUMBER), ("at", LON), ("at", LAT)]):
        columns.column(attribute, lane)
        columns.encode_quickly(event)
        assert len(columns) == number + 1
    vector = columns.encode_quickly(event)
    assert vector is not None
    assert vector.tolist() == [1.5, 121.5, -31.25]


def test_lists_of_texts_and_booleans_are_simple() -> None:
    columns = Columns()
    for attribute, lane in [("c", TEXT), ("t", BOOLEAN), ("a", NUMBER)]:
        columns.column(attribute, lane)
    columns.code("c", "x")
    simple = columns.encode_simply({"c": ["x", "y", "x"], "t": True, "a": 3})
    assert simple is not None
    assert [choice.tolist() for choice in simple.choices] == [[0, 1, 3], [-1, 1, 3]]
    plain = columns.encode_simply({"c": ["x"], "t": False})
    assert plain is not None
    assert plain.is_plain


def test_a_prefix_of_another_length_may_be_added_while_an_event_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = Columns()
    columns.prefix("c", "a")
    columns.prefix("c", "ab")
    number_of, more = Texts.number_of, ["abc"]

    def adding(self: Texts, text: str) -> int:
        if more:
            columns.prefix("c", more.pop())
        return number_of(self, text)

    with monkeypatch.context() as patched:
        patched.setattr(Texts, "number_of", adding)
        columns.encode({"c": ("abc", "abd")})
    assert len(columns) == 3


def test_columns_may_be_added_while_the_dictionaries_are_told() -> None:
    columns = Columns()
    for name in "cd":
        columns.column(name, TEXT)
        columns.prefix(name, "a")
    told = []
    for attribute, length, _ in columns.dictionaries():
        told.append((attribute, length))
        columns.column(f"{attribute}{len(told)}", TEXT)
        columns.prefix(attribute, "a" * (len(told) + 1))
    assert told[0] == ("c", 0)
    assert ("d", 1) in told
