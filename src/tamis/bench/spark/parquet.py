"""Parquet to Parquet: a file of events, a file of matches, beside the engine alone."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from tamis.bench.cases import BoxCase, WrongResult
from tamis.bench.measure import time_once
from tamis.bench.spark.events import events_table, write_events
from tamis.bench.workloads import columns_of
from tamis.spark import match_to_parquet

ROUNDS = 5
N_TASKS = 2
_N_EVENTS = 1_600_000  # for a million subscriptions: fifteen seconds, in which a start is little
_BATCH = 1_000
_ENGINE_S = 1.0


def measure_parquet(spark: Any, folder: Path, scale: float) -> dict[str, Any]:
    """W1 on two cores, against twice the rate of the engine in batches of 1,000 on one."""
    n_events = max(2_000, int(_N_EVENTS * scale))
    case = BoxCase.of("W1", scale)
    index = case.index
    index.save(folder / "index")
    write_events(events_table(case.workload, 0, n_events), folder / "events", N_TASKS)
    events = spark.read.parquet(str(folder / "events"))
    small = spark.createDataFrame(events.limit(100).toPandas())
    match_to_parquet(small.repartition(N_TASKS), folder / "index", folder / "warm-up")
    wanted = _n_matches(case, n_events)
    engine, whole = [], []
    for number in range(ROUNDS):
        before = _engine_rate(case, scale)
        to_parquet = partial(match_to_parquet, events, folder / "index", folder / f"found-{number}")
        written, seconds = time_once(to_parquet)
        if (written.n_events, written.n_matches) != (n_events, wanted):
            raise WrongResult(
                f"{written.n_events:,} events gave {written.n_matches:,} matches through Spark, "
                f"{n_events:,} gave {wanted:,} without; please report this"
            )
        whole.append(n_events / seconds)
        engine.append((before + _engine_rate(case, scale)) / 2)  # the machine may change meanwhile
        shutil.rmtree(folder / f"found-{number}")
    return {
        "n_subscriptions": case.n_subscriptions,
        "n_events": n_events,
        "n_matches": wanted,
        "engine_events_per_second": round(median(engine)),
        "spark_events_per_second": round(median(whole)),
        "rounds": [[round(e), round(w)] for e, w in zip(engine, whole, strict=True)],
        "share_of_two_cores": round(
            median(w / (2 * e) for e, w in zip(engine, whole, strict=True)), 3
        ),
    }


def _engine_rate(case: BoxCase, scale: float) -> float:
    """Events a second of the engine in batches on one core."""
    batch, n_events, n_batches = case.batch(), len(case.events), 0
    case.index.match_batch(batch)
    begun = perf_counter()
    while (seconds := perf_counter() - begun) < max(0.01, _ENGINE_S * scale):
        case.index.match_batch(batch)
        n_batches += 1
    return n_batches * n_events / seconds


def _n_matches(case: BoxCase, n_events: int) -> int:
    """How many matches the engine finds for events that repeat those of the workload."""
    values = case.workload.values
    n_all = 0
    for first in range(0, len(values), _BATCH):
        part = values[first : first + _BATCH]
        found = case.index.match_batch(columns_of(case.workload.attributes, part))
        whole, rest = divmod(n_events, len(values))
        n_all += whole * found.n_matches
        n_all += int(found.offsets[min(max(rest - first, 0), len(part))])
    return n_all
