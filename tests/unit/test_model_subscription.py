"""Subscription: its fields, its condition, JSON and back."""

from __future__ import annotations

import json
import pickle
from datetime import datetime
from typing import Any

import pytest

from tamis import Point, Subscription, col, evaluate, parse_filter
from tamis.errors import FilterError, InvalidSubscription
from tamis.language.tree import Near

FULL = Subscription(
    "ü",
    "brand = 'O''Neill' AND NOT (price BETWEEN 1 AND 2 OR distance(location, 1, 2) < 5)",
    priority=0,
    owner="ö",
    delivery={"channel": "mail", "to": ["a@example.org"]},
    location=(37.6, 55.75),
    radius_m=500,
)


def test_the_filter_may_be_given_in_any_spelling() -> None:
    wanted = parse_filter("price < 3300")
    for spelling in (
        "price < 3300",
        col("price") < 3300,
        {"attribute": "price", "op": "<", "value": 3300},
        '{"attribute": "price", "op": "<", "value": 3300}',
    ):
        assert Subscription("s", spelling).filter == wanted


def test_the_condition_adds_the_place() -> None:
    assert Subscription("s", "a = 1").condition == parse_filter("a = 1")
    assert FULL.condition == FULL.filter & Near("location", Point(37.6, 55.75), 500)
    everything = Subscription("s", True, location=Point(0, 0), radius_m=0)
    assert evaluate(everything.condition, {"location": Point(0, 0)})
    assert not evaluate(everything.condition, {})


def test_json_and_back() -> None:
    for one in (FULL, Subscription("s", "TRUE"), Subscription("s", False, priority=9)):
        assert Subscription.from_json(json.dumps(one.to_json())) == one
        assert Subscription.from_json(one.to_json()) == one
        assert pickle.loads(pickle.dumps(one)) == one
    assert list(Subscription("s", "TRUE").to_json()) == ["id", "filter", "priority"]


def test_the_place_may_be_geojson() -> None:
    raw = {"id": "s", "filter": "TRUE", "radius_m": 5}
    geo = {"type": "Point", "coordinates": [1, 2]}
    assert Subscription.from_json({**raw, "location": geo}).location == Point(1, 2)
    assert Subscription.from_json({**raw, "location": [1, 2]}).location == Point(1, 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": ""},
        {"id": 1},
        {"id": None},
        {"id": ["s"]},
        {"id": "\ud800"},
        {"priority": -1},
        {"priority": 10},
        {"priority": 1.0},
        {"priority": True},
        {"priority": None},
        {"priority": "1"},
        {"owner": None},
        {"owner": 1},
        {"owner": "\ud800"},
        {"delivery": [1]},
        {"delivery": "mail"},
        {"delivery": {"at": datetime(2026, 1, 1)}},
        {"delivery": {"rate": float("nan")}},
        {"delivery": {"to": "\ud800"}},
        {"delivery": {"\ud800": "to"}},
        {"delivery": {1: "a", "1": "b"}},
        {"delivery": {"deep": [{1: "a", "1": "b"}]}},
        {"location": (1, 2)},
        {"radius_m": 5},
        {"location": "ab", "radius_m": 5},
        {"location": (1, 2, 3), "radius_m": 5},
        {"location": (200, 0), "radius_m": 5},
        {"location": (1, 2), "radius_m": -1},
        {"location": (1, 2), "radius_m": "5"},
        {"location": (1, 2), "radius_m": float("nan")},
        {"location": (1, 2), "radius_m": True},
    ],
)
def test_what_cannot_be_saved_is_refused(fields: dict[str, Any]) -> None:
    given = {"id": "s", "filter": "TRUE", **fields}
    with pytest.raises(InvalidSubscription):
        Subscription(**given)
    with pytest.raises(InvalidSubscription):
        Subscription.from_json(given)


def test_repeated_keys_are_refused() -> None:
    inside = '{"attribute": "a", "op": "=", "value": 1, "value": 2}'
    for text in ('{"id": "s", "filter": "a", "filter": "b"}', f'{{"id": "s", "filter": {inside}}}'):
        with pytest.raises(InvalidSubscription, match="given twice"):
            Subscription.from_json(text)


def test_a_bad_filter_keeps_its_caret() -> None:
    with pytest.raises(FilterError, match=r"\^"):
        Subscription("s", "price <")
    with pytest.raises(InvalidSubscription, match=r"(?s)subscription 's9'.*\^"):
        Subscription.from_json({"id": "s9", "filter": "price <"})


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "[]",
        "7",
        b"\xff",
        "[" * 100_000,
        "{}",
        '{"id": "s"}',
        '{"filter": "TRUE"}',
        '{"id": "s", "filter": "TRUE", "colour": 1}',
        '{"id": "s", "filter": null}',
        '{"id": "s", "filter": []}',
        '{"id": "s", "filter": 7}',
        '{"id": "s", "filter": {"and": []}}',
    ],
)
def test_bad_json_is_refused(raw: str | bytes) -> None:
    with pytest.raises(InvalidSubscription):
        Subscription.from_json(raw)


def test_delivery_is_held_as_json_has_it() -> None:
    one = Subscription("s", "TRUE", delivery={"to": ("a", "é"), "at": {1: True}})
    assert one.delivery == {"to": ["a", "é"], "at": {"1": True}}
    assert Subscription.from_json(json.dumps(one.to_json())) == one


def test_a_location_may_be_a_struct_of_lon_and_lat() -> None:
    one = Subscription.from_json(
        {"id": "s", "filter": "TRUE", "location": {"lon": 1, "lat": 2}, "radius_m": 5}
    )
    assert one.location == Point(1, 2)


def test_it_is_immutable() -> None:
    with pytest.raises(AttributeError):
        FULL.priority = 1  # type: ignore[misc]
    settings = {"to": "x"}
    one = Subscription("s", "TRUE", delivery=settings)
    settings["to"] = "y"
    assert one.delivery == {"to": "x"}


def test_a_square_around_a_place() -> None:
    one = Subscription("s", "x < 1", location=(10, 20), radius_m=500, area="square")
    assert one.to_json()["area"] == "square"
    assert Subscription.from_json(one.to_json()) == one
    assert "area" not in Subscription("s", "x < 1", location=(10, 20), radius_m=500).to_json()
    assert one.at((1, 2)) == Subscription(
        "s", "x < 1", location=(1, 2), radius_m=500, area="square"
    )
    with pytest.raises(InvalidSubscription, match="area 'star' is none of circle, square"):
        Subscription("s", "x < 1", location=(10, 20), radius_m=500, area="star")
    with pytest.raises(InvalidSubscription, match="a square around no place"):
        Subscription("s", "x < 1", area="square")
