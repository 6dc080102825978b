"""Cell of priorities: when the matches of each level are all determined (Pri-REIN)."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

import numpy as np

from tamis.bench.cases import Case
from tamis.bench.measure import no_gc, spread, time_each

N_LEVELS = 10


def measure_priorities(case: Case) -> dict[str, Any]:
    """Through ``match_iter``: the median time until the last match of each level is out."""
    index = case.index
    whole = spread(time_each(lambda event: index.match(event), case.events))
    found: dict[str, Any] = {
        "n_subscriptions": case.n_subscriptions,
        "n_events": len(case.events),
        "match_median_us": whole["median_us"],
    }
    if not hasattr(index, "match_iter"):
        return {**found, "missing": "this Index has no match_iter"}
    done = np.zeros((len(case.events), N_LEVELS))
    first = np.zeros(len(case.events))
    with no_gc():
        for at, event in enumerate(case.events):
            first[at], done[at] = _determine(case, event)
    found["first_match_us"] = round(float(np.median(first)), 3)
    found["done_us_of_level"] = [round(float(us), 3) for us in np.median(done, axis=0)]
    return found


def _determine(case: Case, event: Any) -> tuple[float, list[float]]:
    """Microseconds to the first match, and to the last one of each level or a higher one."""
    out: list[tuple[int, str]] = []
    start = perf_counter_ns()
    for one in case.index.match_iter(event):  # type: ignore[attr-defined]
        out.append((perf_counter_ns(), one))
    end = perf_counter_ns()
    last = [start] * N_LEVELS
    for at, one in out:
        id = one if isinstance(one, str) else one[0]
        last[case.priority_of(id)] = at
    for level in range(1, N_LEVELS):
        last[level] = max(last[level], last[level - 1])
    first = out[0][0] if out else end
    return (first - start) / 1e3, [(at - start) / 1e3 for at in last]
