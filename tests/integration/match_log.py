"""A match log for the tests of the notifier: rows, and a folder a stream reads them from."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.spark.digests import MATCH_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INSTANT = pa.timestamp("us", "UTC")
LOG_SCHEMA = pa.schema(
    [
        ("event_id", pa.string()), ("subscription_id", pa.string()), ("priority", pa.int8()),
        ("index_version", pa.int64()), ("owner", pa.string()), ("event_time", INSTANT),
        ("matched_at", INSTANT), ("due", INSTANT), ("schedule", pa.string()),
        ("payload", pa.binary()),
    ]
)  # fmt: skip
SPARK_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in MATCH_COLUMNS.items())


def match(event: str, subscription: str, due: datetime, **others: Any) -> dict[str, Any]:
    """One row, with everything but the ids and the due time left to their defaults."""
    now = datetime.now(UTC)
    return {
        "event_id": event, "subscription_id": subscription, "priority": 5, "index_version": 1,
        "owner": "", "event_time": now, "matched_at": now, "due": due, "schedule": "",
        "payload": None, **others,
    }  # fmt: skip


class MatchLog:
    """A folder of Parquet files; every file appears whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_files = 0
        path.mkdir()

    def append(self, rows: list[dict[str, Any]]) -> None:
        self.n_files += 1
        aside = self.path / f"_{self.n_files}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, LOG_SCHEMA), aside)
        aside.rename(self.path / f"{self.n_files}.parquet")


def read_log(spark: SparkSession, path: Path) -> DataFrame:
    """The log as a stream."""
    return spark.readStream.schema(SPARK_SCHEMA).parquet(str(path))
