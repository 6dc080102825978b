"""Cells of keeping: events come one by one and many at once, and expire."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from tamis.bench.cases import WrongResult
from tamis.bench.events.kept import HOUR_S, START, at, check, fill, make_boxes
from tamis.bench.events.others import keepers
from tamis.bench.machine import trimmed_rss
from tamis.bench.measure import no_gc, spread, time_each, time_once
from tamis.events import EventStore

N_SINGLE = 6_000  # more than the head holds, so that it becomes a segment in between
N_OTHER = 1_000
N_REMOVED = 300
_N_WARM_UP = 50
MANY, N_MANY = 10_000, 10  # events of a table, and tables
N_OBJECTS = 10_000  # events of a batch of Events
HALF_S = 6 * HOUR_S  # when half of the events have expired
SWEEP = 10_000


def measure_insert(n: int) -> dict[str, Any]:
    """Into a store of n events: one by one, as Events at once, as Arrow tables."""
    n_all = n + N_SINGLE + N_OBJECTS + MANY * N_MANY
    kept = make_boxes(n_all, n_questions=100)
    store, seconds = fill(kept, n)
    check(kept, store, n)
    _warm_up()
    some = range(n, n + N_SINGLE)
    one = time_each(lambda event: store.insert(event, now=START), [kept.event(row) for row in some])
    last = n + N_SINGLE + N_OBJECTS
    events = [kept.event(row) for row in range(n + N_SINGLE, last)]
    _, objects = time_once(lambda: store.insert_many(events, now=START))
    tables = [kept.table(first, first + MANY) for first in range(last, n_all, MANY)]
    many = time_each(lambda table: store.insert_many(table, now=START), tables)
    if len(store) != n_all:
        raise WrongResult(f"{n_all:,} events were inserted, the store holds {len(store):,}")
    n_checked = check(kept, store, n_all)
    fresh = np.split(kept.values[n : n + N_OTHER], N_OTHER)
    found = {}
    for name, keeper in keepers(kept, n).items():
        time_each(keeper.insert, fresh[:_N_WARM_UP])
        found[name] = spread(time_each(keeper.insert, fresh[_N_WARM_UP:]))
    return {
        "n_events": n,
        "n_checked_events": n_checked,
        "one": spread(one),
        "events_us": round(1e6 * objects / N_OBJECTS, 3),
        "tables": {
            "us_per_event": round(float(many.times.mean()) / 1e3 / MANY, 3),
            "median_us_per_event": round(float(np.median(many.times)) / 1e3 / MANY, 3),
            "cpu_share": round(many.cpu_share, 3),
        },
        "bulk_us": round(1e6 * seconds, 3),
        **found,
    }


def _warm_up() -> None:
    """Run all that is compiled once, in a store that nobody measures."""
    kept = make_boxes(5_000, n_questions=100)
    store, _ = fill(kept, 2_000)
    for row in range(2_000, 5_000):
        store.insert(kept.event(row), now=START)
    store.expire(at(HALF_S))


def measure_expiry(n: int) -> dict[str, Any]:
    """Half of n events expire: swept 10,000 at a time until none is left."""
    kept = make_boxes(n, n_questions=100)
    store, _ = fill(kept, n)
    check(kept, store, n, HALF_S)
    _warm_up()
    before = store.stats()["memory"], trimmed_rss()
    calls, n_swept, share = _sweep(store)
    after = store.stats()["memory"], trimmed_rss()
    wanted = int((kept.until_s <= HALF_S).sum())
    if n_swept != wanted or len(store) != n - wanted:
        raise WrongResult(f"{wanted:,} events have expired, {n_swept:,} were dropped")
    n_checked = check(kept, store, n, HALF_S)
    found: dict[str, Any] = {
        "n_events": n,
        "n_expired": n_swept,
        "n_checked_events": n_checked,
        "cpu_share": share,
        "us_per_event": round(1e6 * sum(calls) / max(1, n_swept), 3),
        "longest_call_s": round(max(calls), 3),
        "median_call_us": round(1e6 * median(calls), 1),
        "memory_before_mb": round(before[0] / 1e6, 1),
        "memory_after_mb": round(after[0] / 1e6, 1),
        "rss_given_back_mb": round((before[1] - after[1]) / 1e6, 1),
    }
    rows = np.random.default_rng(1).permutation(n)[:N_REMOVED].tolist()
    for name, keeper in keepers(kept, n).items():
        remove = _remover(keeper.remove)
        time_each(remove, rows[:_N_WARM_UP])
        found[name] = spread(time_each(remove, rows[_N_WARM_UP:]))
    return found


def _remover(remove: Callable[[list[int]], None]) -> Callable[[int], None]:
    return lambda row: remove([row])


def _sweep(store: EventStore) -> tuple[list[float], int, float]:
    """The seconds of each call, how many events were dropped, and the share of a core."""
    calls: list[float] = []
    n_swept = 0
    with no_gc():
        busy = thread_time()
        while True:
            start = perf_counter()
            n_dropped = store.expire(at(HALF_S), limit=SWEEP)
            calls.append(perf_counter() - start)
            n_swept += n_dropped
            if n_dropped < SWEEP:
                return calls, n_swept, round(min(1.0, (thread_time() - busy) / sum(calls)), 3)
