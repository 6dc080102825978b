"""GEM: the triangle, its areas, the decision of the paper, caches that stay right."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import numpy.typing as npt
import pytest

from tamis.algorithms.gem import Gem
from tamis.algorithms.kernels.plan import find_costs, fit_best, fit_first
from tamis.errors import InvalidSchema
from tamis.matching import Attribute, NotEqual, Table
from tamis.values import Range
from tests.contract.matching_reference import (
    Shadow,
    Subscription,
    random_events,
    random_subscriptions,
    table_of,
)

KINDS = Gem.capabilities.kinds
NAMES = ["a0", "a1", "a2", "a3"]


def boxes(random: np.random.Generator, n: int, m: int, theta: float = 0.5) -> Table:
    """Subscriptions as in section III: low in [0, 1 - theta], high in [theta, 1]."""
    low, high = random.random((n, m)) * (1 - theta), theta + random.random((n, m)) * (1 - theta)
    low, high = np.minimum(low, high), np.maximum(low, high)
    return Table.from_boxes(low, high, random.random((n, m)) < 0.5, random.random((n, m)) < 0.5)


# -- the model and the triangle


def test_the_air_quality_example() -> None:
    july = [Attribute("time", 1, 31), Attribute("temperature", -40, 60), Attribute("pm", 0, 500)]
    gem = Gem(july)
    id = gem.add(
        {
            "time": Range(2, 20),
            "temperature": Range(25, 30, ends="(]"),
            "pm": Range(0, 100, ends="[)"),
        }
    )
    assert gem.match({"time": 3, "temperature": 28, "pm": 56}).tolist() == [id]
    assert gem.match({"time": 12, "temperature": 25, "pm": 153}).tolist() == []
    assert gem.match({"time": 2, "temperature": 30, "pm": 0}).tolist() == [id]


def test_a_constraint_lies_in_the_row_of_high_and_the_column_of_low() -> None:
    gem = Gem([Attribute("x", 0, 16)], n_cells=8)
    for low, high in ((0, 0), (1.9, 2), (0, 16), (16, 16), (7.9, 15.9), (-3, 40)):
        gem.add({"x": Range(low, high)})
    counts = gem.cell_counts(0)
    filled = {(int(i), int(j)): int(counts[i, j]) for i, j in np.argwhere(counts)}
    assert filled == {(0, 0): 1, (1, 0): 1, (7, 0): 2, (7, 7): 1, (7, 3): 1}
    assert len(gem._lists) == 36 + 8  # the 36 cells of Fig. 1(b), and a row of excluded values


def test_the_areas_of_an_event() -> None:
    """Fig. 2(b): one subscription in the middle of every cell, the value in cell 4 of 8."""
    gem = Gem([Attribute("x", 0, 8)], n_cells=8, n_caches=0)
    for row in range(8):
        for column in range(row + 1):
            gem.add({"x": Range(column + 0.25, row + 0.75)})
    areas = {area.name: area for area in gem.trace([4.5]).steps[0].areas}
    assert {name: area.n_entries for name, area in areas.items()} == {
        "A": 10,
        "B": 6,
        "A'": 4,
        "B'": 3,
        "D": 1,
    }
    assert (areas["A"].cells, areas["B"].cells) == (((0, 3), (0, 3)), ((5, 7), (5, 7)))
    assert (areas["A'"].cells, areas["B'"].cells) == (((4, 4), (0, 3)), ((5, 7), (4, 4)))
    assert [name for name, area in areas.items() if area.is_compared] == ["A'", "B'", "D"]
    assert len(gem.match([4.5])) == 20  # subarea 3 with its borders
    assert len(gem.match([4.1])) == 16  # the column of the value has its lows at 4.25
    assert len(gem.match([4.9])) == 15  # the row of the value has its highs at 4.75


@pytest.mark.parametrize("n_cells", [1, 2, 80])
def test_bounds_that_share_a_place_in_a_cell_are_compared_exactly(n_cells: int) -> None:
    gem = Gem(["x"], n_cells)
    up = np.nextafter(0.5, 1)
    ids = [gem.add({"x": Range(0, 0.5)}), gem.add({"x": Range(0, up)}), gem.add({"x": 0.5})]
    ids += [gem.add({"x": Range(up, 1)}), gem.add({"x": NotEqual(0.5)})]
    assert gem.match([0.5]).tolist() == ids[:3]
    assert gem.match([up]).tolist() == [ids[1], ids[3], ids[4]]


def test_counters_follow_additions_and_removals() -> None:
    random = np.random.default_rng(1)
    gem, shadow = Gem(NAMES), Shadow()
    change(gem, shadow, random)
    for m in range(4):
        counts = gem.cell_counts(m)
        assert gem._row_count[m].tolist() == counts.sum(axis=1).tolist()
        assert gem._column_count[m].tolist() == counts.sum(axis=0).tolist()
        asking = [one for one in shadow.saved.values() if m in one and not is_hollow(one)]
        n_excluding = sum(one[m].negated for one in asking)
        assert int(counts.sum()) == len(asking) - n_excluding
        assert gem._columns.n_asking[m] == len(asking)


def is_hollow(subscription: Subscription) -> bool:
    return bool(table_of([subscription]).is_hollow[0])


def change(gem: Gem, shadow: Shadow, random: np.random.Generator) -> None:
    """Add and remove in bulk and one by one, so that slots are used again and room grows."""
    for n_more, n_less in ((40, 10), (300, 150), (1, 1), (1, 0), (0, 60), (90, 5)):
        more = random_subscriptions(random, n_more, KINDS)
        shadow.add(gem, more, [5] * n_more)
        ids = random.permutation(sorted(shadow.saved))[:n_less].tolist()
        shadow.remove(gem, ids)


# -- caches


@pytest.mark.parametrize("n_caches", [0, 3, 10, 20])
def test_caches_are_kept_up(n_caches: int) -> None:
    random = np.random.default_rng(n_caches)
    gem, shadow = Gem(NAMES, n_caches=n_caches), Shadow()
    change(gem, shadow, random)
    bits = np.unpackbits(gem._caches.words.view(np.uint8), axis=2, bitorder="little")
    assert bits.shape[:2] == (4, n_caches)
    places = np.arange(1, n_caches + 1) / (n_caches + 1)
    expected = np.ones(bits.shape, np.bool_)  # who does not match at a place, or is not there
    for id, one in shadow.saved.items():
        if not is_hollow(one):
            expected[:, :, id] = False
            for m, asked in one.items():
                expected[m, :, id] = ~asked.accepts(places)
    assert (gem.cache_places == places).all()
    assert (bits == expected).all()


@pytest.mark.parametrize("n_caches", [0, 1, 3, 10, 20])
def test_every_start_gives_what_the_oracle_gives(n_caches: int) -> None:
    """Values on the places of caches, on borders of cells, beside them and beyond."""
    random = np.random.default_rng(3)
    gem, shadow = Gem(NAMES[:1], n_cells=8, n_caches=n_caches), Shadow()
    subscriptions = random_subscriptions(random, 500, KINDS, n_attributes=1)
    ids = [
        gem.add({"a0": Range(low, high)})
        for low, high in product(np.arange(0, 9) / 8, repeat=2)
        if low <= high
    ]
    gem.remove_many(ids)
    for id, one in zip(gem.add_many(table_of(subscriptions, 1)), subscriptions, strict=True):
        shadow.saved[int(id)] = one
    places = [*gem.cache_places[0], *(np.arange(-1, 10) / 8), -np.inf, np.inf]
    for place in places:
        for value in (place, np.nextafter(place, -np.inf), np.nextafter(place, np.inf)):
            event = np.array([value])
            assert set(gem.match(event).tolist()) == shadow.expected(event), value


def test_a_cache_is_put_right_where_its_own_place_is_excluded() -> None:
    gem = Gem(["x"], n_caches=1)
    ids = [gem.add({"x": NotEqual(0.5)}), gem.add({"x": NotEqual(0.75)}), gem.add({"x": 0.5})]
    assert gem.match([0.5]).tolist() == ids[1:]
    assert gem.match([0.501]).tolist() == ids[:2]
    assert gem.match([0.75]).tolist() == ids[:1]


def test_a_cache_spares_most_of_the_first_step() -> None:
    random = np.random.default_rng(2)
    table, event = boxes(random, 5_000, 3), [0.04, 0.5, 0.5]
    passed = []
    for n_caches in (0, 20):
        gem = Gem(["x", "y", "z"], n_caches=n_caches)
        gem.add_many(table)
        passed.append(gem.trace(event).steps[0].n_passed)
    assert passed[1] < passed[0] / 5


# -- the decision


def plan_of(rates: list[float], event: list[float] | None = None) -> tuple[list[int], int]:
    order = np.zeros(len(rates), np.int32)
    row = np.zeros(len(rates)) if event is None else np.array(event)
    n_excluding = fit_first(np.array(rates), row, order)
    return order.tolist(), int(n_excluding)


def test_algorithm_4_by_hand() -> None:
    # 0.9 of all match on 1; of the others 0.9 are left, more than the 0.08 that miss on 2, ...
    assert plan_of([0.95, 0.9, 0.92]) == ([1, 2, 0], 3)
    # 0.3 are left behind attribute 2; 0.6 miss on 0: select from there on
    assert plan_of([0.4, 0.9, 0.3]) == ([2, 0, 1], 1)
    # by rising rate 0.4, 0.25, 0.2 and 0.2 miss where 0.5, 0.3, 0.225 and 0.18 are left
    assert plan_of([0.5, 0.6, 0.8, 0.8, 0.75]) == ([0, 1, 4, 2, 3], 4)
    assert plan_of([0.5, 0.5]) == ([0, 1], 1)  # as many left as miss: no more to exclude
    assert plan_of([0.0, 0.0]) == ([0, 1], 1)
    assert plan_of([1.0]) == ([0], 1)


def test_what_an_event_lacks_comes_second() -> None:
    nan = np.nan
    assert plan_of([0.9, 0.3, 0.95], [0.0, nan, 0.0]) == ([0, 1, 2], 3)
    assert plan_of([0.9, 0.01, 0.95], [0.0, nan, 0.0]) == ([0, 1, 2], 2)
    assert plan_of([0.9, 0.3], [nan, nan]) == ([1, 0], 2)


def cost_of(rates: npt.NDArray[np.float64], order: npt.ArrayLike, methods: npt.ArrayLike) -> float:
    """Formula 3."""
    picked, left = rates[np.asarray(order)], 1.0
    cost = 0.0
    for rate, selects in zip(picked, np.asarray(methods), strict=True):
        cost += left if selects else 1 - rate
        left *= rate
    return cost


@pytest.mark.parametrize("seed", range(8))
def test_no_plan_is_cheaper_than_the_optimal_one(seed: int) -> None:
    """Over all orders and all methods, so the paper's three observations are tried too."""
    random = np.random.default_rng(seed)
    rates, event = random.random(4) ** random.choice([0.2, 1, 3]), np.zeros(4)
    lowest = min(
        cost_of(rates, order, methods)
        for order in permutations(range(4))
        for methods in product((0, 1), repeat=4)
    )
    costs = {}
    for fit in (fit_first, fit_best):
        order, steps = np.zeros(4, np.int32), np.zeros(4)
        n_excluding = fit(rates, event, order)
        find_costs(rates, event, order, n_excluding, steps)
        assert sorted(order) == [0, 1, 2, 3]
        methods = np.arange(4) >= n_excluding
        assert steps.sum() == pytest.approx(cost_of(rates, order, methods))
        costs[fit] = steps.sum()
    assert costs[fit_best] == pytest.approx(lowest)
    assert costs[fit_best] <= costs[fit_first] + 1e-12


