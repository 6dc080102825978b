"""The filter language on random filters and events: spellings, normal form, oracle, covers."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import FilterTooComplex
from tamis.language import (
    FALSE,
    TRUE,
    Explanation,
    Filter,
    col,
    evaluate,
    explain,
    from_json,
    normal_form,
    parse_query,
    parse_sql,
    to_json,
    to_query,
    to_sql,
)
from tamis.language.json import parse_json_text
from tamis.language.normal import to_filter
from tamis.language.tree import MAX_DEPTH, Equals, InRange, Missing, Not, Present, all_of, any_of
from tamis.values import (
    Point,
    Polygon,
    Range,
    as_attributes,
    covers,
    value_from_json,
    value_to_json,
)
from tests.property import strategies as some

IN_SCOPE = {
    "col": col, "Point": Point, "Polygon": Polygon, "TRUE": TRUE, "FALSE": FALSE,
    "datetime": datetime,
}  # fmt: skip


@settings(max_examples=150)
@given(some.filters())
def test_sql_reads_back(node: Filter) -> None:
    assert parse_sql(to_sql(node)) == node


@settings(max_examples=150)
@given(some.filters())
def test_json_reads_back(node: Filter) -> None:
    made = to_json(node)
    text = json.dumps(made, allow_nan=False)
    assert from_json(made) == node
    assert from_json(json.loads(text)) == node
    assert parse_json_text(text) == node


@settings(max_examples=100)
@given(some.filters())
def test_query_reads_back(node: Filter) -> None:
    assert parse_query(to_query(node)) == node


@settings(max_examples=200)
@given(st.lists(some.predicates(), min_size=2, max_size=4))
def test_conjunctions_read_back_from_query(parts: list[Filter]) -> None:
    node = all_of(parts)
    assert parse_query(to_query(node)) == node


@settings(max_examples=150)
@given(some.filters())
def test_python_reads_back(node: Filter) -> None:
    assert eval(repr(node), IN_SCOPE) == node


@given(some.filters())
def test_equal_filters_have_equal_hashes(node: Filter) -> None:
    assert hash(parse_sql(to_sql(node))) == hash(node)


@settings(max_examples=250)
@given(some.filters(), some.events())
def test_normal_form_means_the_same(node: Filter, event: dict[str, Any]) -> None:
    assert evaluate(to_filter(normal_form(node)), event) is evaluate(node, event)


@settings(max_examples=250)
@given(some.filters(), some.single_events())
def test_normal_form_of_single_values_means_the_same(node: Filter, event: dict[str, Any]) -> None:
    conjunctions = normal_form(node, is_single=lambda attribute: True)
    assert evaluate(to_filter(conjunctions), event) is evaluate(node, event)


ABOUT_X = st.lists(
    some.ranges().map(lambda r: InRange("x", r))
    | some.predicates().map(lambda p: replace(p, attribute="x")),
    min_size=2,
    max_size=4,
)
SCALARS = some.scalars()


@settings(max_examples=200)
@given(st.data())
def test_normal_form_of_intervals_on_one_attribute(data: st.DataObject) -> None:
    """Two to four predicates on ``x`` with one value: where merging intervals can go wrong."""
    node = all_of(data.draw(ABOUT_X))
    event = {"x": data.draw(SCALARS)}
    merged = to_filter(normal_form(node, is_single=lambda attribute: True))
    assert evaluate(merged, event) is evaluate(node, event)
    assert evaluate(to_filter(normal_form(node)), event) is evaluate(node, event)


@settings(max_examples=200)
@given(some.filters(), some.events())
def test_not_is_the_complement(node: Filter, event: dict[str, Any]) -> None:
    assert evaluate(~node, event) is not evaluate(node, event)


@settings(max_examples=150)
@given(some.filters(), some.events())
def test_explanation_agrees_at_every_node(node: Filter, event: dict[str, Any]) -> None:
    def check(explanation: Explanation) -> None:
        assert explanation.held is evaluate(explanation.filter, event)
        assert explanation.reason
        for part in explanation.parts:
            check(part)

    explanation = explain(node, event)
    check(explanation)
    assert json.loads(json.dumps(explanation.to_json()))["held"] is explanation.held
    assert str(explanation)


@settings(max_examples=150)
@given(some.names(), some.events())
def test_missing_and_present_are_opposites(name: str, event: dict[str, Any]) -> None:
    assert evaluate(Missing(name), event) is not evaluate(Present(name), event)
    assert evaluate(Present(name), event) is (name in as_attributes(event))


@settings(max_examples=150)
@given(some.events())
def test_several_values_are_the_union_of_each(event: dict[str, Any]) -> None:
    """A predicate holds for an attribute exactly if it holds for one of its values alone."""
    for name, held in as_attributes(event).items():
        for literal in (5, "5", True, some.POINTS[0], some.TIMESTAMPS[0]):
            whole = evaluate(Equals(name, literal), {name: list(held)})
            assert whole is any(evaluate(Equals(name, literal), {name: one}) for one in held)


@settings(max_examples=150)
@given(some.values())
def test_values_read_back_from_json(value: Any) -> None:
    made = value_from_json(json.loads(json.dumps(value_to_json(value), allow_nan=False)))
    assert made == value
    assert type(made) is type(value)


# -- the five rules of the paper, against definitions written out here


@given(some.texts(), some.texts())
def test_fixed_covers_the_same_fixed(a: str, b: str) -> None:
    assert covers(a, b) is (a == b)


@settings(max_examples=150)
@given(some.ranges(), some.numbers())
def test_range_covers_a_number_inside(r: Range, number: float) -> None:
    is_inside = not r.is_of_timestamps
    if is_inside and r.low is not None:
        is_inside = number > r.low or (number == r.low and r.ends[0] == "[")
    if is_inside and r.high is not None:
        is_inside = number < r.high or (number == r.high and r.ends[1] == "]")
    assert covers(r, number) is is_inside


@settings(max_examples=150)
@given(some.ranges(allow_empty=False), some.ranges(allow_empty=False))
def test_range_covers_a_range_it_intersects(a: Range, b: Range) -> None:
    """Non-empty intervals intersect unless one lies wholly below the other."""
    if a.is_of_timestamps != b.is_of_timestamps:
        assert not covers(a, b)
        return
    assert covers(a, b) is not (_lies_below(a, b) or _lies_below(b, a))
    assert covers(a, b) is covers(b, a)


def _lies_below(a: Range, b: Range) -> bool:
    if a.high is None or b.low is None:
        return False
    touches = a.high == b.low and a.ends[1] == "]" and b.ends[0] == "["
    return a.high <= b.low and not touches


@given(st.sampled_from(some.POINTS), st.sampled_from(some.POINTS))
def test_vertex_covers_the_same_vertex(a: Point, b: Point) -> None:
    assert covers(a, b) is ((a.lon, a.lat) == (b.lon, b.lat))


@settings(max_examples=200)
@given(st.integers(-1, 10), st.integers(-1, 10))
def test_polygon_covers_the_vertices_within(x: int, y: int) -> None:
    square, holed = some.POLYGONS[0], some.POLYGONS[1]
    assert covers(square, Point(x, y)) is (0 <= x <= 9 and 0 <= y <= 9)
    in_hole = 3 < x < 6 and 3 < y < 6
    assert covers(holed, Point(x, y)) is (0 <= x <= 9 and 0 <= y <= 9 and not in_hole)


@given(st.sampled_from(some.POLYGONS), some.scalars())
def test_polygon_covers_nothing_but_points(polygon: Polygon, value: Any) -> None:
    if not isinstance(value, Point):
        assert not covers(polygon, value)


# -- the cap


def exponential(n: int, *more: Filter) -> Filter:
    pairs = [any_of((Equals(f"a{i}", 1), Equals(f"b{i}", 1))) for i in range(n)]
    return all_of((*pairs, *more))


def test_cap_names_size_and_cap_before_expanding() -> None:
    start = time.thread_time()
    with pytest.raises(FilterTooComplex, match=r"1,073,741,824 conjunctions .* 1,024") as caught:
        normal_form(exponential(30))
    assert (caught.value.size, caught.value.cap) == (2**30, 1024)
    assert time.thread_time() - start < 1


def test_cap_of_a_size_too_long_to_write() -> None:
    with pytest.raises(FilterTooComplex, match=r"about 10\^") as caught:
        normal_form(exponential(20_000))
    assert caught.value.size == 2**20_000


def test_false_beside_an_exponential_filter_is_not_expanded() -> None:
    start = time.thread_time()
    assert normal_form(exponential(40, FALSE)) == ()
    assert normal_form(any_of((exponential(40, FALSE), Present("x")))) != ()
    assert time.thread_time() - start < 1


@pytest.mark.parametrize("n", range(1, 11))
def test_cap_is_exact(n: int) -> None:
    node = exponential(n) if n > 1 else any_of((Equals("a", 1), Equals("b", 1)))
    assert len(normal_form(node, cap=2**n)) == 2**n
    with pytest.raises(FilterTooComplex):
        normal_form(node, cap=2**n - 1)


def test_cap_counts_the_predicates_of_the_conjunctions_too() -> None:
    plain = [Equals(f"c{i}", 1) for i in range(1_000)]
    at_most = normal_form(exponential(10, *plain[:22]))
    assert (len(at_most), sum(map(len, at_most))) == (1_024, 32_768)
    start = time.thread_time()
    for n in (23, 1_000):
        with pytest.raises(FilterTooComplex, match=r"predicates .* 32,768") as caught:
            normal_form(exponential(10, *plain[:n]))
        assert (caught.value.size, caught.value.cap) == (1_024 * (10 + n), 32_768)
    assert time.thread_time() - start < 1
    assert len(normal_form(exponential(10, *plain[:23]), cap=1_100)) == 1_024


def test_one_conjunction_may_be_of_any_length() -> None:
    twice = [Equals(f"c{i}", value) for i in range(17_000) for value in (1, 2)]
    (conjunction,) = normal_form(all_of(twice))
    assert len(conjunction) == 34_000


def test_deepest_filter_reads_back_in_every_spelling() -> None:
    node: Filter = Equals("x", Point(-1, -2))
    for level in range(MAX_DEPTH):
        node = (
            Not(node)
            if level % 3 == 0
            else (all_of if level % 3 == 1 else any_of)((Present("a"), node))
        )
    assert node.depth == MAX_DEPTH
    assert parse_sql(to_sql(node)) == node
    assert from_json(to_json(node)) == node
    assert parse_query(to_query(node)) == node
    assert eval(repr(node), IN_SCOPE) == node
    with pytest.raises(FilterTooComplex):
        Not(node)
