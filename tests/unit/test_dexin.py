"""DEXIN: its arrays of buckets, ordered or not, its counters, and its plans."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tamis.algorithms.dexin import Dexin
from tamis.algorithms.kernels.dexin import EXCLUDED, HIGH, LOW, N_SIDES
from tamis.errors import InvalidSchema
from tamis.matching import NotEqual, Table
from tamis.values import Range
from tests.contract.matching_reference import (
    Shadow,
    random_events,
    random_subscriptions,
)

KINDS = Dexin.capabilities.kinds
NAMES = ["a0", "a1", "a2", "a3"]
PLANS = ("near_optimal", "optimal", "exclusive", "inclusive")


def changed(random: np.random.Generator, **parameters: object) -> tuple[Dexin, Shadow]:
    """A matcher after additions and removals in bulk and one by one."""
    dexin, shadow = Dexin(NAMES, **parameters), Shadow()  # type: ignore[arg-type]
    for n_more, n_less in ((40, 10), (300, 150), (1, 1), (1, 0), (1, 2), (0, 60), (500, 5)):
        shadow.add(dexin, random_subscriptions(random, n_more, KINDS), [5] * n_more)
        ids = random.permutation(sorted(shadow.saved))[:n_less].tolist()
        shadow.remove(dexin, ids)
    return dexin, shadow


def bucket(dexin: Dexin, m: int, side: int, number: int) -> list[tuple[float, int]]:
    """The values and slots of one bucket."""
    lists, at = dexin._lists.arrays, (m * N_SIDES + side) * dexin.n_buckets + number
    places = slice(lists.start[at], lists.start[at] + lists.size[at])
    return list(zip(lists.values[places].tolist(), lists.slots[places].tolist(), strict=True))


# -- the arrays


def test_bounds_lie_in_the_buckets_of_fig_1() -> None:
    dexin = Dexin(["x"], n_buckets=4)
    dexin.add({"x": Range(0.3, 0.6)})
    dexin.add({"x": Range(0.26, 1.0)})
    dexin.add({"x": Range(low=0.4)})
    dexin.add({"x": Range(high=0.55)})
    dexin.add({"x": 0.45})
    dexin.add({"x": NotEqual(0.45)})
    assert bucket(dexin, 0, LOW, 1) == [(0.26, 1), (0.3, 0), (0.4, 2), (0.45, 4)]
    assert bucket(dexin, 0, HIGH, 2) == [(0.55, 3), (0.6, 0)]
    assert bucket(dexin, 0, EXCLUDED, 1) == [(0.45, 5)]
    assert dexin.bucket_counts(0, LOW).tolist() == [0, 4, 0, 0]  # < 0.55 has no low bound
    assert dexin.bucket_counts(0, HIGH).tolist() == [0, 1, 2, 1]  # >= 0.4 has no high bound
    dexin.remove(0)
    assert bucket(dexin, 0, LOW, 1) == [(0.26, 1), (0.4, 2), (0.45, 4)]
    assert bucket(dexin, 0, HIGH, 2) == [(0.55, 3)]


@pytest.mark.parametrize("n_buckets", [1, 7, 1_500])
def test_buckets_stay_in_order(n_buckets: int) -> None:
    dexin, shadow = changed(np.random.default_rng(n_buckets), n_buckets=n_buckets)
    n_entries = 0
    for m in range(4):
        for side in (LOW, HIGH, EXCLUDED):
            buckets = [bucket(dexin, m, side, number) for number in range(n_buckets)]
            values = [value for one in buckets for value, _ in one]
            assert values == sorted(values)
            assert {slot for one in buckets for _, slot in one} <= set(shadow.saved)
            n_entries += len(values)
    assert n_entries == dexin._lists.n_entries > 800


@pytest.mark.parametrize("is_ordered", [True, False])
def test_counters_follow_additions_and_removals(is_ordered: bool) -> None:
    dexin, _ = changed(np.random.default_rng(2), n_buckets=50, is_ordered=is_ordered)
    for m in range(4):
        for side in (LOW, HIGH):
            counts = dexin.bucket_counts(m, side)
            trees = [sum(counts[at - (at & -at) : at]) for at in range(1, 51)]
            assert dexin._n_bounds[m, side, 1:].tolist() == trees


@pytest.mark.parametrize("is_ordered", [True, False])
@pytest.mark.parametrize("plan", PLANS)
def test_every_variant_finds_what_the_oracle_finds(plan: str, is_ordered: bool) -> None:
    random = np.random.default_rng(5)
    dexin, shadow = changed(random, n_buckets=16, is_ordered=is_ordered, plan=plan)
    for event in random_events(random, 12, KINDS):
        assert set(dexin.match(event).tolist()) == shadow.expected(event)


# -- the rules


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("is_ordered", [True, False])
def test_rules_1_and_3_at_the_bounds(plan: str, is_ordered: bool) -> None:
    """Every form of section 3.2, at its bounds, beside them and far off."""
    dexin = Dexin(["x"], n_buckets=3, is_ordered=is_ordered, plan=plan)
    forms = {
        "> a": (Range(low=0.4, ends="()"), [0.5, 0.6, 0.9]),
        ">= a": (Range(low=0.4), [0.4, 0.5, 0.6, 0.9]),
        "< b": (Range(high=0.6, ends="()"), [0.1, 0.4, 0.5]),
        "<= b": (Range(high=0.6), [0.1, 0.4, 0.5, 0.6]),
        "(a, b)": (Range(0.4, 0.6, ends="()"), [0.5]),
        "(a, b]": (Range(0.4, 0.6, ends="(]"), [0.5, 0.6]),
        "[a, b)": (Range(0.4, 0.6, ends="[)"), [0.4, 0.5]),
        "[a, b]": (Range(0.4, 0.6), [0.4, 0.5, 0.6]),
        "= a": (0.4, [0.4]),
        "!= a": (NotEqual(0.4), [0.1, 0.5, 0.6, 0.9]),
    }
    ids = {name: dexin.add({"x": asked}) for name, (asked, _) in forms.items()}
    for value in (0.1, 0.4, 0.5, 0.6, 0.9):
        expected = [ids[name] for name, (_, accepted) in forms.items() if value in accepted]
        assert dexin.match([value]).tolist() == expected


# -- the plans


def workload(
    random: np.random.Generator, n: int, m: int
) -> tuple[Table, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    theta = random.uniform(0.2, 0.8, (n, m))
    bounds = np.stack([random.random((n, m)) * (1 - theta), theta + random.random((n, m)) * theta])
    bounds = np.floor(np.sort(bounds, axis=0) * 1_000) / 1_000
    return Table.from_boxes(*bounds), bounds[0], bounds[1]


def test_the_matching_rate_is_formula_3() -> None:
    table, low, high = workload(np.random.default_rng(1), 800, 2)
    dexin = Dexin(["x", "y"], n_buckets=20)
    dexin.add_many(table)
    rates = {step.attribute: step.rate for step in dexin.trace([0.31, 0.55]).steps}
    for name, column, first in (("x", 0, 6), ("y", 1, 11)):
        n_low = (low[:, column] >= first / 20).sum()
        n_high = (high[:, column] < (first + 1) / 20).sum()
        assert rates[name] == pytest.approx(1 - (n_low + n_high) / 800)


def test_costs_are_those_of_formulas_6_8_and_9() -> None:
    table, _, _ = workload(np.random.default_rng(3), 500, 3)
    event = [0.3, 0.5, 0.62]
    traces = {}
    for plan in PLANS:
        dexin = Dexin(["x", "y", "z"], plan=plan)
        dexin.add_many(table)
        traces[plan] = dexin.trace(event)
    rates = sorted(step.rate for step in traces["exclusive"].steps)
    assert len(rates) == 3
    assert traces["exclusive"].cost == pytest.approx(sum(1 - rate for rate in rates))
    assert traces["inclusive"].cost == pytest.approx(1 + rates[0] + rates[0] * rates[1])
    assert {step.method for step in traces["exclusive"].steps} == {"exclude"}
    assert {step.method for step in traces["inclusive"].steps} == {"select"}
    lowest = min(traces["exclusive"].cost, traces["near_optimal"].cost)
    assert traces["optimal"].cost <= lowest + 1e-12
    for trace in traces.values():
        assert [step.rate for step in trace.steps] == rates or trace is traces["optimal"]
        assert trace.steps[-1].n_left == traces["exclusive"].steps[-1].n_left


def test_the_optimal_plan_is_never_dearer() -> None:
    random = np.random.default_rng(7)
    table, _, _ = workload(random, 2_000, 6)
    names = [f"a{m}" for m in range(6)]
    near, best = Dexin(names), Dexin(names, plan="optimal")
    near.add_many(table)
    best.add_many(table)
    for event in random.random((60, 6)):
        traces = near.trace(event), best.trace(event)
        assert traces[0].steps[-1].n_left == traces[1].steps[-1].n_left == len(near.match(event))
        if len(traces[0].steps) == len(traces[1].steps) == 6:
            assert traces[1].cost <= traces[0].cost + 1e-12
        first = traces[1].steps[0]
        assert first.method == "exclude"


def test_what_an_event_lacks_excludes_first_when_all_else_selects() -> None:
    dexin = Dexin(["x", "y", "z"], plan="inclusive")
    free, asking = dexin.add({"x": Range(0, 1)}), dexin.add({"y": Range()})
    trace = dexin.trace({"x": 0.5, "z": 0.5})
    assert (trace.steps[0].attribute, trace.steps[0].method) == ("y", "missing")
    assert [step.n_left for step in trace.steps] == [1, 1, 1]
    assert dexin.match({"x": 0.5, "z": 0.5}).tolist() == [free]
    assert dexin.match({"x": 0.5, "y": 7}).tolist() == [free, asking]


# -- the trace


def test_a_trace_counts_the_entries_that_are_passed() -> None:
    table, low, high = workload(np.random.default_rng(11), 1_000, 1)
    value = 0.312
    n_above, n_below = int((low > value).sum()), int((high < value).sum())
    cell = int(value * 10)
    for is_ordered in (True, False):
        dexin = Dexin(["x"], n_buckets=10, is_ordered=is_ordered)
        dexin.add_many(table)
        (step,) = dexin.trace([value]).steps
        areas = {area.name: area for area in step.areas}
        assert areas["low beyond"].cells == ((cell + 1, 9),)
        assert areas["high before"].cells == ((0, cell - 1),)
        assert areas["low own"].is_compared is not is_ordered
        n_own = int(
            ((low * 10).astype(int) == cell).sum() + ((high * 10).astype(int) == cell).sum()
        )
        n_beyond = areas["low beyond"].n_entries + areas["high before"].n_entries
        assert step.n_passed == (n_above + n_below if is_ordered else n_beyond + n_own)
        assert step.n_left == 1_000 - n_above - n_below == len(dexin.match([value]))


def test_wrong_parameters_are_refused() -> None:
    for wrong in ({"n_buckets": 0}, {"plan": "greedy"}):
        with pytest.raises(InvalidSchema, match="expected"):
            Dexin(["x"], **wrong)  # type: ignore[arg-type]
