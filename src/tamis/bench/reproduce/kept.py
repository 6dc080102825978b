"""Cells of kept events: subscription matching, keeping and dropping events, memory (MO-Tree)."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np

from tamis.algorithms import make
from tamis.bench.cases import WrongResult
from tamis.bench.reproduce.boxes import LOT, N_LOTS, BoxSet, Ids, time_calls, time_lots
from tamis.bench.reproduce.figures import Line
from tamis.bench.workloads import SEED, Floats, Workload
from tamis.matching import EventMatcher, Table

N_QUERIES = 100
_N_CHECKED = 5


class Kept:
    """Events that are kept, the subscriptions that ask for them, and further events."""

    def __init__(self, queries: Workload, values: Floats) -> None:
        self.queries, self.values = queries, values
        n_more = 1 + N_LOTS * LOT
        order = np.random.default_rng([SEED, 42]).permutation(len(values))[:n_more]
        self.newcomers = values[order] * 0.999
        self.tables = [
            Table.from_boxes(queries.low[[row]], queries.high[[row]])
            for row in range(min(N_QUERIES, queries.n_subscriptions))
        ]

    def expected(self, query: int) -> Ids:
        """The events a subscription accepts, by plain NumPy."""
        low, high = self.queries.low[query], self.queries.high[query]
        asks = ~np.isnan(low)
        held = self.values[:, asks]
        accepted = ((low[asks] <= held) & (held <= high[asks])).all(axis=1)
        return np.flatnonzero(accepted).astype(np.int32)

    def build(self, line: Line) -> tuple[EventMatcher, float]:
        """A matcher that keeps the events, checked; and the seconds that took."""
        sample: EventMatcher = make(line.algorithm, self.queries.attributes, **line.parameters)
        sample.add_events(self.values[:2_000])
        sample.match_subscription(self.tables[0])
        sample.remove_events([0])
        matcher: EventMatcher = make(line.algorithm, self.queries.attributes, **line.parameters)
        start = process_time()
        matcher.add_events(self.values)
        seconds = process_time() - start
        for query in range(min(_N_CHECKED, len(self.tables))):
            found, wanted = matcher.match_subscription(self.tables[query]), self.expected(query)
            if not np.array_equal(found, wanted):
                raise WrongResult(
                    f"{line.label}, subscription {query}: {len(found):,} events found, "
                    f"{len(wanted):,} expected. Nothing was timed; please report this"
                )
        return matcher, seconds


def measure_kept(case: Kept, line: Line) -> dict[str, Any]:
    """Subscription matching, and adding and removing events."""
    matcher, seconds = case.build(line)
    match = time_calls(matcher.match_subscription, case.tables)
    matcher.remove_events(matcher.add_events(case.newcomers))  # makes room for them
    rows = np.arange(len(case.newcomers), dtype=np.int32)
    added, removed = time_lots(lambda lot: _time_lot(matcher, case.newcomers[lot]), rows)
    return {
        "n_kept": len(case.values),
        "build_s": seconds,
        "match": match,
        "insert_us": added,
        "remove_us": removed,
        "bytes": matcher.memory_bytes(),
        "matches_mean": float(np.mean([len(case.expected(q)) for q in range(_N_CHECKED)])),
    }


def _time_lot(matcher: EventMatcher, values: Floats) -> tuple[float, float]:
    start = process_time()
    ids = matcher.add_events(values)
    middle = process_time()
    matcher.remove_events(ids)
    return (middle - start) / len(ids), (process_time() - middle) / len(ids)


class Both:
    """As many subscriptions as events, kept together."""

    def __init__(self, boxes: BoxSet, values: Floats) -> None:
        self.boxes, self.values = boxes, values


def measure_memory(case: Both, line: Line) -> dict[str, Any]:
    """The size of what holds both: one structure, or one for each ("a+b")."""
    names = line.algorithm.split("+")
    attributes = case.boxes.workload.attributes
    matchers = [make(name, attributes, **line.parameters) for name in names]
    matchers[0].add_many(case.boxes.table)
    matchers[-1].add_events(case.values)
    return {
        "n_subscriptions": len(matchers[0]),
        "n_kept": len(case.values),
        "bytes": sum(matcher.memory_bytes() for matcher in matchers),
    }