def test_the_optimal_plan_finds_the_same_at_no_higher_cost() -> None:
    random = np.random.default_rng(4)
    table = boxes(random, 3_000, 6)
    names = [f"a{m}" for m in range(6)]
    near, best = Gem(names), Gem(names, plan="optimal")
    near.add_many(table)
    best.add_many(table)
    n_cheaper = 0
    for event in random.random((100, 6)):
        event[random.random(6) < 0.1] = np.nan
        assert near.match(event).tolist() == best.match(event).tolist()
        costs = trace_costs(near, event), trace_costs(best, event)
        assert costs[1] <= costs[0] + 1e-12
        n_cheaper += costs[1] < costs[0] - 1e-12
    assert n_cheaper > 0  # the near-optimal plan is not always optimal


def trace_costs(gem: Gem, event: npt.NDArray[np.float64]) -> float:
    """The cost of the whole plan, also of steps that are not reached."""
    order, n_excluding = gem._plan(event)
    costs = np.zeros(len(event))
    find_costs(gem._rates, event, order, n_excluding, costs)
    return float(costs.sum())


def test_the_rate_of_a_uniform_attribute_is_that_of_its_area() -> None:
    """Section II.F: for points spread over the triangle, 1 - 2v(1 - v) do not match."""
    random = np.random.default_rng(6)
    bounds = np.sort(random.random((40_000, 1, 2)), axis=2)
    gem = Gem(["x"])
    gem.add_many(Table.from_boxes(bounds[..., 0], bounds[..., 1]))
    for value in (0.0, 0.1, 0.5, 0.77, 1.0):
        rate = gem.trace([value]).steps[0].rate
        assert rate == pytest.approx(2 * value * (1 - value), abs=0.01)


