"""A stream at a steady rate: how long a match takes, and whether lag and memory stay flat."""

from __future__ import annotations

import json
import shutil
import threading
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.bench.cases import BoxCase, WrongResult
from tamis.bench.spark.events import events_table, put
from tamis.bench.spark.memory import Memory, memory_now
from tamis.bench.workloads import Workload
from tamis.spark import ChangeDirectory, EventMapping, MatchLog, match_stream

PER_SECOND = 2_000
_EVERY_S = 0.25
_WARM_UP_S = 20.0
_NEWCOMER_EVERY_S = 15.0
_SAMPLE_EVERY_S = 2.0
_PATIENCE_S = 60.0
_POLL_S = 0.02

Tell = Callable[[str], None]


def measure_stream(
    spark: Any, folder: Path, scale: float, seconds: float, tell: Tell
) -> dict[str, Any]:
    """W1 at 2,000 events a second, with a new subscription now and then."""
    case = BoxCase.of("W1", scale)
    for name in ("events", "changes"):
        (folder / name).mkdir(parents=True)
    first = events_table(case.workload, 0, 1, with_time=True)
    put(first, folder / "events", "00000000.parquet")
    schema = spark.read.parquet(str(folder / "events")).schema
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1_000)
    stream = match_stream(
        events.parquet(str(folder / "events")),
        case.index,
        changes=ChangeDirectory(folder / "changes"),
        checkpoint=folder / "state",
        mapping=EventMapping(time="time"),
        trigger={"processingTime": "250 milliseconds"},
    )
    feeder = Feeder(case.workload, folder, _WARM_UP_S + seconds)
    reader = LogReader(stream.log, feeder.saved_at)
    try:
        run = _watch(stream, feeder, reader, seconds, tell)
    finally:
        feeder.stop()
        stream.stop()
    found = run.found(feeder, reader)
    return {"n_subscriptions": case.n_subscriptions, "seconds": seconds, **found}


class Feeder(threading.Thread):
    """Puts a file of events into the folder every quarter of a second, and saves newcomers."""

    def __init__(self, workload: Workload, folder: Path, seconds: float) -> None:
        super().__init__(name="feeder", daemon=True)
        self.n_events = 1  # the first is there already
        self.saved_at: dict[str, float] = {}
        self.latest_s = 0.0  # the most it was late
        self._workload, self._folder, self._seconds = workload, folder, seconds
        self._is_over = threading.Event()

    def run(self) -> None:
        """Feed until the time is over."""
        start = time.monotonic()
        next_newcomer = _WARM_UP_S
        n_files = int(self._seconds / _EVERY_S)
        for number in range(1, n_files + 1):
            wait = start + number * _EVERY_S - time.monotonic()
            if self._is_over.wait(max(0.0, wait)):
                return
            self.latest_s = max(self.latest_s, -wait)
            n_events = int(PER_SECOND * _EVERY_S)
            table = events_table(self._workload, self.n_events, n_events, with_time=True)
            put(table, self._folder / "events", f"{number:08}.parquet")
            self.n_events += n_events
            if number * _EVERY_S >= next_newcomer and not number * _EVERY_S > self._seconds - 5:
                next_newcomer += _NEWCOMER_EVERY_S
                self._save(len(self.saved_at) + 1)

    def _save(self, sequence: int) -> None:
        id = f"newcomer-{sequence}"
        name = self._workload.attributes[0]
        line = {"sequence": sequence, "op": "upsert", "id": id, "filter": f"{name} IS NOT NULL"}
        aside = self._folder / "changes" / f".{sequence}"
        aside.write_text(json.dumps(line) + "\n")
        aside.rename(self._folder / "changes" / f"{sequence:08}.jsonl")
        self.saved_at[id] = time.time()

    def stop(self) -> None:
        """Feed no more."""
        self._is_over.set()
        self.join()


