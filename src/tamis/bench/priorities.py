"""Cell of priorities: when the matches of each level are all determined (Pri-REIN)."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

import numpy as np

from tamis.bench.cases import Case, WrongResult
from tamis.bench.measure import no_gc, spread, time_each, time_once

N_LEVELS = 10


def measure_priorities(case: Case) -> dict[str, Any]:
    """Through ``match_iter``: the median time until the last match of each level is out.

    The first call makes the blocks of the highest priorities; it is timed by itself.
    """
    index = case.index
    _, first_call = time_once(lambda: list(index.match_iter(case.events[0])))
    for event in case.checked_events:
        _check(case, case.events[event])
    whole = spread(time_each(lambda event: index.match(event), case.events))
    done = np.zeros((len(case.events), N_LEVELS))
    first = np.zeros(len(case.events))
    with no_gc():
        for at, event in enumerate(case.events):
            first[at], done[at] = _determine(case, event)
    return {
        "n_subscriptions": case.n_subscriptions,
        "n_events": len(case.events),
        "match_median_us": whole["median_us"],
        "first_call_seconds": round(first_call, 4),
        "express_bytes": index.stats()["memory"]["express"],
        "first_match_us": round(float(np.median(first)), 3),
        "done_us_of_level": [round(float(us), 3) for us in np.median(done, axis=0)],
    }


def _check(case: Case, event: Any) -> None:
    """The ids are those of ``match``, which the case has checked, by ascending level."""
    told, wanted = list(case.index.match_iter(event)), case.index.match(event)
    levels = [case.priority_of(id) for id in told]
    if sorted(told) != sorted(wanted) or levels != sorted(levels):
        raise WrongResult(f"{case.name}: match_iter and match disagree. Nothing was timed")


def _determine(case: Case, event: Any) -> tuple[float, list[float]]:
    """Microseconds to the first match, and to the last one of each level or a higher one."""
    out: list[tuple[int, str]] = []
    start = perf_counter_ns()
    for id in case.index.match_iter(event):
        out.append((perf_counter_ns(), id))
    end = perf_counter_ns()
    last = [start] * N_LEVELS
    for at, id in out:
        last[case.priority_of(id)] = at
    for level in range(1, N_LEVELS):
        last[level] = max(last[level], last[level - 1])
    first = out[0][0] if out else end
    return (first - start) / 1e3, [(at - start) / 1e3 for at in last]
