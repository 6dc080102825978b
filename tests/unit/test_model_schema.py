"""Schema: what it reads, promises and rules out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tamis import Index, Range, Schema, Subscription, parse_filter
from tamis.errors import InvalidSchema, SchemaViolation
from tamis.model import Attribute, Kind
from tamis.values import as_attributes

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_json_and_back() -> None:
    schema = Schema(
        {
            "price": {"kind": "number", "low": 0, "high": 100.5},
            "tag": {"kind": "text", "single": False},
            "when": {"kind": "timestamp", "low": START},
            "span": {"kind": "range", "high": 5},
            "spot": "point",
            "own": Attribute(Kind.BOOLEAN),
        }
    )
    assert Schema(json.loads(json.dumps(schema.to_json()))) == schema
    assert schema.attributes["when"].domain == Range(low=START)
    assert schema != Schema({})
    assert schema != "schema"


@pytest.mark.parametrize(
    "raw",
    [
        [("a", "number")],
        None,
        {1: "number"},
        {"": "number"},
        {"a": "colour"},
        {"a": 7},
        {"a": {}},
        {"a": {"kind": ["number"]}},
        {"a": {"kind": "number", "size": 1}},
        {"a": {"kind": "number", "single": "yes"}},
        {"a": {"kind": "number", "low": "a"}},
        {"a": {"kind": "number", "low": 1, "ends": "<>"}},
        {"a": {"kind": "number", "low": 1, "high": 1, "ends": "[)"}},
        {"a": {"kind": "number", "ends": "[)"}},
        {"a": {"kind": "number", "low": 3, "high": 1}},
        {"a": {"kind": "number", "low": START}},
        {"a": {"kind": "timestamp", "low": 1}},
        {"a": {"kind": "range", "low": 1, "high": START}},
        {"a": {"kind": "text", "low": 1}},
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidSchema):
        Schema(raw)


def test_single_is_promised_for_what_is_named() -> None:
    schema = Schema({"a": "number", "b": {"kind": "number", "single": False}, "r": "range"})
    assert schema.is_single("a")
    assert not schema.is_single("b")
    assert not schema.is_single("unknown")
    assert not schema.is_single("r")  # a range may meet two intervals that do not meet


@pytest.mark.parametrize(
    ("kind", "text", "allowed"),
    [
        ("number", "a < 3", True),
        ("range", "a < 3", True),
        ("range", "a < TIMESTAMP '2026-01-01'", True),
        ("timestamp", "a < TIMESTAMP '2026-01-01'", True),
        ("timestamp", "a < 3", False),
        ("text", "a < 3", False),
        ("text", "a LIKE 'x%'", True),
        ("number", "a LIKE 'x%'", False),
        ("number", "a = 'x'", False),
        ("number", "a != 'x'", False),
        ("number", "a IN ('x', 3)", True),
        ("number", "a IN ('x', 'y')", False),
        ("boolean", "a", True),
        ("number", "NOT (b = 1 OR NOT a = TRUE)", False),
        ("point", "box(a, 0, 0, 1, 1)", True),
        ("polygon", "box(a, 0, 0, 1, 1)", False),
        ("number", "distance(a, 0, 0) < 5", False),
        ("number", "within(a, 'POLYGON ((0 0, 1 0, 0 1))')", False),
        ("polygon", "a IS NULL", True),
        ("number", "b = 'free'", True),
    ],
)
def test_filters_that_never_hold_are_refused(kind: str, text: str, allowed: bool) -> None:
    if "POLYGON" in text:
        text = text.replace("0 1))", "0 1, 0 0))")
    schema, node = Schema({"a": kind}), parse_filter(text)
    if allowed:
        schema.check_filter(node)
    else:
        with pytest.raises(SchemaViolation, match="'a'"):
            schema.check_filter(node)


def test_events_that_break_the_promise_are_refused() -> None:
    schema = Schema({"a": "number", "b": {"kind": "text", "single": False}, "r": "range"})
    for held in ({"a": 1, "b": ["x", "y"]}, {"a": "text"}, {"r": Range(1, 2)}, {"c": [1, 2]}, {}):
        schema.check_event(as_attributes(held))
    for held in ({"a": [1, 2]}, {"a": Range(1, 2)}, {"r": [Range(1, 2), Range(3, 4)]}):
        with pytest.raises(SchemaViolation):
            schema.check_event(as_attributes(held))


DOMAINS = Schema(
    {
        "price": {"kind": "number", "low": 0, "high": 100, "single": False},
        "posted": {"kind": "timestamp", "low": {"$timestamp": "2026-01-01"}},
    }
)


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("price >= 100", True),
        ("price > 100", False),
        ("price < 0", False),
        ("price = -1", False),
        ("price IN (-1, 5)", True),
        ("price IN (-1, 101)", False),
        ("price != -1", True),
        ("price IS NULL", True),
        ("posted < TIMESTAMP '2026-01-01T00:00:00Z'", False),
        ("posted <= TIMESTAMP '2026-01-01T00:00:00Z'", True),
    ],
)
def test_filters_out_of_the_domain_are_refused(text: str, is_allowed: bool) -> None:
    node = parse_filter(text)
    if is_allowed:
        DOMAINS.check_filter(node)
    else:
        with pytest.raises(SchemaViolation, match="lies within"):
            DOMAINS.check_filter(node)


@pytest.mark.parametrize(
    ("held", "is_allowed"),
    [
        ({"price": [0, 100]}, True),
        ({"price": [5, 100.5]}, False),
        ({"price": "-1"}, False),
        ({"price": "cheap"}, True),
        ({"price": True}, True),
        ({"posted": "2025-12-31"}, False),
        ({"posted": datetime(2026, 1, 1, tzinfo=UTC)}, True),
    ],
)
def test_values_out_of_the_domain_are_refused(held: dict[str, Any], is_allowed: bool) -> None:
    index = Index(DOMAINS)
    index.add(Subscription("a", "price <= 100 OR posted IS NOT NULL"))
    if is_allowed:
        index.match(held)
    else:
        with pytest.raises(SchemaViolation, match="lies outside"):
            index.match(held)


def test_columns_out_of_the_domain_are_refused() -> None:
    index = Index(DOMAINS)
    index.add(Subscription("a", "price <= 100"))
    index.add(Subscription("b", "posted >= TIMESTAMP '2026-01-02T00:00:00Z'"))
    assert list(index.match_batch(pa.table({"price": [1.5, None, 100]}))) == [["a"], [], ["a"]]
    for column in ({"price": [1, 101]}, {"price": [-0.5]}, {"posted": [datetime(2025, 1, 1)]}):
        with pytest.raises(SchemaViolation, match="lies outside"):
            index.match_batch(pa.table(column))