class LogReader:
    """Reads each batch of the match log as soon as it is there, and takes it away."""

    def __init__(self, log: MatchLog, newcomers: Iterable[str]) -> None:
        self._log, self._next = log, 0
        self._newcomers = newcomers  # and more of them as they come
        self.n_matches = 0
        self.event_times = array("d")  # when each matched event was made
        self.waits = array("d")  # and how long after that its matches were in the log
        self.first_seen: dict[str, float] = {}

    def read(self) -> None:
        """Read what is new."""
        while (folder := self._log.path / f"batch={self._next}").exists():
            published = folder.stat().st_ctime
            for file in folder.glob("matches-*.parquet"):
                self._read_file(file, published)
            shutil.rmtree(folder)
            self._next += 1

    def _read_file(self, file: Path, published: float) -> None:
        table = pq.read_table(file, columns=["event_id", "event_time", "subscription_id"],
                              read_dictionary=["event_id", "subscription_id"])  # fmt: skip
        self.n_matches += table.num_rows
        times = table["event_time"].combine_chunks().cast("int64").to_numpy()
        ids = table["event_id"].combine_chunks()
        _, firsts = np.unique(ids.indices.to_numpy(), return_index=True)
        made = times[firsts] / 1e6
        self.event_times.frombytes(made.tobytes())
        self.waits.frombytes((published - made).tobytes())
        texts = table["subscription_id"].combine_chunks().dictionary
        for id in sorted(set(self._newcomers) - self.first_seen.keys()):
            if pc.index(texts, id).as_py() >= 0:
                self.first_seen[id] = published


@dataclass(slots=True)
class _Run:
    """What was seen on the way."""

    started: float
    lags: list[tuple[float, int]] = field(default_factory=list)  # seconds, events not matched yet
    memory: list[Memory] = field(default_factory=list)
    n_matched: int = 0

    def found(self, feeder: Feeder, reader: LogReader) -> dict[str, Any]:
        """The results: latencies after the warm-up, lag and memory by thirds of the run."""
        if self.n_matched != feeder.n_events:
            raise WrongResult(f"{feeder.n_events:,} events were fed, {self.n_matched:,} matched")
        is_counted = np.array(reader.event_times) >= self.started + _WARM_UP_S
        waits = np.array(reader.waits)[is_counted]
        effect = [reader.first_seen[id] - at for id, at in feeder.saved_at.items()]
        workers = [max(one.workers, default=0.0) for one in self.memory]
        return {
            "events_per_second": PER_SECOND,
            "n_events": feeder.n_events,
            "n_matches": reader.n_matches,
            "feeder_late_s": round(feeder.latest_s, 3),
            "event_to_match_p50_s": round(float(np.median(waits)), 3),
            "event_to_match_p99_s": round(float(np.percentile(waits, 99)), 3),
            "event_to_match_max_s": round(float(waits.max()), 3),
            "newcomers": len(effect),
            "newcomer_p50_s": round(float(np.median(effect)), 3),
            "newcomer_max_s": round(max(effect), 3),
            "lag_events_by_third": _by_third([lag for _, lag in self.lags]),
            "java_mb_by_third": _by_third([one.java for one in self.memory]),
            "driver_mb_by_third": _by_third([one.driver for one in self.memory]),
            "worker_private_mb_by_third": _by_third(workers),
            "worker_private_mb_max": round(max(workers), 1),
            "daemon_mb_max": round(max(one.daemon for one in self.memory), 1),
        }


def _watch(stream: Any, feeder: Feeder, reader: LogReader, seconds: float, tell: Tell) -> _Run:
    """Follow the stream until all that was fed is matched."""
    run = _Run(time.time())
    feeder.start()
    next_sample = run.started + _WARM_UP_S
    deadline = run.started + _WARM_UP_S + seconds + _PATIENCE_S
    while feeder.is_alive() or stream.totals.n_events < feeder.n_events:
        if not stream.query.isActive:
            raise WrongResult(f"the stream ended: {stream.query.exception()}")
        if time.time() > deadline:
            break
        reader.read()
        if time.time() >= next_sample:
            next_sample += _SAMPLE_EVERY_S
            lag = feeder.n_events - stream.totals.n_events
            run.lags.append((time.time() - run.started, lag))
            run.memory.append(memory_now())
            tell(f"{feeder.n_events:,} events, {lag:,} behind")
        time.sleep(_POLL_S)
    time.sleep(1.0)
    reader.read()
    run.n_matched = stream.totals.n_events
    return run


def _by_third(values: list[float]) -> list[float]:
    """The medians of the first, the second and the last third."""
    return [round(float(np.median(part)), 1) for part in np.array_split(np.array(values), 3)]
