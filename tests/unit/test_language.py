"""The tree, the Python spelling, queries, the normal form and explanations, one by one."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from tamis.errors import FilterError, TamisError
from tamis.language import (
    FALSE,
    TRUE,
    Filter,
    col,
    evaluate,
    explain,
    normal_form,
    parse_filter,
    parse_query,
    parse_sql,
    to_query,
    to_sql,
)
from tamis.language.normal import Literal, to_filter
from tamis.language.tree import And, Equals, In, InRange, Missing, Not, Or, Prefix, Present, is_in
from tamis.values import Point, Range


def test_and_or_are_flat_and_keep_their_order() -> None:
    a, b, c = col("a") == 1, col("b") == 2, col("c") == 3
    assert a & (b & c) == (a & b) & c == And((a, b, c))
    assert a | (b | c) == Or((a, b, c))
    assert (a & b) | c == Or((And((a, b)), c))
    assert a & TRUE == And((a, TRUE))


def test_one_is_not_true() -> None:
    assert Equals("x", 1) != Equals("x", True)
    assert Equals("x", 1) == Equals("x", 1.0)
    assert In("x", (1, True)).values == (1, True)
    assert is_in("x", [1, 1.0]) == Equals("x", 1)


def test_filters_have_no_truth() -> None:
    with pytest.raises(TypeError, match="no truth of its own"):
        bool(col("x") == 1)
    with pytest.raises(TypeError):
        1 < col("x") < 5  # type: ignore[operator]  # noqa: B015
    with pytest.raises(TypeError):
        (col("x") == 1) and (col("y") == 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: col("") == 1,
        lambda: col(5) == 1,  # type: ignore[arg-type]
        lambda: col("x") == None,  # noqa: E711
        lambda: col("x") == float("nan"),
        lambda: col("x") == [1],
        lambda: col("x") == np.array([1, 2]),
        lambda: col("x") == Range(1, 2),
        lambda: col("x") == (col("y") == 1),
        lambda: col("x") == 2**63,
        lambda: col("x") < "a",
        lambda: col("x") < None,
        lambda: col("x") < True,
        lambda: col("x") < float("nan"),
        lambda: col("x").between(1, None),
        lambda: col("x").between(1, 2, "]["),
        lambda: col("x").is_in(),
        lambda: col("x").starts_with(5),  # type: ignore[arg-type]
        lambda: col("x").within("POLYGON"),  # type: ignore[arg-type]
        lambda: col("x").in_box(0, 5, 1, 1),
        lambda: col("x").in_box(190, 0, 1, 1),
        lambda: col("x").distance(0, 0) < -1,
        lambda: col("x").distance(0, 0) < float("inf"),
        lambda: col("x").distance(0, 0) < True,
        lambda: col("x").distance(0, 0) > 5,
        lambda: col("x").distance(181, 0) < 5,
        lambda: (col("x") == 1) & 5,  # type: ignore[operator]
        lambda: Not(5),  # type: ignore[arg-type]
        lambda: InRange("x", Range()),
        lambda: In("x", (1, 1)),
        lambda: And((TRUE,)),
    ],
)
def test_what_python_refuses(make: Any) -> None:
    with pytest.raises(TamisError):
        make()


def test_python_takes_dates_and_numpy_numbers() -> None:
    assert (col("x") < np.int64(5)) == (col("x") < 5)
    assert (col("x") == np.float64(5)) == (col("x") == 5)
    assert (col("x") >= date(2026, 1, 1)) == InRange(
        "x", Range(low=datetime(2026, 1, 1, tzinfo=UTC))
    )


def test_trees_can_be_pickled() -> None:
    node = parse_sql("a = 1 AND NOT within(b, 'POLYGON ((0 0, 1 0, 0 1, 0 0))') OR c LIKE 'x%'")
    assert pickle.loads(pickle.dumps(node)) == node


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a=5", Equals("a", 5)),
        ("a='5'", Equals("a", "5")),
        ("a=''", Equals("a", "")),
        ("a=", Equals("a", "")),
        ("a=007", Equals("a", "007")),
        ("a=true", Equals("a", True)),
        ("a=True", Equals("a", "True")),
        ("a=1&a=x", In("a", (1, "x"))),
        ("a=1&a=1", Equals("a", 1)),
        ("a=b+c%26d", Equals("a", "b c&d")),
        ("a_from=1&a_below=2", InRange("a", Range(1, 2, "[)"))),
        ("a_above=2026-01-01", InRange("a", Range(datetime(2026, 1, 1), None, "(]"))),
        ("a_prefix=5%25", Prefix("a", "5%")),
        ("a_null=true", Missing("a")),
        ("a_null=false", Present("a")),
        ("a_where=b", Equals("a_where", "b")),
        ("a_colour=b", Equals("a_colour", "b")),
        ("_from=1", Equals("_from", 1)),
        ("a_=1", Equals("a_", 1)),
        ("where=a IS NULL", Missing("a")),
        ("where=TRUE", TRUE),
        ("a=1&where=b OR c", (col("a") == 1) & (col("b").is_true() | col("c").is_true())),
        ("a_not=1&a_not=2", (col("a") != 1) & (col("a") != 2)),
        ("a_nearer=1,2,3", col("a").distance(1, 2) < 3),
    ],
)
def test_queries(text: str, node: Filter) -> None:
    assert parse_query(text) == node
    assert parse_query(to_query(node)) == node


def test_two_comparisons_are_not_one_range_in_a_query() -> None:
    node = (col("a") >= 1) & (col("a") <= 2)
    assert to_query(node).startswith("where=")
    assert parse_query(to_query(node)) == node


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a AND a", ["a = TRUE"]),
        ("a OR a", ["a = TRUE"]),
        ("a OR (a AND b)", ["a = TRUE"]),
        ("a AND NOT a", []),
        ("x IS NULL AND x = 1", []),
        ("x IS NULL AND x IS NOT NULL", []),
        ("x IS NULL AND NOT x = 1", ["x IS NULL"]),
        ("x IS NOT NULL AND x = 1", ["x = 1"]),
        ("NOT x IS NULL", ["x IS NOT NULL"]),
        ("x > 5 AND x < 3", ["x > 5 AND x < 3"]),
        ("x = 1 AND x = 2", ["x = 1 AND x = 2"]),
        ("TRUE", ["TRUE"]),
        ("FALSE", []),
        ("a OR TRUE", ["TRUE"]),
        ("a AND FALSE", []),
        ("NOT (a AND (b OR NOT c))", ["NOT (a = TRUE)", "NOT (b = TRUE) AND c = TRUE"]),
    ],
)
def test_normal_form(text: str, kept: list[str]) -> None:
    conjunctions = normal_form(parse_sql(text))
    assert sorted(to_sql(to_filter([one])).replace("(NOT (b = TRUE))", "NOT (b = TRUE)")
                  for one in conjunctions) == sorted(kept)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x > 5 AND x < 3", []),
        ("x >= 3 AND x <= 3", ["x BETWEEN 3 AND 3"]),
        ("x >= 3 AND x < 3", []),
        ("x > 1 AND x <= 5 AND x < 9", ["in_range(x, 1, 5, '(]')"]),
        ("x = 1 AND x = 2", []),
        ("x = 1 AND x = '1'", ["x = 1 AND x = '1'"]),
        ("x > 5 AND x > TIMESTAMP '2026-01-01'",
         ["x > 5 AND x > TIMESTAMP '2026-01-01T00:00:00Z'"]),
        ("x >= 9007199254740993 AND x <= 9007199254740992.0", []),
        ("NOT x > 5 AND NOT x < 3", ["(NOT (x > 5)) AND (NOT (x < 3))"]),
    ],
)  # fmt: skip
def test_normal_form_of_single_values(text: str, kept: list[str]) -> None:
    conjunctions = normal_form(parse_sql(text), is_single=lambda attribute: True)
    assert [to_sql(to_filter([one])) for one in conjunctions] == kept


def test_literals_are_filters() -> None:
    assert Literal(Missing("a"), negated=True).to_filter() == ~Missing("a")
    assert to_filter([]) == FALSE
    assert to_filter([()]) == TRUE


@pytest.mark.parametrize(
    ("text", "event", "reason"),
    [
        ("price < 3300", {"price": 3400}, "price = 3400 is not < 3300"),
        ("price < 3300", {"price": 3200}, "price = 3200 is < 3300"),
        ("brand = 'a'", {}, "no attribute 'brand'"),
        ("brand IS NULL", {}, "no attribute 'brand', as asked"),
        ("brand IS NULL", {"brand": 1}, "brand is present, it is {1}"),
        ("x = 1", {"x": [2, 3]}, "none of x = {2, 3} is = 1"),
        ("x = 1", {"x": [2, 1]}, "x = 1 is = 1"),
        ("x BETWEEN 1 AND 2", {"x": 3}, "x = 3 is not in [1, 2]"),
        ("x IS NOT NULL", {"x": False}, "x = FALSE is present"),
        ("distance(p, 0, 0) < 5", {"p": Point(0, 1)},
         "p = point(0.0, 1.0) is 111195.1 m away, not < 5.0 m from (0.0, 0.0)"),
        ("distance(p, 0, 0) < 5", {"p": [Point(1, 1), Point(0.0005, 0)]},
         "none of p = {point(1.0, 1.0), point(0.0005, 0.0)} is < 5.0 m from (0.0, 0.0)"),
        ("x = 'IS NOT NULL'", {"x": "IS NOT NULL"}, "x = 'IS NOT NULL' is = 'IS NOT NULL'"),
        ("x LIKE 'IS NOT NULL%'", {"x": 1}, "x = 1 is not LIKE 'IS NOT NULL%'"),
        ("x IN ('IS NOT NULL', 'a')", {"x": 1}, "x = 1 is not IN ('IS NOT NULL', 'a')"),
        ("box(within, 0, 0, 1, 1)", {"within": 1},
         'within = 1 is not in box(within, 0.0, 0.0, 1.0, 1.0)'),
        ("TRUE", {}, "TRUE accepts everything"),
        ("FALSE", {}, "FALSE accepts nothing"),
        ("a OR b", {}, "none of 2 holds"),
        ("a OR b", {"a": True}, "1 of 2 hold"),
    ],
)  # fmt: skip
def test_reasons(text: str, event: dict[str, Any], reason: str) -> None:
    explanation = explain(parse_sql(text), event)
    assert explanation.reason == reason
    assert explanation.held is evaluate(parse_sql(text), event)


@pytest.mark.parametrize(
    ("text", "metres", "shown"),
    [
        ("distance(p, 0, 0) <= 5", 5.04, "5.0400036"),
        ("distance(p, 0, 0) < 5", 4.96, "4.9600035"),
        ("distance(p, 0, 0) < 5", 4.94, "4.9 m"),
        ("distance(p, 0, 0) <= 5", 4.96, "5.0 m"),
    ],
)
def test_a_distance_is_not_rounded_over_what_is_asked(text: str, metres: float, shown: str) -> None:
    reason = explain(parse_sql(text), {"p": Point(metres / 111195, 0)}).reason
    assert f" is {shown}" in reason


def test_parse_filter_takes_every_spelling() -> None:
    node = col("price") < 3300
    assert parse_filter(node) is node
    assert parse_filter("price < 3300") == node
    assert parse_filter(' {"attribute": "price", "op": "<", "value": 3300}') == node
    assert parse_filter({"attribute": "price", "op": "<", "value": 3300}) == node
    assert parse_filter("price_below=3300", spelling="query") == node
    assert parse_filter(True) == TRUE
    with pytest.raises(FilterError):
        parse_filter("price_below=3300&x=1")
