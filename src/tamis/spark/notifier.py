"""The notifier: a streaming query from the match log to an outbox."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import PipelineError
from tamis.spark.clock import ClockGuard
from tamis.spark.digests import MATCH_COLUMNS, digests, notifications
from tamis.spark.outbox import Outbox

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["notify_stream"]

_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Write the changes of a micro-batch, not all of the state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    # Spark would write the 12-byte times of old Impala.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def notify_stream(
    matches: DataFrame,
    outbox: Outbox,
    *,
    checkpoint: str | Path,
    retention: timedelta = timedelta(days=1),
    interval: timedelta | None = timedelta(seconds=1),
    name: str = "tamis-notifier",
) -> StreamingQuery:
    """Start telling subscriptions of their matches; docs/notifications.md has the rules."""
    folder = Path(checkpoint).absolute()
    guard = ClockGuard(folder)
    guard.wait()

    def publish(batch_frame: DataFrame, batch: int) -> None:
        aside = outbox.aside / str(batch)
        shutil.rmtree(aside, ignore_errors=True)
        rows = notifications(batch_frame).sortWithinPartitions("is_capped", "priority", "due", "subscription_id", "part")
        rows.write.partitionBy("is_capped").parquet(str(aside))
        told = aside / "is_capped=false"
        if told.exists():
            outbox.publish(batch, told)
        shutil.rmtree(aside)
        guard.wait()

    groups = digests(matches, retention)
    spark = matches.sparkSession
    with _settings(spark):
        writer = groups.writeStream.queryName(name).foreachBatch(publish).outputMode("append")
        writer = writer.option("checkpointLocation", str(folder))
        if interval is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(
                processingTime=f"{interval // timedelta(milliseconds=1)} milliseconds"
            )
        return writer.start()


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """Apply the notifier's settings while a query is started, which keeps a copy of them."""
    before = {key: spark.conf.get(key, None) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
