"""Cells of the others: NumPy, rtree, DuckDB and Polars on the same events, checked alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.bench.cases import BoxCase, WrongResult
from tamis.bench.joins import DuckdbJoin, PolarsJoin, RangeJoin
from tamis.bench.measure import spread, time_each, time_once
from tamis.bench.workloads import Workload, make
from tamis.bench.yardsticks import NumpyScan, RTree, most_selective

N_EVENTS = 100
RTREE_CAP = 100_000  # subscriptions, where the tree's two attributes leave thousands of candidates
JOIN_SECONDS = 8.0  # how long a join may take; the trial below says how many pairs that is
_TRIAL = (10_000, 10)  # subscriptions and events


def measure_numpy(case: BoxCase) -> dict[str, Any]:
    """Plain NumPy, one event at a time."""
    return _one_by_one(case, NumpyScan, case)


def measure_rtree(case: BoxCase) -> dict[str, Any]:
    """The R-tree; on fewer subscriptions where two attributes select little."""
    is_spatial = case.name == "W4"
    used = case if is_spatial else _smaller(case, RTREE_CAP)
    found = _one_by_one(used, RTree, case)
    names = [case.workload.attributes[m] for m in most_selective(case.workload, 2)]
    return {**found, "tree_on": names}


def measure_duckdb(case: BoxCase) -> dict[str, Any]:
    """DuckDB's range join of a batch."""
    return _join(case, DuckdbJoin)


def measure_polars(case: BoxCase) -> dict[str, Any]:
    """Polars' range join of a batch."""
    return _join(case, PolarsJoin)


def _smaller(case: BoxCase, cap: int) -> BoxCase:
    if case.n_subscriptions <= cap:
        return case
    full = case.n_subscriptions / case.scale
    return BoxCase(make(case.name, cap / full, n_events=N_EVENTS))


def _one_by_one(
    used: BoxCase, make_it: Callable[[Workload], Any], asked: BoxCase
) -> dict[str, Any]:
    matcher, build_seconds = time_once(lambda: make_it(used.workload))
    step = max(1, used.workload.n_events // N_EVENTS)
    values = list(used.workload.values[::step])
    for event in values[:20]:
        if not np.array_equal(matcher.match(event), used.scan.match(event)):
            raise WrongResult(f"{used.name}: {make_it.__name__} and the scan disagree")
    scan = spread(time_each(used.scan.match, values))
    times = spread(time_each(matcher.match, values))
    return {
        "n_subscriptions": used.n_subscriptions,
        "limited": used.n_subscriptions < asked.n_subscriptions,
        "n_events": len(values),
        "build_seconds": round(build_seconds, 3),
        "times": times,
        "scan": scan,
        "ratio": round(scan["median_us"] / times["median_us"], 4),
    }


def _join(case: BoxCase, make_it: Callable[[Workload], RangeJoin]) -> dict[str, Any]:
    pairs = _affordable_pairs(case, make_it)
    used = _smaller(case, max(1_000, pairs // 10))
    values = used.workload.values[: max(10, pairs // used.n_subscriptions)]
    database, load_seconds = time_once(lambda: make_it(used.workload))
    database.prepare(values)
    counts, seconds = time_once(database.join)
    expected = [len(used.scan.match(event)) for event in values[:20]]
    if counts[: len(expected)].tolist() != expected:
        raise WrongResult(f"{used.name}: {make_it.__name__} and the scan disagree")
    scan = spread(time_each(used.scan.match, list(values[:N_EVENTS])))
    us = seconds * 1e6 / len(values)
    return {
        "n_subscriptions": used.n_subscriptions,
        "limited": used.n_subscriptions < case.n_subscriptions,
        "n_events": len(values),
        "load_seconds": round(load_seconds, 3),
        "seconds": round(seconds, 4),
        "us_per_event": round(us, 1),
        "pairs_per_second": round(used.n_subscriptions * len(values) / seconds),
        "scan": scan,
        "ratio": round(scan["mean_us"] / us, 4),
    }


def _affordable_pairs(case: BoxCase, make_it: Callable[[Workload], RangeJoin]) -> int:
    """How many pairs of event and subscription it can join in JOIN_SECONDS."""
    n_subscriptions, n_events = _TRIAL
    trial = _smaller(case, n_subscriptions).workload
    database = make_it(trial)
    database.prepare(trial.values[:n_events])
    database.join()
    _, seconds = time_once(database.join)
    return int(JOIN_SECONDS * trial.n_subscriptions * min(n_events, trial.n_events) / seconds)
