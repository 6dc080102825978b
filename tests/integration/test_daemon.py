"""Python workers are forked from our daemon: they have at once what they need, and it survives."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException

from tamis import Index, Subscription
from tamis.spark import daemon, match
from tests.integration.spark_cluster import parents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def index_of(filter: str) -> Index:
    index = Index()
    index.add(Subscription("s", filter))
    return index


def look(spark: SparkSession) -> list[dict[str, Any]]:
    """What two workers say of themselves, before they have imported anything."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc
        import sys
        import threading

        for _ in batches:
            pass
        time.sleep(0.5)  # so that the other task has another worker
        settling: Any = sys.modules.get("tamis.kernels.settling")
        said = {
            "pid": os.getpid(),
            "parent": os.getppid(),
            "threads": threading.active_count(),
            "frozen": gc.get_freeze_count(),
            "imported": "tamis.spark.match_files" in sys.modules,
            "loaded": len(getattr(settling.settle_one, "overloads", ())) if settling else 0,
        }
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(said)])], ["said"])

    rows = spark.range(0, 2, 1, 2).mapInArrow(tell, "said string").collect()
    return [json.loads(row.said) for row in rows]


def test_workers_have_what_they_need(spark: SparkSession) -> None:
    index_of("x < 1").match({"x": 0})  # its kernels are on the disk from here on
    told = look(spark)
    assert len({one["pid"] for one in told}) == 2
    (parent,) = {one["parent"] for one in told}
    command = Path(f"/proc/{parent}/cmdline").read_bytes().split(b"\0")
    assert b"tamis.spark.daemon" in command
    for one in told:
        assert one["imported"]
        assert one["frozen"] > 100_000
        assert one["loaded"] > 0
    threads = list(Path(f"/proc/{parent}/task").iterdir())
    others = {(thread / "comm").read_text() for thread in threads if thread.name != str(parent)}
    # A fork copies no other thread; this one, of Arrow's library, is started again by itself.
    assert others <= {"jemalloc_bg_thd\n"}


def test_workers_are_used_again(spark: SparkSession) -> None:
    before = {one["pid"] for one in look(spark)}
    assert {one["pid"] for one in look(spark)} == before


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_another_daemon_takes_over(spark: SparkSession, by: signal.Signals) -> None:
    told = look(spark)
    first, workers = told[0]["parent"], [one["pid"] for one in told]
    os.kill(first, by)
    for pid in workers if by == signal.SIGKILL else []:
        os.kill(pid, by)  # who would live on; of a SIGTERM the daemon tells them
    deadline = time.monotonic() + 60
    while {first, *workers} & parents().keys():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for _ in workers:  # a job that is given one of them fails, as Spark tries once on one machine
        with suppress(PythonException, Py4JJavaError):
            look(spark)
    assert first not in {one["parent"] for one in look(spark)}
    events = spark.createDataFrame([("e1", 3.0), ("e2", 30.0)], "id string, x double")
    assert [row.event_id for row in match(events, index_of("x < 10")).collect()] == ["e1"]


def test_a_daemon_that_cannot_prepare_still_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says why on stderr: Spark reads from its stdout, where nothing else may be."""
    calls = []

    def fail() -> None:
        print("preparing")
        raise ImportError("no numba")

    monkeypatch.setattr("pyspark.daemon.manager", lambda: calls.append("manager"))
    monkeypatch.setattr(daemon, "prepare", fail)
    daemon.main()
    said = capsys.readouterr()
    assert (calls, said.out) == (["manager"], "")
    assert said.err.startswith("preparing\n")
    assert said.err.endswith("ImportError: no numba\n")
