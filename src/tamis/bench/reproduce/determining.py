"""Cells of determining: when each matching subscription is known (Pri-REIN, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np

from tamis.bench.reproduce.boxes import ROUNDS, SECONDS, BoxSet, Ids, TooLarge
from tamis.bench.reproduce.datasets import N_LEVELS
from tamis.bench.reproduce.figures import Line
from tamis.bench.workloads import Floats
from tamis.matching import Matcher

N_TIMED = 100
MIN_DETERMINED = 5


class Determined(NamedTuple):
    """The parts of a result with their moments, from start to end, in milliseconds."""

    parts: list[tuple[float, Ids]]
    end: float

    @property
    def ids(self) -> Ids:
        """All of them."""
        return np.concatenate([np.zeros(0, np.int32), *(ids for _, ids in self.parts)])


def determine(matcher: Matcher, event: Floats) -> Determined:
    """Match an event part by part. What a part holds is determined when the part comes.

    By the processor's time of this thread, which others on the machine disturb less.
    """
    parts = []
    start = thread_time()
    for ids in matcher.match_parts(event):
        if len(ids):
            parts.append(((thread_time() - start) * 1e3, ids))
    return Determined(parts, (thread_time() - start) * 1e3)


def measure_determining(case: BoxSet, line: Line) -> dict[str, Any]:
    """Preparing, ending, matching, gap and interval time, and the moments by priority."""
    try:
        matcher, seconds = case.build(line)
    except TooLarge as error:
        return {"skipped": str(error)}
    check_parts(case, matcher, line)
    rows = _best_of_rounds(matcher, list(case.workload.values[:N_TIMED]))
    return {
        "n_subscriptions": len(matcher),
        "n_events": len(rows),
        "insert_s": seconds,
        "matches_mean": float(np.mean([len(row.ids) for row in rows])),
        **_times(rows),
        **_levels(rows, case.workload.priority),
    }


def _best_of_rounds(matcher: Matcher, events: Sequence[Floats]) -> list[Determined]:
    """Of each event the quickest of some rounds; slow matchers get fewer events and one round."""
    rows: list[Determined] = []
    begin = perf_counter()
    for event in events:
        rows.append(determine(matcher, event))
        if perf_counter() - begin > SECONDS and len(rows) >= MIN_DETERMINED:
            return rows
    if (perf_counter() - begin) * ROUNDS <= SECONDS:
        for _ in range(ROUNDS - 1):
            again = [determine(matcher, event) for event in events]
            rows = [min(pair, key=lambda one: one.end) for pair in zip(rows, again, strict=True)]
    return rows


def check_parts(case: BoxSet, matcher: Matcher, line: Line) -> None:
    """All parts together are what ``match`` should find; else raise WrongResult."""
    for event in case.checked:
        found = np.sort(determine(matcher, case.workload.values[event]).ids)
        where = f"{line.label}, event {event}"
        case.compare(found, case.expected(event), matcher, where)


def _times(rows: Sequence[Determined]) -> dict[str, Any]:
    found: dict[str, list[float]] = {name: [] for name in ("tp", "te", "tm", "tg", "ti")}
    for row in rows:
        found["tm"].append(row.end)
        if row.parts:
            first, last = row.parts[0][0], row.parts[-1][0]
            found["tp"].append(first)
            found["te"].append(row.end - last)
            found["tg"].append(last - first)
            if len(row.ids) > 1:
                found["ti"].append((last - first) / (len(row.ids) - 1))
    return {name: spread_of(values) for name, values in found.items()}


def _levels(rows: Sequence[Determined], priority: Any) -> dict[str, Any]:
    """Mean and deviation of the moments, in all and by priority."""
    parts = [part for row in rows for part in row.parts]
    moments = np.repeat([moment for moment, _ in parts], [len(ids) for _, ids in parts])
    ids = np.concatenate([np.zeros(0, np.int32), *(ids for _, ids in parts)])
    level = priority[ids]
    by_level = [spread_of(moments[level == one].tolist()) for one in range(N_LEVELS)]
    return {"determined": spread_of(moments.tolist()), "levels": by_level}


def spread_of(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation; nothing of nothing."""
    if not values:
        return {}
    return {"mean_ms": float(np.mean(values)), "std_ms": float(np.std(values)), "n": len(values)}
