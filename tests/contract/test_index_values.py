"""Events that are not plain, and filters that look alike to the engine but are not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tamis import Index, Point, Range, Subscription, evaluate, parse_filter
from tamis.errors import InvalidEvent, InvalidSubscription

BELOW_5 = math.nextafter(5.0, -math.inf)
FAR = 2**53


def matched(event: dict[str, Any], *filters: str) -> list[str]:
    """Which filters an index of them all says match; the same as the oracle, or it fails."""
    index = Index()
    for one in filters:
        index.add(Subscription(one, one))
    found = sorted(index.match(event))
    assert found == sorted(one for one in filters if evaluate(parse_filter(one), event))
    return found


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x = 'a' AND x LIKE 'b%'", ["a", "bc"]),
        ("x LIKE 'a%' AND x LIKE 'bc%'", ["a", "bc"]),
        ("x AND x = 'a'", [True, "a"]),
        ("x = 'a' AND box(x, 0, 0, 1, 1)", ["a", Point(0.5, 0.5)]),
        ("x = 'a' AND x = 'b'", ["a", "b"]),
        ("x >= 10 AND x <= 20", [5, 25]),
        ("x > 5 AND x < 3", [2, 6]),
        ("x = 1 AND x = 2", [1, 2]),
        ("box(x, 0, 0, 1, 1) AND box(x, 5, 5, 6, 6)", [Point(0, 0), Point(5, 5)]),
        ("x = 5 AND x = 'a'", ["5", "a"]),
    ],
)
def test_several_values_may_satisfy_several_predicates(text: str, values: list[Any]) -> None:
    assert matched({"x": values}, text) == [text]
    assert matched({"x": values[:1]}, text) == []


def test_between_needs_one_value_where_two_comparisons_do_not() -> None:
    two, one = "x >= 10 AND x <= 20", "x BETWEEN 10 AND 20"
    assert matched({"x": [5, 25]}, two, one) == [two]
    assert matched({"x": 15}, two, one) == [two, one]


def test_an_equality_and_a_range_of_one_point_are_not_shared() -> None:
    assert matched({"x": Range(3, 3)}, "x = 3", "x BETWEEN 3 AND 3") == ["x BETWEEN 3 AND 3"]
    assert matched({"x": Range(3, 3)}, "NOT x = 3", "NOT x BETWEEN 3 AND 3") == ["NOT x = 3"]


def test_open_and_closed_neighbours_are_not_shared() -> None:
    between = Range(BELOW_5, 5.0, "()")
    below, up_to = "x < 5", f"x <= {BELOW_5!r}"
    assert matched({"x": between}, below, up_to) == [below]
    assert matched({"x": between}, f"NOT {up_to}", f"NOT {below}") == [f"NOT {up_to}"]


@pytest.mark.parametrize("number", [FAR, FAR + 1, -FAR - 1, 2**63 - 1, float(FAR), math.inf])
def test_numbers_beyond_float64_are_exact(number: float) -> None:
    filters = [f"x {op} {n}" for op in ("<", "<=", "=", "!=", ">=", ">") for n in (FAR, FAR + 1)]
    matched({"x": number}, *filters)
    matched({"x": str(number) if isinstance(number, int) else number}, *filters)


@pytest.mark.parametrize(
    "batch",
    [
        pa.table({"car": [{"mark": "FORD"}, {"mark": "BMW"}]}),
        {"car": pa.array([{"mark": "FORD"}, {"mark": "BMW"}])},
        {"car": np.array([{"mark": "FORD"}, {"mark": "BMW"}], dtype=object)},
        pa.table({"car.mark": ["FORD", "BMW"]}),
        pa.table({"car.mark": pa.array(["FORD", "BMW"]).dictionary_encode()}),
        [{"car": {"mark": "FORD"}}, {"car": {"mark": "BMW"}}],
    ],
)
def test_nested_attributes_of_a_batch_are_found(batch: Any) -> None:
    index = Index()
    index.add(Subscription("s", "car.mark = 'FORD'"))
    assert list(index.match_batch(batch)) == [["s"], []]


def test_many_with_the_same_filter_share_one_slot() -> None:
    index = Index()
    n = 20_000
    same = parse_filter("x < 5 AND kind = 'a'")
    index.add_many([Subscription(f"s{i}", same, priority=i % 10) for i in range(n)])
    stats = index.stats()
    assert (stats["n_slots"], stats["n_shared"]) == (1, n - 1)
    found = index.match({"x": 1, "kind": "a"})
    assert len(found) == n
    assert [int(id[1:]) % 10 for id in found] == sorted(i % 10 for i in range(n))
    index.remove("s0")
    assert len(index.match({"x": 1, "kind": "a"})) == n - 1


def test_the_head_is_sealed_and_blocks_are_merged() -> None:
    index = Index()
    filters = [f"x < {n} AND kind = 'k{n % 7}'" for n in range(6_000)]
    index.add_many([Subscription(f"m{n}", one) for n, one in enumerate(filters[:3_000])])
    for n, one in enumerate(filters[3_000:], start=3_000):
        index.add(Subscription(f"m{n}", one))
    index._engine.wait_for_merging()
    stats = index.stats()
    assert stats["n_head_slots"] < 2_000
    assert sum(block["n_slots"] for block in stats["blocks"]) >= 4_000
    assert len(stats["blocks"]) <= 4
    event = {"x": 2_500, "kind": "k3"}
    assert set(index.match(event)) == {f"m{n}" for n in range(2_501, 6_000) if n % 7 == 3}


def test_what_was_saved_is_found_again_whatever_the_head_held(tmp_path: Path) -> None:
    index = Index()
    index.add_many([Subscription(f"s{n}", f"NOT (x = {n} AND t = 'b')") for n in range(3_000)])
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index")
    assert len(opened.match({"x": -1})) == len(index.match({"x": -1})) == 3_000
    opened.remove("s7")
    assert len(opened.match({"x": -1})) == 2_999


def test_masked_and_flat_arrays() -> None:
    index = Index()
    index.add(Subscription("s", "x < 5"))
    masked = np.ma.masked_array([1.0, 1.0], mask=[True, False])
    assert list(index.match_batch({"x": masked})) == [[], ["s"]]
    with pytest.raises(InvalidEvent, match="an array"):
        index.match_batch({"x": np.array(1.0)})


def test_integer_boxes_beyond_float64_are_refused() -> None:
    with pytest.raises(InvalidSubscription, match="not exact"):
        Index.from_boxes(["x"], [[FAR + 1]], [[FAR + 1]])


@pytest.mark.parametrize(("n_pairs", "n_values"), [(10, 64), (6, 400)])
def test_a_long_list_beside_disjunctions_is_not_multiplied_out(n_pairs: int, n_values: int) -> None:
    pairs = [f"(a{i} OR b{i})" for i in range(n_pairs)]
    text = " AND ".join([f"x IN ({', '.join(map(str, range(n_values)))})", *pairs])
    index = Index()
    index.add(Subscription("s", text))
    assert index.stats()["n_slots"] == 2**n_pairs
    event = {f"{'ab'[i % 2]}{i}": True for i in range(n_pairs)}
    for x in (0, n_values - 1, n_values, "3", 0.5, [n_values, 1], None):
        given = {**event, "x": x}
        assert index.match(given) == (["s"] if evaluate(parse_filter(text), given) else [])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([10**18] * 10).cast(pa.timestamp("us")),
        pa.array([0] * 10).cast(pa.timestamp("us", "Mars/Base")),
        pa.array([10**8] * 10, pa.int32()).cast(pa.date32()),
        pa.array([pa.MonthDayNano([1, 2, 3])] * 10),
        pd.DataFrame({"x": [1, "a"] * 5}),
    ],
    ids=lambda column: str(getattr(column, "type", "frame")),
)
def test_a_column_that_cannot_be_read_is_refused(column: Any) -> None:
    index = Index()
    index.add(Subscription("s", "x = 3"))
    is_frame = isinstance(column, pd.DataFrame)
    for batch in [column] if is_frame else [{"x": column}, pa.table({"x": column})]:
        with pytest.raises(InvalidEvent):
            index.match_batch(batch)


def test_a_point_in_an_attribute_that_is_only_asked_for_points() -> None:
    """`!=` needs no latitude, so there is no column for it."""
    index = Index()
    index.add(Subscription("point", "where_ != point(0, 0)"))
    index.add(Subscription("present", "a IS NOT NULL"))
    event = {"a": 1, "where_": Point(4.5, 9.0)}
    assert sorted(index.match(event)) == ["point", "present"]


def test_kernels_decide_about_several_texts_and_booleans(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        "tags = 'new' AND tags = 'é'", "tags != 'new'", "NOT tags IN ('new', 'sale')",
        "NOT tags != 'new'", "tags = 'new' AND NOT used = TRUE AND used != TRUE",
        "tags = 'é' AND within(place, 'POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))')",
        "NOT tags = 'sale' AND distance(place, 0, 0) < 111196 OR tags = ''",
    ]  # fmt: skip
    nodes = {text: parse_filter(text) for text in texts}
    index = Index()
    index.add_many([Subscription(text, node) for text, node in nodes.items()])

    def refuse(_: object) -> None:
        raise AssertionError("a filter is asked in Python")

    monkeypatch.setattr("tamis.index.asking.check_of", refuse)
    for tags in (["new", "é"], ["", "new"], ["sale", "é"], ["new", "new"], ["other", "é", ""]):
        for used in (True, False, [True, False]):
            for place in (Point(1, 1), Point(0.5, 0.5), Point(5, 5)):
                event = {"tags": tags, "used": used, "place": place}
                expected = {text for text, node in nodes.items() if evaluate(node, event)}
                assert set(index.match(event)) == expected, event