# -- the trace


@pytest.mark.parametrize("n_caches", [0, 20])
def test_a_trace_tells_what_each_step_leaves(n_caches: int) -> None:
    random = np.random.default_rng(8)
    gem, shadow = Gem(NAMES, n_caches=n_caches), Shadow()
    shadow.add(gem, random_subscriptions(random, 200, KINDS), [5] * 200)
    saved = {id: one for id, one in shadow.saved.items() if not is_hollow(one)}
    for event in random_events(random, 15, KINDS):
        trace, left = gem.trace(event), set(saved)
        assert trace.n_subscriptions == len(left)
        for step in trace.steps:
            m = NAMES.index(step.attribute)
            value = event[m : m + 1]
            left = {id for id in left if m not in saved[id] or saved[id][m].accepts(value)[0]}
            assert step.n_left == len(left)
            assert (step.method == "missing") == np.isnan(event[m])
        assert left == set(gem.match(event).tolist())


def test_without_caches_a_step_passes_who_does_not_match_and_the_border() -> None:
    random = np.random.default_rng(9)
    gem = Gem(["x", "y"], n_caches=0)
    gem.add_many(boxes(random, 2_000, 2, theta=0.2))
    trace = gem.trace([0.1, 0.55])
    first, second = trace.steps
    assert (first.attribute, first.method, second.method) == ("x", "exclude", "select")
    assert "lowest" in first.reason
    assert "left" in second.reason
    matched_on_border = sum(area.n_entries for area in first.areas if area.is_compared)
    n_unmatched = 2_000 - first.n_left
    assert n_unmatched <= first.n_passed <= n_unmatched + matched_on_border
    assert second.n_passed == first.n_left
    assert trace.n_passed == first.n_passed + second.n_passed
    assert trace.cost == pytest.approx(1 - first.rate + first.rate)


def test_a_pipeline_stops_when_nobody_is_left() -> None:
    gem = Gem(["x", "y"])
    gem.add_many(Table.from_boxes([[0.6, 0.1]] * 3, [[0.9, 0.9]] * 3))
    trace = gem.trace([0.1, 0.5])
    assert [(step.attribute, step.n_left) for step in trace.steps] == [("x", 0)]
    assert gem.match([0.1, 0.5]).tolist() == []


def test_wrong_parameters_are_refused() -> None:
    for wrong in ({"n_cells": 0}, {"n_caches": -1}, {"plan": "exclusive"}, {"n_cells": 70_000}):
        with pytest.raises(InvalidSchema, match="expected"):
            Gem(["x"], **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidSchema, match="at most 24"):
        Gem([f"a{m}" for m in range(25)], plan="optimal")
