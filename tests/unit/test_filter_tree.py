"""The filter tree: the examples of its paper, its shape, and descents beside updates."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from tamis.algorithms.filter_tree import FilterTree, build_tree
from tamis.algorithms.filters import Filters
from tamis.bench.mixed import generate_events, generate_subscriptions
from tamis.bench.workloads import make_w3
from tamis.errors import FilterTooComplex, InvalidSchema, UnknownSubscription
from tamis.language import evaluate, parse_filter, parse_query
from tamis.matching import Attribute, Table
from tamis.values import Point, Range

NAMES = [Attribute(f"name {number}", is_text=True) for number in (1, 2, 3)]
# Figure 2: A1 to A6
FIGURE_2 = [
    {"name 1": "A", "name 2": "D"},
    {"name 1": "A", "name 2": "E"},
    {"name 1": "A", "name 3": "F"},
    {"name 1": "B", "name 3": "F"},
    {"name 1": "A"},
    {"name 1": "C"},
]
EVENT = {"name 1": "A", "name 2": "D", "name 3": "F"}
CAR = [
    Attribute("region", is_text=True),
    Attribute("mark", is_text=True),
    Attribute("model", is_text=True),
    Attribute("year", 1950, 2050),
]


def tree_of_figure_2(n_names: int | None = None) -> FilterTree:
    tree = FilterTree(NAMES, n_names)
    entries = [tree._reader.subscription(one) for one in FIGURE_2]
    tree.add_many(
        Table.from_constraints(
            np.cumsum([0, *(len(one.attribute) for one in entries)]),
            np.concatenate([one.attribute for one in entries]),
            np.concatenate([one.low for one in entries]),
            np.concatenate([one.high for one in entries]),
            n_attributes=3,
        )
    )
    return tree


@pytest.mark.parametrize("n_names", [None, 0, 1, 2, 3])
def test_the_event_of_section_2_4_is_accepted_by_a1_a3_and_a5(n_names: int | None) -> None:
    assert tree_of_figure_2(n_names).match(EVENT).tolist() == [0, 2, 4]


def test_figure_2_is_merged_as_drawn() -> None:
    (planted,) = tree_of_figure_2().forest.trees
    nodes, groups = planted.tree.nodes, planted.tree.groups
    # The root, A, B and C below it; D, E and F below A. F below B is a path of one filter.
    assert len(nodes.low) == 7
    assert groups.attribute.tolist() == [0, 1, 2]
    assert (groups.last - groups.first).tolist() == [3, 2, 1]


def test_a_candidates_tree_has_only_the_most_frequent_names() -> None:
    (planted,) = tree_of_figure_2(1).forest.trees
    assert len(planted.tree.nodes.low) == 4
    assert planted.tree.groups.attribute.tolist() == [0]


def test_names_are_ordered_by_frequency() -> None:
    tree = FilterTree(["rare", "common"])
    tree.add_many(Table.from_boxes([[0.1, 0.3], [np.nan, 0.3]], [[0.2, 0.4], [np.nan, 0.4]]))
    (planted,) = tree.forest.trees
    assert planted.tree.groups.attribute.tolist() == [1, 0]


def test_equal_paths_are_one() -> None:
    tree = FilterTree(["x", "y"])
    tree.add_many(Table.from_boxes([[0.1, 0.3]] * 50, [[0.2, 0.4]] * 50))
    (planted,) = tree.forest.trees
    assert len(planted.tree.nodes.low) == 3
    assert tree.match([0.1, 0.4]).tolist() == list(range(50))


def test_trees_are_built_together_as_they_grow() -> None:
    tree = FilterTree(["x"])
    for number in range(100):
        tree.add({"x": number / 100})
    sizes = [one.n_held for one in tree.forest.trees]
    assert sum(sizes) == 100
    assert len(sizes) <= 7
    assert tree.match([0.42]).tolist() == [42]


def test_two_phases_find_what_one_finds() -> None:
    workload = make_w3(2_000, m=12, k=5, n_events=50)
    table = Table.from_boxes(workload.low, workload.high)
    trees = [FilterTree(workload.attributes, n_names) for n_names in (None, 0, 2, 5)]
    for tree in trees:
        tree.add_many(table)
    for event in workload.values:
        first, *others = (tree.match(event).tolist() for tree in trees)
        assert all(other == first for other in others)


def test_a_forest_stays_as_it_was() -> None:
    workload = make_w3(600, m=8, k=3, n_events=20)
    tree = FilterTree(workload.attributes)
    tree.add_many(Table.from_boxes(workload.low[:300], workload.high[:300]))
    before = tree.forest
    expected = [before.match(event).tolist() for event in workload.values]
    tree.remove_many(list(range(100)))
    tree.add_many(Table.from_boxes(workload.low[300:], workload.high[300:]))
    assert [before.match(event).tolist() for event in workload.values] == expected
    assert [tree.match(event).tolist() for event in workload.values] != expected


def test_descents_run_while_the_tree_is_updated() -> None:
    workload = make_w3(400, m=6, k=2, n_events=10)
    tree = FilterTree(workload.attributes)
    always = tree.add_many(Table.from_boxes(workload.low, workload.high))
    expected = [tree.match(event).tolist() for event in workload.values]
    wrong, ended = [], threading.Event()

    def read() -> None:
        while not ended.is_set():
            forest = tree.forest
            for event, ids in zip(workload.values, expected, strict=True):
                found = forest.match(event)
                if found[found < len(always)].tolist() != ids:
                    wrong.append(found)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(60):
        others = tree.add_many(Table.from_boxes(workload.low[:50], workload.high[:50]))
        tree.remove_many(others)
    ended.set()
    reader.join()
    assert not wrong


def test_a_negative_number_of_names_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="n_names=-1"):
        FilterTree(["x"], -1)


def test_build_tree_takes_any_slots() -> None:
    tree = FilterTree(["x"])
    tree.add_many(Table.from_boxes([[0.1], [0.2], [0.3]], [[0.5], [0.5], [0.5]]))
    made = build_tree(tree.stored, np.array([2, 0], np.int32), 1, 1)
    assert made.slot.tolist() == [0, 2]


# -- arbitrary filters


@pytest.mark.parametrize("n_names", [None, 0, 2])
def test_the_car_ads_of_section_2_7(n_names: int | None) -> None:
    filters = Filters(CAR, n_names)
    f1 = filters.add(parse_query("mark=FORD&model=FOCUS&model=MONDEO&year=2016"))
    f2 = filters.add(parse_query("year_from=2014&year_to=2016"))
    f3 = filters.add(parse_query("mark=FORD&model=MONDEO"))
    assert len(filters.tree) == 4  # F1 is two paths
    assert filters.match({"mark": "FORD", "model": "MONDEO", "year": 2016}) == [f1, f2, f3]
    assert filters.match({"mark": "FORD", "model": "FOCUS", "year": 2015}) == [f2]
    assert filters.match({"mark": "OPEL", "model": "MONDEO"}) == []
    filters.remove(f1)
    assert filters.match({"mark": "FORD", "model": "MONDEO", "year": 2016}) == [f2, f3]
    with pytest.raises(UnknownSubscription):
        filters.remove(f1)


@pytest.mark.parametrize(
    "text",
    [
        "price < 10 OR NOT brand = 'FORD'",
        "price != 3 AND price BETWEEN 1 AND 5",
        "price > 5 AND price < 3",
        "price IS NULL",
        "price IS NOT NULL AND brand IS NOT NULL",
        "brand != 'FORD'",
        "brand IN ('FORD', 'OPEL') AND (price < 2 OR price > 4)",
        "brand = 3 OR price = 'cheap'",
        "price = 9007199254740993",
        "used = TRUE AND price <= 4",
        "NOT (price < 4 AND brand = 'FORD')",
    ],
)
def test_any_filter_means_what_it_means(text: str) -> None:
    filters = Filters([Attribute("brand", is_text=True), Attribute("price", 0, 10)])
    node = parse_filter(text)
    filters.add_many([node, parse_filter("price >= 0")])
    values = [None, 1, 3.0, 4, 5.5, 2**53, 2**53 + 1, "cheap", "3", True, [1, 6], Range(2, 4)]
    for price in values:
        for brand in (None, "FORD", "OPEL", 3, ["FORD", "SEAT"]):
            event = {"price": price, "brand": brand, "used": True}
            event = {name: held for name, held in event.items() if held is not None}
            assert (0 in filters.match(event)) == evaluate(node, event), event


def test_mixed_searches_are_matched_exactly_in_one_phase_and_in_two() -> None:
    searches = [one.condition for one in generate_subscriptions(400)]
    texts = [Attribute(name, is_text=True) for name in ("mark", "model", "region", "seller")]
    numbers = [Attribute("price", 0, 200_000), Attribute("year", 1990, 2030), "area", "rooms"]
    for n_names in (None, 3):
        filters = Filters([*texts, *numbers], n_names)
        ids = filters.add_many(searches)
        for id in ids[::7]:
            filters.remove(id)
        for ad in generate_events(20):
            kept = (id for id in ids if id % 7)
            assert filters.match(ad) == [id for id in kept if evaluate(searches[id], ad)]


SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
PLACES = [Point(1, 1), Point(4, 2), Point(4, 4), Point(5, 5), Point(0, 1), Point(200, 1)]
# By an attribute outside the tree: a value each, several, and one of another kind.
OUTSIDE = {
    "place": [*PLACES, [Point(5, 5), Point(1, 1)], [Point(5, 1), Point(1, 5)], "here"],
    "tags": ["new", "Größe", "e\u0301", ["new", "é"], ["sale", "new"], ["", "sale"], 5, [5, "new"]],
    "used": [True, False, [True, False], 1, "true"],
    "age": [2**53, 2**53 + 1, 4.5, "4.5", math.nan, math.inf, [1, 9], Range(3, 4), True],
}
BEYOND_A_PATH = [
    ("place", f"within(place, '{SQUARE}')"),
    ("place", f"NOT within(place, '{SQUARE}')"),
    ("place", "distance(place, 0, 0) <= 157249.6"),
    ("place", "NOT distance(place, 0, 0) < 111196"),
    ("place", "box(place, 0, 0, 4, 4)"),
    ("place", "NOT box(place, 0, 0, 4, 4)"),
    ("place", "place = point(1, 1) OR place = point(5, 5)"),
    ("place", "place != point(1, 1)"),
    ("tags", "tags = 'new'"),
    ("tags", "tags = 'new' AND tags = 'é'"),
    ("tags", "tags != 'new'"),
    ("tags", "NOT tags != 'new'"),
    ("tags", "tags IN ('sale', 'é', 'Größe')"),
    ("tags", "tags NOT IN ('new', 'e\u0301')"),
    ("tags", "tags IN ('sale', 5)"),
    ("tags", "tags LIKE 'Grö%'"),
    ("tags", "tags LIKE '%' AND NOT tags LIKE 'ne%'"),
    ("tags", "tags IS NULL"),
    ("used", "used = TRUE"),
    ("used", "NOT used = TRUE"),
    ("used", "used IS NOT NULL AND used != FALSE"),
    ("age", "age = 9007199254740993"),
    ("age", "age > 9007199254740992"),
    ("age", "age < 5 AND age > 2"),
    ("age", "NOT age < 5"),
    ("age", "age IN (4.5, 9007199254740993)"),
]


@pytest.mark.parametrize("n_names", [None, 0])
@pytest.mark.parametrize(("name", "text"), BEYOND_A_PATH)
def test_what_a_path_cannot_hold_is_revised(name: str, text: str, n_names: int | None) -> None:
    filters = Filters([Attribute("mark", is_text=True), Attribute("price", 0, 10)], n_names)
    nodes = [parse_filter(one) for one in (text, f"mark = 'FORD' AND ({text})", "price < 5")]
    first = filters.add_many(nodes)
    for id in first:  # so that numbers of slots are given out again
        filters.remove(id)
    again = dict(zip(filters.add_many(nodes[::-1]), nodes[::-1], strict=True))
    for mark in (None, "FORD", "OPEL", ["OPEL", "FORD"]):
        for value in (None, *OUTSIDE[name]):
            event = {"mark": mark, name: value, "price": 3}
            assert filters.match(event) == [id for id in again if evaluate(again[id], event)], event


def test_kernels_decide_whatever_ads_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = [one.condition for one in generate_subscriptions(3_000)]
    filters = Filters([Attribute("mark", is_text=True), Attribute("price", 0, 200_000)])
    filters.add_many(searches)
    ads = generate_events(60)
    expected = [[id for id, one in enumerate(searches) if evaluate(one, ad)] for ad in ads]
    assert max(map(len, (ad.get("tags", ()) for ad in ads))) > 1

    def refuse(*_: object) -> bool:
        raise AssertionError("a filter is asked in Python")

    monkeypatch.setattr("tamis.algorithms.filters.accepts", refuse)
    assert [filters.match(ad) for ad in ads] == expected


def test_the_tests_of_removed_filters_are_left_behind() -> None:
    filters = Filters(["x"])
    kept = filters.add(parse_filter(f"x < 1 AND within(place, '{SQUARE}')"))
    size = filters.memory_bytes()
    for _ in range(3):
        for id in filters.add_many([parse_filter(f"NOT within(place, '{SQUARE}')")] * 5_000):
            filters.remove(id)
    assert filters.match({"x": 0.5, "place": Point(1, 1)}) == [kept]
    assert filters.memory_bytes() < size + 5_000 * 100


def test_a_normal_form_that_explodes_is_refused_and_nothing_is_saved() -> None:
    filters = Filters([f"a{number}" for number in range(12)])
    wide = " AND ".join(f"(a{number} = 1 OR a{number} = 2)" for number in range(12))
    with pytest.raises(FilterTooComplex):
        filters.add_many([parse_filter("a1 = 1"), parse_filter(wide)])
    assert len(filters) == len(filters.tree) == 0
