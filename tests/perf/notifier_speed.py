"""How fast the notifier is: ``python tests/perf/notifier_speed.py FOLDER``; prints one JSON object.

A prepared match log of 600,000 immediate matches of as many subscriptions is read 50,000 rows at a
time; then the stream is idle; then single matches arrive. The outbox is checked before anything is
computed from the times.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.spark import ParquetOutbox, notify_stream, session
from tamis.spark.notifier import stop_between_batches
from tests.integration.match_log import LOG_SCHEMA, SPARK_SCHEMA

N_FILES, N_ROWS, N_WARM = 12, 50_000, 4
N_SINGLE = 10


def write_rows(folder: Path, name: str, first: int, n_rows: int) -> None:
    """Immediate matches of the subscriptions from ``first`` on, as one file."""
    now = datetime.now(UTC)
    columns = {
        "event_id": [f"event-{first}-{n % 997}" for n in range(n_rows)],
        "subscription_id": [f"subscription-{first + n}" for n in range(n_rows)],
        "priority": pa.array((np.arange(n_rows) % 10).astype(np.int8)),
        "index_version": pa.array(np.ones(n_rows, np.int64)),
        "owner": [f"owner-{n % 5000}" for n in range(n_rows)],
        "event_time": [now] * n_rows, "matched_at": [now] * n_rows, "due": [now] * n_rows,
        "schedule": [""] * n_rows,
        "payload": [b"x" * 100] * n_rows,
    }  # fmt: skip
    aside = folder / f"_{name}.parquet"
    pq.write_table(pa.table(columns, LOG_SCHEMA), aside)
    aside.rename(folder / f"{name}.parquet")


def wait_for_batches(query: Any, n_rows: int, n_idle: int) -> list[dict[str, Any]]:
    """The progress of all micro-batches, once the rows are through and some were idle."""
    while True:
        assert query.isActive, query.exception()
        done = [json.loads(one.json) for one in query.recentProgress]
        is_idle = [one["numInputRows"] <= 2 for one in done]  # the heartbeat is read twice
        if (
            sum(one["numInputRows"] for one in done) >= n_rows
            and sum(is_idle[len(done) - n_idle :]) == n_idle
        ):
            return done
        time.sleep(0.2)


def cpu_seconds(spark: Any) -> float:
    """What Java has used of the processors so far; does not depend on who else uses them."""
    java = spark.sparkContext._gateway.proc.pid
    fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def time_single(folder: Path, outbox: ParquetOutbox, number: int) -> float:
    """Seconds from the writing of one match to its notification in the outbox."""
    before = set(outbox.path.iterdir())
    started = time.perf_counter()
    write_rows(folder, f"single{number}", 10_000_000 + number, 1)
    while not any(path.name[0] == "b" for path in set(outbox.path.iterdir()) - before):
        time.sleep(0.01)
    return time.perf_counter() - started


def main(folder: Path) -> dict[str, Any]:
    """Run it and return the figures."""
    log = folder / "log"
    log.mkdir()
    for number in range(N_FILES):
        write_rows(log, f"{number:04}", number * N_ROWS, N_ROWS)
    spark = session("speed", **{"spark.master": "local[2]", "spark.driver.memory": "2g"})
    matches = spark.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", 1)
    outbox = ParquetOutbox(folder / "outbox")
    query = notify_stream(
        matches.parquet(str(log)), outbox, checkpoint=folder / "checkpoint",
        interval=timedelta(milliseconds=200),
    ).query  # fmt: skip
    wait_for_batches(query, N_WARM * N_ROWS, n_idle=0)
    warm_cpu, n_warm_rows = (
        cpu_seconds(spark),
        sum(one.numInputRows for one in query.recentProgress),
    )
    wait_for_batches(query, N_FILES * N_ROWS, n_idle=0)
    cpu = cpu_seconds(spark) - warm_cpu
    done = wait_for_batches(query, N_FILES * N_ROWS, n_idle=6)
    told = outbox.read()["subscription_id"].to_pylist()
    assert len(told) == len(set(told)) == N_FILES * N_ROWS
    latencies = [time_single(log, outbox, number) for number in range(N_SINGLE)]
    stop_between_batches(query)
    spark.stop()
    full = [one for one in done if one["numInputRows"] >= N_ROWS][N_WARM:]
    idle = [one for one in done if one["numInputRows"] <= 2][-5:]
    rates = [N_ROWS / one["durationMs"]["triggerExecution"] * 1000 for one in full]
    return {
        "subscriptions notified a second, median": round(median(rates)),
        "slowest and fastest micro-batch": [round(min(rates)), round(max(rates))],
        "processor time for each, µs": round(cpu / (N_FILES * N_ROWS - n_warm_rows) * 1e6, 1),
        "where a full micro-batch spends its ms": shares(full),
        "idle micro-batch with 600,000 pairs remembered, ms": shares(idle),
        "latency of one match, s": {"median": round(median(latencies), 2),
                                    "highest": round(max(latencies), 2)},
    }  # fmt: skip


def shares(batches: list[dict[str, Any]]) -> dict[str, float]:
    """Medians of the durations, and of the times the state operators sum over their tasks."""
    rows = [
        {
            **one["durationMs"],
            **{
                f"{operator['operatorName']}.{name}": operator[f"{name}TimeMs"]
                for operator in one["stateOperators"]
                for name in ("allUpdates", "allRemovals", "commit")
            },
        }
        for one in batches
    ]
    medians = {name: median(row.get(name, 0) for row in rows) for name in rows[0]}
    return {name: value for name, value in medians.items() if value >= 10}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1])), indent=1))
