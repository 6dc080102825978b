"""Cells of searches: filters of every kind over ads, by a filter tree and by the index."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from tamis.algorithms.filters import Filters
from tamis.bench.cases import WrongResult
from tamis.bench.mixed import MixedCase
from tamis.bench.reproduce.boxes import time_calls
from tamis.bench.reproduce.figures import OURS, Line
from tamis.index import Index
from tamis.matching import Attribute

N_EVENTS = 300
_TEXTS = ("mark", "model", "region", "seller")
_NUMBERS = {"price": 200_000, "year": 2_050, "mileage": 500_000, "area": 200, "rooms": 10}
ATTRIBUTES = (
    *(Attribute(name, is_text=True) for name in _TEXTS),
    *(Attribute(name, 0, high) for name, high in _NUMBERS.items()),
)
_FULL = 1_000_000

Match = Callable[[dict[str, Any]], Any]
Engine = Filters | Index


def make_searches(n: int) -> MixedCase:
    """So many saved searches and some ads."""
    return MixedCase(n / _FULL, n_events=N_EVENTS)


def measure_searches(case: MixedCase, line: Line) -> dict[str, Any]:
    """Latency of one event at a time, and how many a second that is on one core."""
    _build(line, case.subscriptions[:2_000])  # compiles
    start = perf_counter()
    engine = _build(line, case.subscriptions)
    seconds = perf_counter() - start
    _check(case, line, engine.match)
    found = time_calls(engine.match, case.events)
    return {
        "n_subscriptions": case.n_subscriptions,
        "build_s": seconds,
        "bytes": _bytes_of(engine),
        "match": found,
        "descent": _time_descents(engine, case),
        "events_per_s": 1e3 / found["mean_ms"],
        "matches_mean": float(np.mean([len(case.expected(e)) for e in case.checked_events])),
    }


def _build(line: Line, subscriptions: Any) -> Engine:
    if line.key == OURS:
        index = Index()
        index.add_many(subscriptions)
        return index
    filters = Filters(ATTRIBUTES, **line.parameters)
    filters.add_many(one.condition for one in subscriptions)
    return filters


def _bytes_of(engine: Engine) -> int:
    if isinstance(engine, Filters):
        return engine.memory_bytes()
    return int(engine.stats()["memory"]["total"])


def _time_descents(engine: Engine, case: MixedCase) -> dict[str, float]:
    """Of a filter tree the descent alone, without the revision behind it."""
    if not isinstance(engine, Filters):
        return {}
    rows = [engine.row_of(event) for event in case.events]
    return time_calls(engine.tree.match, [row for row in rows if row is not None])


def _check(case: MixedCase, line: Line, match: Match) -> None:
    for event in case.checked_events:
        found = match(case.events[event])
        ids = set(found) if line.key == OURS else {case.subscriptions[id].id for id in found}
        if ids != case.expected(event) or len(found) != len(ids):
            raise WrongResult(
                f"{line.label}, event {event}: {len(found):,} searches found, "
                f"{len(case.expected(event)):,} expected. Nothing was timed; please report this"
            )
