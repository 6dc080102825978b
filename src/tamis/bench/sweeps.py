"""Sweeps: how the time of an event depends on one property of the workload, a plot each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tamis.bench import workloads
from tamis.bench.cases import BoxCase
from tamis.bench.measure import spread, time_each
from tamis.bench.results import Key
from tamis.bench.workloads import FULL_SIZES, Workload

N_EVENTS = 300
N_SCANNED = 20
_MANY = (10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000, 4_000_000)


@dataclass(frozen=True, slots=True)
class Sweep:
    """One property of workloads: its name, how its plot is labelled, its points, who makes them."""

    word: str
    title: str
    axis: str
    points: tuple[float, ...]
    makers: dict[str, Callable[[float, float], Workload]]


def _size(name: str, scale: float) -> int:
    return max(1, round(FULL_SIZES[name] * scale))


def _of_size(name: str) -> Callable[[float, float], Workload]:
    # The scale shrinks this sweep too, so that a quick run stays quick.
    return lambda n, scale: workloads.make(name, n * scale / FULL_SIZES[name], N_EVENTS)


SWEEPS: dict[str, Sweep] = {
    "sweep-n": Sweep(
        "N",
        "Time of an event against the number of subscriptions",
        "subscriptions",
        _MANY,
        {name: _of_size(name) for name in FULL_SIZES},
    ),
    "sweep-m": Sweep(
        "M",
        "Time of an event against the number of attributes",
        "attributes (W1 bounds all of them, W3 five)",
        (2, 5, 10, 20, 30, 50),
        {
            "W1": lambda m, scale: workloads.make_w1(
                _size("W1", scale), m=int(m), n_events=N_EVENTS
            ),
            "W3": lambda m, scale: workloads.make_w3(
                _size("W3", scale), m=int(m), k=min(5, int(m)), n_events=N_EVENTS
            ),
        },
    ),
    "sweep-theta": Sweep(
        "θ",
        "Time of an event against the width of the intervals",
        "θ: low in [0, 1-θ], high in [θ, 1]",
        (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        {
            "W1": lambda theta, scale: workloads.make_w1(
                _size("W1", scale), theta=theta, n_events=N_EVENTS
            )
        },
    ),
    "sweep-zipf": Sweep(
        "the Zipf exponent",
        "Time of an event, uniform and skewed",
        "Zipf exponent of values (W2) or of attributes (W3, W4); 0 is uniform",
        (0.0, 0.5, 1.0, 1.5),
        {
            "W2": lambda zipf, scale: workloads.make_w2(
                _size("W2", scale), zipf=zipf, n_events=N_EVENTS
            ),
            "W3": lambda zipf, scale: workloads.make_w3(
                _size("W3", scale), zipf=zipf, n_events=N_EVENTS
            ),
            "W4": lambda zipf, scale: workloads.make_w4(
                _size("W4", scale), zipf=zipf, n_events=N_EVENTS
            ),
        },
    ),
}


def plan_sweeps(chosen: tuple[str, ...], scale: float, largest: int) -> list[Key]:
    """A cell a point; ``largest`` caps the number of subscriptions."""
    return [
        Key(name, workload, scale, f"{point:g}")
        for name, sweep in SWEEPS.items()
        for workload in sweep.makers
        if workload in chosen
        for point in sweep.points
        if name != "sweep-n" or point * scale <= largest
    ]


def measure_point(key: Key) -> dict[str, Any]:
    """One event at a time, checked like all others; fewer events than the match cell."""
    point = float(key.point)
    case = BoxCase(SWEEPS[key.cell].makers[key.workload](point, key.scale))
    index = case.index
    singles = [[event] for event in case.events]
    time_each(index.match_batch, [[event] for event in case.warm_up[:50]])
    ours = spread(time_each(lambda one: index.match_batch(one).rows, singles))
    time_each(case.scan.match, list(case.workload.warm_up[:2]))
    scan = spread(time_each(case.scan.match, list(case.workload.values[:N_SCANNED])))
    n_matches = index.match_batch(case.batch()).n_matches
    return {
        "point": point,
        "n_subscriptions": case.n_subscriptions,
        "n_attributes": len(case.workload.attributes),
        "matches_mean": round(n_matches / len(singles), 2),
        "build_seconds": round(case.build_seconds, 4),
        "rows": ours,
        "scan": scan,
        "ratio": round(scan["median_us"] / ours["median_us"], 2),
    }
