"""Cell of event matching: one event at a time against subscriptions that move, and boxes."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from tamis.bench.cases import BoxCase
from tamis.bench.events.moving import Movers
from tamis.bench.events.others import finders
from tamis.bench.measure import middle_of, spread, time_each
from tamis.bench.reproduce.places import placed_boxes
from tamis.bench.workloads import FULL_SIZES

ROUNDS = 3
ROUNDS_ALONE = 9  # of what nothing slow is timed beside: a moment in which the core is slow is one
N_EVENTS = 1_000
N_OTHER = 200  # events that the others are timed on

Rounds = dict[str, list[dict[str, float]]]


def measure_near_me(movers: Movers) -> dict[str, Any]:
    """Subscriptions with a circle or a square around them, until the rows and the ids are there."""
    index, events = movers.index, movers.events
    n_checked = movers.check()
    rounds: Rounds = {}
    for _ in range(ROUNDS_ALONE):
        time_each(index.match, events[:200])
        for name, call in (
            ("near_me", lambda event: index.match_batch([event]).rows),
            ("near_me_ids", index.match),
        ):
            rounds.setdefault(name, []).append(spread(time_each(call, events)))
    mean = float(np.mean([len(index.match(event)) for event in events]))
    return {
        "near_me_n_checked_matches": n_checked,
        "near_me_matches_mean": round(mean, 2),
        **{name: middle_of(several) for name, several in rounds.items()},
    }


def measure_boxes(n: int) -> dict[str, Any]:
    """Boxes that stay, around the pick-up points of the city: the index beside the others."""
    case = BoxCase(placed_boxes(n, n_events=N_EVENTS))
    index = case.index
    rounds: Rounds = {}
    some = list(case.workload.values[:N_OTHER])
    for name, match in chain([("scan", case.scan.match)], finders(case)):
        for _ in range(ROUNDS):
            rounds.setdefault("boxes", []).append(_time_index(case))
            time_each(match, some[:20])
            rounds.setdefault(name, []).append(spread(time_each(match, some)))
    matches = [index.match_batch([event]).n_matches for event in case.events]
    return {
        "n_subscriptions": n,
        "n_events": N_EVENTS,
        "matches_mean": round(float(np.mean(matches)), 2),
        **{name: middle_of(several) for name, several in rounds.items()},
    }


def measure_uniform(n: int) -> dict[str, Any]:
    """W4 as ``tamis bench engine`` has it, with places all over the domain."""
    case = BoxCase.of("W4", n / FULL_SIZES["W4"])
    _ = case.index
    return {"uniform": middle_of([_time_index(case) for _ in range(ROUNDS_ALONE)])}


def _time_index(case: BoxCase) -> dict[str, float]:
    index = case.index
    time_each(index.match_batch, [[event] for event in case.warm_up[:200]])
    singles = [[event] for event in case.events]
    return spread(time_each(lambda one: index.match_batch(one).rows, singles))
