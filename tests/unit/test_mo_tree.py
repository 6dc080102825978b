"""MO-Tree: the paper's worked examples, its cells, the choice of attributes, lazy deletion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.algorithms import make
from tamis.algorithms.kernels.mo_tree import (
    Layers,
    intersect,
    interval_cell,
    place_events,
    place_subscriptions,
    stab,
)
from tamis.algorithms.mo_partition import best_partition, best_widths, partition_of
from tamis.algorithms.mo_places import place_of_text
from tamis.errors import InvalidSchema
from tamis.kernels.constraints import Stored
from tamis.kernels.places import Places
from tamis.matching import Attribute, NotEqual, Table
from tamis.values import Range

# -- the widths of cells (section 5)


def intercepted(widths: Any) -> float:
    """The sum of gamma_i, by the parabolas of section 5.3."""
    n = len(widths)
    total = 0.0
    for i, width in enumerate(widths, 1):
        cells, t = n - i + 1, i / n
        widest = (t * (cells - 1) + 1) / cells
        x = np.linspace((i - 1) / n, t, 2_001)
        full = np.trapezoid(2 * (1 - x), x)
        least = np.trapezoid(np.minimum(cells * (t - x), 1 - x) * 2, x)
        bend = (full - least) / (widest - t) ** 2 if widest > t else 0
        total += full - bend * (width - widest) ** 2
    return total


def test_widths_of_the_worked_example() -> None:
    assert best_widths(4, 6) == pytest.approx([3 / 8, 11 / 18, 5 / 6, 1], abs=1e-12)


def test_without_a_limit_cells_are_as_wide_as_makes_sense() -> None:
    widest = [7 / 16, 2 / 3, 7 / 8, 1]
    assert best_widths(4, np.inf) == pytest.approx(widest)
    assert best_widths(4, 6.5) == pytest.approx(widest)  # the paper's setting is just that
    assert best_widths(4, 5) == pytest.approx([1 / 4, 1 / 2, 3 / 4, 1])
    assert best_widths(1, 1).tolist() == [1.0]


@pytest.mark.parametrize(("n_levels", "threshold"), [(4, 5.2), (4, 6), (5, 8), (7, 14.5)])
def test_no_other_widths_intercept_more(n_levels: int, threshold: float) -> None:
    cells = np.arange(n_levels, 0, -1)
    t = np.arange(1, n_levels + 1) / n_levels
    widest = (t * (cells - 1) + 1) / cells
    best = best_widths(n_levels, threshold)
    assert cells @ best == pytest.approx(threshold)
    assert ((t - 1e-12 <= best) & (best <= widest + 1e-12)).all()
    random = np.random.default_rng(0)
    for _ in range(300):  # shift width from one level to another, at the same threshold
        i, j = random.choice(n_levels - 1, 2, replace=False)
        other = best.copy()
        step = random.random() * 0.05
        other[i] += step / cells[i]
        other[j] -= step / cells[j]
        if other[i] <= widest[i] and other[j] >= t[j]:
            assert intercepted(other) <= intercepted(best) + 1e-9


def test_a_value_stabs_as_many_cells_as_the_threshold_says() -> None:
    for threshold in (5.5, 6.0, 6.5):
        cells = best_partition(4, threshold)
        values = np.random.default_rng(1).random(20_000)[:, None]
        n_stabbed = ((cells.begin <= values) & (values <= cells.end)).sum(axis=1)
        assert n_stabbed.mean() == pytest.approx(threshold, rel=0.01)


def test_parameters_that_make_no_tree_are_refused() -> None:
    for wrong in (
        {"threshold": 4.9},
        {"threshold": np.nan},
        {"n_levels": 0},
        {"n_indexed": 0},
        {"n_values": 0},
        {"n_letters": 0},
        {"indexed": ["z"]},
        {"indexed": ["x", "x"]},
        {"indexed": []},
    ):
        with pytest.raises(InvalidSchema, match=r"expected|need"):
            make("mo_tree", ["x", "y"], **wrong)
    with pytest.raises(InvalidSchema, match="1,000,000,000 buckets"):
        make("mo_tree", [f"a{m}" for m in range(20)], n_indexed=9)


# -- cells (section 4.3): Fig. 2 and Table 2, whose cells count from 1

FIG_2 = partition_of([7, 3, 1], [1 / 4, 1 / 2, 1])
LAYERS = Layers(np.array([0, 1]), *FIG_2, 8)
PLACES = Places(np.zeros(3), np.ones(3), np.full(3, -1), np.zeros((0, 0)))


def stabbed(event: list[float]) -> list[list[int]]:
    cells, n_found = np.zeros((2, 11), np.int32), np.zeros(2, np.int64)
    stab(LAYERS, PLACES, np.array(event), cells, n_found)
    return [(row[:n] + 1).tolist() for row, n in zip(cells, n_found, strict=True)]


def test_the_cells_of_fig_2() -> None:
    assert stabbed([0.3, np.nan, 0.5]) == [[2, 3, 8, 9, 11], [11]]
    asked = Stored(*(np.array([x]) for x in (0, 1, 0, 0.7, 0.9, 0)))
    cells, n_found = np.zeros((2, 9), np.int32), np.zeros(2, np.int64)
    intersect(LAYERS, PLACES, asked, cells, n_found)
    assert (cells[0, : n_found[0]] + 1).tolist() == [6, 7, 8]
    assert (cells[1, : n_found[1]] + 1).tolist() == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
    ]  # with the null cell


@pytest.mark.parametrize(
    ("low", "high", "cell"),
    [(0.2, 0.3, 2), (0.5, 0.8, 10), (0.3, 0.7, 9), (0, 1, 11), (0.3, 0.3, 2), (0.26, 0.5, 3)],
)
def test_an_interval_belongs_to_the_smallest_cell_with_the_nearest_centre(
    low: float, high: float, cell: int
) -> None:
    assert interval_cell(LAYERS, low, high) + 1 == cell


def test_table_2() -> None:
    nan = np.nan
    table = Table.from_boxes(
        [[0.2, 0.5, nan], [0.3, nan, nan], [nan, nan, 0.5]],
        [[0.3, 0.8, nan], [0.7, nan, nan], [nan, nan, 0.8]],
    )
    stored = Stored(
        table.start[:-1], table.start[1:], table.attribute, table.low, table.high, table.negated
    )
    events = np.array([[0.3, 0.8, nan], [0.4, nan, nan], [nan, nan, 0.6]])
    slots, buckets, words = np.arange(3, dtype=np.int32), np.zeros(3, int), np.zeros(3, np.uint64)
    place_subscriptions(LAYERS, PLACES, stored, slots, buckets, words)
    # The rule behind all but the first bucket of each kind, which the paper calls 20 and 21:
    # cells i and j make bucket (i - 1) * n_cells + j.
    assert (buckets + 1).tolist() == [(2 - 1) * 11 + 10, 99, 121]
    place_events(LAYERS, PLACES, events, slots, buckets, words)
    assert (buckets + 1).tolist() == [(3 - 1) * 9 + 7, 36, 81]


# -- the choice of attributes (section 4.2)


def of_widths(n: int, widths: list[float], shares: list[float], seed: int = 0) -> Table:
    """Intervals of these widths, evenly spread, each attribute asked by a share of n."""
    random = np.random.default_rng(seed)
    low = random.random((n, len(widths))) * (1 - np.array(widths))
    low[random.random(low.shape) >= shares] = np.nan
    return Table.from_boxes(low, low + widths)


def test_popular_attributes_are_indexed() -> None:
    tree = make("mo_tree", list("abcd"), n_indexed=2)
    tree.add_many(of_widths(500, [0.1] * 4, [0.1, 0.9, 0.2, 0.6]))
    assert tree.indexed == ("b", "d")


def test_selective_attributes_are_indexed() -> None:
    tree = make("mo_tree", list("abcd"), n_indexed=2)
    tree.add_many(of_widths(500, [0.9, 0.5, 0.01, 0.2], [1.0] * 4))
    assert tree.indexed == ("c", "d")


def test_evenly_asked_attributes_are_indexed() -> None:
    random = np.random.default_rng(0)
    low = random.random((500, 3)) * [0.02, 0.9, 0.3]
    tree = make("mo_tree", list("abc"), n_indexed=2)
    tree.add_many(Table.from_boxes(low, low + 0.05))
    assert tree.indexed == ("b", "c")


def test_attributes_are_chosen_again_when_there_are_four_times_as_many() -> None:
    tree = make("mo_tree", list("abc"), n_indexed=1)
    tree.add_events(np.random.default_rng(1).random((50, 3)))
    tree.add_many(of_widths(100, [0.1] * 3, [0.9, 0.1, 0.1]))
    assert tree.indexed == ("a",)
    tree.add_many(of_widths(299, [0.1] * 3, [0.0, 0.1, 1.0]))
    assert tree.indexed == ("a",)
    tree.add({"c": Range(0.5, 0.6)})
    assert tree.indexed == ("c",)
    assert len(tree.match([np.nan, np.nan, 0.55])) > 0
    found = tree.match_subscription({"c": Range(0, 0.5)})
    assert found.tolist() == np.flatnonzero(tree.events[:50, 2] <= 0.5).tolist()


def test_attributes_are_chosen_again_when_all_have_gone() -> None:
    tree = make("mo_tree", list("abc"), n_indexed=1)
    tree.remove_many(tree.add_many(of_widths(100, [0.1] * 3, [0.9, 0.1, 0.1])))
    tree.add_many(of_widths(10, [0.1] * 3, [0.0, 1.0, 0.1]))
    assert tree.indexed == ("b",)


def test_events_alone_tell_which_attributes_are_popular() -> None:
    values = np.random.default_rng(2).random((80, 3))
    values[:60, 0] = np.nan
    values[:, 1] = 0.5
    tree = make("mo_tree", list("abc"), n_indexed=2)
    tree.add_events(values)
    assert tree.indexed == ("c", "a")


def test_named_attributes_stay() -> None:
    tree = make("mo_tree", list("abc"), indexed=["c", "b"])
    tree.add_many(of_widths(100, [0.1] * 3, [1.0, 0.1, 0.1]))
    assert tree.indexed == ("c", "b")


# -- texts


def test_texts_lie_by_their_first_letters() -> None:
    places = [place_of_text(text, 2) for text in ("audi", "bmw", "Fiat", "ford", "seat", "zzz")]
    assert places == sorted(places)
    assert all(0 <= place < 1 for place in places)
    assert place_of_text("Ford Focus", 2) == place_of_text("FORD", 2) != place_of_text("FORD", 3)
    letters = {place_of_text(letter, 1) for letter in "абвгдежзик"}
    assert len(letters) == 10, "letters of other alphabets share a place"


def test_a_text_visits_the_cells_of_its_letters() -> None:
    tree = make("mo_tree", [Attribute("name", is_text=True)], n_letters=1)
    names = [f"{letter}{number}" for letter in "abcdefghijklmnopqrstuvwxyz" for number in range(4)]
    ids = {name: tree.add({"name": name}) for name in names}
    others = tree.add({"name": NotEqual("a0")})
    trace = tree.trace({"name": "b1"})
    near = {id for name, id in ids.items() if abs(ord(name[0]) - ord("b")) < 36 * 7 / 16} | {others}
    assert trace.survivors == (ids["b1"], others)
    assert 4 < trace.n_candidates <= len(near) < len(tree)
    assert tree.match({"name": "zebra"}).tolist() == [others]


# -- maintenance


def test_expired_events_leave_when_they_are_met() -> None:
    tree = make("mo_tree", ["x", "y"])
    tree.add_events([[0.1, 0.5], [0.1, 0.6], [0.9, 0.5]], until=[1, 5, 1])
    assert tree.match_subscription({"x": Range(0, 0.2)}, now=3).tolist() == [1]
    assert tree.n_events == 2  # the one at 0.9 is expired too, but nobody came by
    assert tree.add_events([[0.5, 0.5]]).tolist() == [0]
    assert tree.match_subscription({}, now=3).tolist() == [0, 1]
    assert tree.n_events == 2


def test_an_update_moves_to_another_bucket_only_if_it_must() -> None:
    tree = make("mo_tree", ["x", "y"], indexed=["x"])
    for low in (0.1, 0.12):
        tree.add({"x": Range(low, low + 0.05)})
    bucket, end = tree._bucket.copy(), tree._lists.of(int(tree._bucket[0])).tolist()
    tree.update(0, {"x": Range(0.15, 0.2), "y": Range(0, 0.5)})
    assert tree._bucket.tolist() == bucket.tolist()
    assert tree._lists.of(int(bucket[0])).tolist() == end
    assert tree.match([0.18, 0.4]).tolist() == [0]
    assert tree.match([0.18, 0.6]).tolist() == []
    tree.update(0, {"x": Range(0.9, 0.95)})
    assert tree._bucket[0] != bucket[0]
    assert tree.match([0.92, 0.6]).tolist() == [0]
    assert tree._lists.n_entries == 2


def test_more_constraints_than_a_digest_holds() -> None:
    names = [f"a{m}" for m in range(20)]
    tree = make("mo_tree", names)
    tree.add({name: Range(0.25, 0.75) for name in names})
    tree.add({name: Range(0.25, 0.75) for name in names[:8]})
    tree.add({name: Range(0.25, 0.75) for name in names[:7]} | {"a9": NotEqual(0.5)})
    for m in range(20):
        event = np.full(20, 0.5)
        event[m] = 0.76
        expected = ([1] if m >= 8 else []) + ([2] if m == 9 else [])
        assert tree.match(event).tolist() == expected
    assert tree.match(np.full(20, 0.25)).tolist() == [0, 1, 2]


# -- trace


def test_trace_tells_cells_candidates_and_survivors() -> None:
    random = np.random.default_rng(3)
    center, half = random.random((400, 3)), random.choice([0.01, 0.2, 0.45], (400, 3))
    low, high = np.maximum(center - half, 0) * 100, np.minimum(center + half, 1) * 100
    tree = make("mo_tree", [Attribute(name, 0, 100) for name in "xyz"], indexed=["x", "y"])
    tree.add_many(Table.from_boxes(low, high))
    tree.remove_many(list(range(50)))
    event = {"x": 30.0, "z": 50.0}
    trace = tree.trace(event)
    first, second = trace.layers
    assert (trace.n_subscriptions, trace.n_buckets) == (350, 100)
    assert [len(level.cells) for level in first.levels] == [4, 3, 2, 1]
    for level in first.levels:
        assert level.visited == tuple(
            number for number, (begin, end) in enumerate(level.cells) if begin <= 30 <= end
        )
    assert sum(sum(level.n_entries) for level in first.levels) == 350
    visited = [level.n_entries[number] for level in first.levels for number in level.visited]
    assert first.n_left == sum(visited)
    assert (second.attribute, np.isnan(second.value)) == ("y", True)
    assert [level.visited for level in second.levels] == [(), (), (), (0,)]
    assert trace.n_visited == first.n_visited
    assert 350 > first.n_left > second.n_left == trace.n_candidates > 0
    assert trace.survivors == ()  # everybody asks for y
    trace = tree.trace(event | {"y": 50.0})
    assert trace.n_visited == first.n_visited * trace.layers[1].n_visited
    assert trace.n_candidates > len(trace.survivors) > 0
    assert trace.survivors == tuple(tree.match([30, 50, 50]).tolist())
