"""The join a user would write without us: events and subscriptions on range conditions."""

from __future__ import annotations

from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.bench.cases import BoxCase, WrongResult
from tamis.bench.measure import time_once
from tamis.bench.spark.events import events_table, write_events
from tamis.bench.spark.parquet import N_TASKS
from tamis.bench.workloads import Workload
from tamis.spark import match_to_parquet


def measure_join(spark: Any, folder: Path, scale: float) -> dict[str, Any]:
    """Events a second of both, Parquet to Parquet, at 100,000 subscriptions times the scale."""
    case = BoxCase.of("W1", 0.1 * scale)
    case.index.save(folder / "index")
    few, many = max(100, int(1_000 * scale)), max(2_000, int(200_000 * scale))
    write_events(events_table(case.workload, 0, few), folder / "few", N_TASKS)
    write_events(events_table(case.workload, 0, many), folder / "many", N_TASKS)
    pq.write_table(_boxes_table(case.workload), folder / "boxes.parquet")
    few_events, many_events = (spark.read.parquet(str(folder / x)) for x in ("few", "many"))
    boxes = spark.read.parquet(str(folder / "boxes.parquet")).repartition(N_TASKS).cache()
    boxes.count()
    joined = few_events.join(boxes, _conditions(few_events, boxes, case.workload.attributes))
    pairs = joined.select("id", "subscription_id")
    match_to_parquet(few_events, folder / "index", folder / "warm-up")
    pairs.limit(1).write.parquet(str(folder / "join-warm-up"))
    _, join_seconds = time_once(lambda: pairs.write.parquet(str(folder / "join")))
    written, our_seconds = time_once(
        lambda: match_to_parquet(many_events, folder / "index", folder / "ours")
    )
    _check(folder)
    ours, theirs = many / our_seconds, few / join_seconds
    return {
        "n_subscriptions": case.n_subscriptions,
        "join": {"n_events": few, "seconds": round(join_seconds, 3)},
        "ours": {
            "n_events": many,
            "seconds": round(our_seconds, 3),
            "n_matches": written.n_matches,
        },
        "join_events_per_second": round(theirs, 1),
        "our_events_per_second": round(ours, 1),
        "ratio": round(ours / theirs, 1),
    }


def _boxes_table(workload: Workload) -> pa.Table:
    columns: dict[str, Any] = {"subscription_id": [str(n) for n in range(len(workload.low))]}
    low = np.where(workload.low_open, np.nextafter(workload.low, np.inf), workload.low)
    high = np.where(workload.high_open, np.nextafter(workload.high, -np.inf), workload.high)
    for a, name in enumerate(workload.attributes):
        columns[f"low_{name}"], columns[f"high_{name}"] = low[:, a], high[:, a]
    return pa.table(columns)


def _conditions(events: Any, boxes: Any, attributes: Any) -> Any:
    one_by_one = (
        events[name].between(boxes[f"low_{name}"], boxes[f"high_{name}"]) for name in attributes
    )
    return reduce(and_, one_by_one)


def _check(folder: Path) -> None:
    """Compare what both found for the events that both had."""
    theirs = pq.read_table(folder / "join").to_pandas()
    ours = pq.read_table(folder / "warm-up", columns=["event_id", "subscription_id"]).to_pandas()
    pairs = [
        set(zip(frame.iloc[:, 0].astype(str), frame.iloc[:, 1].astype(str), strict=True))
        for frame in (ours, theirs)
    ]
    if pairs[0] != pairs[1]:
        raise WrongResult(
            f"the join found {len(pairs[1]):,} pairs, Tamis {len(pairs[0]):,}, "
            f"{len(pairs[0] & pairs[1]):,} of them in both; please report this"
        )
