"""Notifications through Spark: due times, digests, once only, across restarts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.spark.digests import MATCH_COLUMNS
from tamis.spark.notifier import notify_stream
from tamis.spark.outbox import ParquetOutbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

INSTANT = pa.timestamp("us", "UTC")
LOG_SCHEMA = pa.schema(
    [
        ("event_id", pa.string()), ("subscription_id", pa.string()), ("priority", pa.int8()),
        ("index_version", pa.int64()), ("owner", pa.string()), ("event_time", INSTANT),
        ("matched_at", INSTANT), ("due", INSTANT), ("schedule", pa.string()),
        ("payload", pa.binary()),
    ]
)  # fmt: skip


def match(event: str, subscription: str, due: datetime, **others: Any) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "event_id": event, "subscription_id": subscription, "priority": 5, "index_version": 1,
        "owner": "", "event_time": now, "matched_at": now, "due": due, "schedule": "",
        "payload": None, **others,
    }  # fmt: skip


class MatchLog:
    """A folder of Parquet files that a stream reads; every write appears whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.n_files = 0

    def append(self, rows: list[dict[str, Any]]) -> None:
        self.n_files += 1
        aside = self.path / f"_{self.n_files}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, LOG_SCHEMA), aside)
        aside.rename(self.path / f"{self.n_files}.parquet")

    def read(self, spark: SparkSession) -> Any:
        schema = ", ".join(f"{name} {kind}" for name, kind in MATCH_COLUMNS.items())
        return spark.readStream.schema(schema).parquet(str(self.path))


class Notifier:
    """A match log, an outbox, and the query between them, run until what is due is out."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.log = MatchLog(folder / "log")
        self.outbox = ParquetOutbox(folder / "outbox")

    def run(self, retention: timedelta = timedelta(hours=1)) -> list[dict[str, Any]]:
        """Take up what is in the log, release what is due, stop; all that is in the outbox."""
        query = notify_stream(
            self.log.read(self.spark), self.outbox, checkpoint=self.folder / "checkpoint",
            retention=retention, interval=None,
        )  # fmt: skip
        assert query.awaitTermination(120)
        return self.outbox.read().to_pylist()


def test_walk(spark: SparkSession, tmp_path: Path) -> None:
    notifier = Notifier(spark, tmp_path)
    now = datetime.now(UTC)
    notifier.log.append([match("e1", "s1", now), match("e2", "s1", now), match("e1", "s2", now)])
    told = notifier.run()
    assert {one["subscription_id"]: [m["event_id"] for m in one["matches"]] for one in told} == {
        "s1": ["e1", "e2"], "s2": ["e1"],
    }  # fmt: skip
