"""Cells of matching: one event at a time against the scan, and batches on one and two threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from tamis.bench.cases import BoxCase, Case
from tamis.bench.measure import middle_of, no_gc, spread, time_each
from tamis.index import Index

ROUNDS = 3
BATCH_ROUNDS = 7  # of two tenths of a second: who else uses the memory shows in some of them
N_SCANNED = 100  # events the scan is timed on in each round
N_OTHER = 200  # events the other forms are timed on
_LEAST_S = 0.2  # that batches are timed


def measure_match(case: Case) -> dict[str, Any]:
    """One event at a time through ``match_batch``, and the scan in the same rounds."""
    index = case.index
    singles = [[event] for event in case.events]
    warm_up = [[event] for event in case.warm_up]
    to_rows: list[dict[str, float]] = []
    to_ids: list[dict[str, float]] = []
    scans: list[dict[str, float]] = []
    for _ in range(ROUNDS):
        time_each(index.match_batch, warm_up)
        to_rows.append(spread(time_each(lambda one: index.match_batch(one).rows, singles)))
        to_ids.append(spread(time_each(lambda one: index.match_batch(one).ids, singles)))
        if isinstance(case, BoxCase):
            scans.append(_time_scan(case, N_SCANNED))
    n_matches = [index.match_batch(one).n_matches for one in singles]
    found: dict[str, Any] = {
        "n_subscriptions": case.n_subscriptions,
        "n_events": len(singles),
        "checked_events": len(case.checked_events),
        "matches_mean": round(float(np.mean(n_matches)), 2),
        "matches_median": float(np.median(n_matches)),
        "matches_max": int(np.max(n_matches)),
        "rows": middle_of(to_rows),
        "ids": middle_of(to_ids),
        "other_forms": _other_forms(case),
    }
    found["p99_to_p50"] = round(found["rows"]["p99_us"] / found["rows"]["median_us"], 2)
    if scans:
        found["scan"] = middle_of(scans)
        found["cpu_share"] = min(one["cpu_share"] for one in (*scans, *to_rows))
        found["ratio"] = _ratio(scans, to_rows)
        found["ratio_ids"] = _ratio(scans, to_ids)
    return found


def _ratio(theirs: Sequence[dict[str, float]], ours: Sequence[dict[str, float]]) -> float:
    """How many times as fast: the middle of the ratios inside each round."""
    ratios = [t["median_us"] / o["median_us"] for t, o in zip(theirs, ours, strict=True)]
    return round(median(ratios), 2)


def _time_scan(case: BoxCase, n_events: int) -> dict[str, float]:
    scan, values = case.scan, case.workload.values
    time_each(scan.match, list(case.workload.warm_up[:3]))
    return spread(time_each(scan.match, list(values[:: max(1, len(values) // n_events)])))


def _other_forms(case: Case) -> dict[str, Any]:
    """Medians of the other ways to hand over one event."""
    index, events = case.index, list(case.events[:N_OTHER])
    forms: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {"match": (index.match, events)}
    if isinstance(case, BoxCase):
        one_each = [case.batch(event, event + 1) for event in range(len(events))]
        forms["dict of arrays"] = (index.match_batch, one_each)
    found = {}
    for name, (function, items) in forms.items():
        time_each(function, items[:20])
        found[name] = spread(time_each(function, items))["median_us"]
    return found


def measure_batch(case: Case) -> dict[str, Any]:
    """All the events at once on one thread, and on two threads, each with all of them.

    Each thread matches its batch again and again: how long it takes to hand one over to a thread,
    and to wait for it, is not what is asked.
    """
    index, n_events = case.index, len(case.events)
    whole = case.batch()
    both = [whole, _turned(whole, n_events // 2)]
    singles = [[event] for event in case.events]
    rounds, share = [], 1.0
    with ThreadPoolExecutor(2) as threads, no_gc():
        index.match_batch(whole)
        list(threads.map(index.match_batch, both))  # each thread has scratch of its own
        for _ in range(BATCH_ROUNDS):
            each = spread(time_each(index.match_batch, singles))
            single, share = each["mean_us"], min(share, each["cpu_share"])
            one = _seconds(lambda: index.match_batch(whole))
            n_calls = max(1, round(_LEAST_S / one))
            again = partial(_match_again, index, n_calls)
            two = _seconds(partial(_all_of, threads, again, both)) / n_calls
            rounds.append((single, one * 1e6 / n_events, two * 1e6 / n_events / 2))
    single, one, two = (median(column) for column in zip(*rounds, strict=True))
    gains = [(s / o, o / t) for s, o, t in rounds]
    found: dict[str, Any] = {
        "n_subscriptions": case.n_subscriptions,
        "n_events": n_events,
        "n_matches": index.match_batch(whole).n_matches,
        "single_us": round(single, 3),
        "one_thread_us": round(one, 3),
        "two_threads_us": round(two, 3),
        "events_per_second": round(1e6 / one),
        "cpu_share": share,
        "batch_gain": round(median(gain for gain, _ in gains), 3),
        "thread_gain": round(median(gain for _, gain in gains), 3),
        "gains_of_rounds": [[round(gain, 3) for gain in both] for both in gains],
    }
    if isinstance(case, BoxCase):
        found["scan"] = _time_scan(case, N_SCANNED)
    return found


def _match_again(index: Index, n_calls: int, batch: Any) -> None:
    for _ in range(n_calls):
        index.match_batch(batch)


def _all_of(threads: ThreadPoolExecutor, function: Callable[[Any], None], given: Any) -> None:
    list(threads.map(function, given))


def _turned(batch: Any, first: int) -> Any:
    """The same events from another one on, so that two threads do not look for the same at once."""
    if isinstance(batch, list):
        return batch[first:] + batch[:first]
    return {name: np.roll(values, -first) for name, values in batch.items()}


def _seconds(function: Callable[[], Any]) -> float:
    """The mean of as many calls as take a while: one of them may last ten milliseconds."""
    start, n_calls, seconds = perf_counter(), 0, 0.0
    while seconds < _LEAST_S:
        function()
        n_calls += 1
        seconds = perf_counter() - start
    return seconds / n_calls
