"""The notifier: a streaming query from the match log to an outbox."""

from __future__ import annotations

import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.delivery.caps import apply_caps
from tamis.errors import PipelineError
from tamis.spark.checkpoints import settings_of_query
from tamis.spark.clock import ClockGuard, batch_times
from tamis.spark.digests import MATCH_COLUMNS, digests, notifications
from tamis.spark.jobs import stoppable
from tamis.spark.ledger import LedgerStore
from tamis.spark.outbox import OUTBOX_ORDER, Outbox, read_folder
from tamis.spark.rest import Rest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["notify_stream", "stop_between_batches"]

_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Write the changes of a micro-batch, not all of the state.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting its rows would cost one look-up more for every write.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    # Spark would write the 12-byte times of old Impala.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def notify_stream(
    matches: DataFrame,
    outbox: Outbox,
    *,
    checkpoint: str | Path,
    retention: timedelta = timedelta(hours=1),
    interval: timedelta | None = timedelta(seconds=1),
    name: str = "tamis-notifier",
    log: str | Path | None = None,
) -> NotifyStream:
    """Start a query that tells subscriptions of their matches when they are due.

    ``matches`` is a streaming DataFrame with the columns of the match log
    (:data:`~tamis.spark.digests.MATCH_COLUMNS`). The same event is told to a subscription once
    within ``retention`` of its due time. Every ``interval`` a micro-batch takes up new matches and
    publishes what was due when the one before it started; with ``None`` the query takes up the
    matches that are there, publishes what is due, and ends. Where ``log`` names the folder of the
    match log that ``matches`` are read from, all of them and as they are, micro-batches with
    nothing to do are left out.

    Stopped or killed, it goes on from its checkpoint, and the outbox ends up the same.
    docs/notifications.md has the rules. ::

        outbox = ParquetOutbox("outbox")
        query = notify_stream(matches, outbox, checkpoint="checkpoints/notifier")
    """
    _check_columns(matches)
    if retention < timedelta(seconds=1):
        raise PipelineError(f"the retention {retention} is too short; expected 1 s or more")
    folder = Path(checkpoint).absolute()
    publisher = _Publisher(outbox, folder, None if log is None else Rest(folder, Path(log)))
    if interval is None:
        publisher.wake()
    has_text = pa.types.is_string(outbox.schema.field("matches").type)
    with settings_of_query(matches.sparkSession, folder, _SETTINGS):
        rows = notifications(digests(matches, retention), has_text)
        writer = rows.writeStream.queryName(name).outputMode("append")
        writer = writer.option("checkpointLocation", str(publisher.checkpoint))
        if interval is None:
            writer = writer.trigger(availableNow=True)
        else:
            pause_ms = interval // timedelta(milliseconds=1)
            writer = writer.trigger(processingTime=f"{pause_ms} milliseconds")
        return NotifyStream(writer.foreachBatch(stoppable(publisher.publish)).start(), publisher)


class NotifyStream:
    """A running notifier."""

    def __init__(self, query: StreamingQuery, publisher: _Publisher) -> None:
        self.query = query
        """Spark's own handle: ``awaitTermination``, ``lastProgress``, ``exception`` and so on."""
        self._publisher = publisher

    @property
    def n_notifications(self) -> int:
        """How many notifications were published since this was started."""
        return self._publisher.n_notifications

    def rest_in(self, batch: int) -> float:
        """How many seconds of a micro-batch were rest; of the last two."""
        rest = self._publisher.rest
        return 0.0 if rest is None else rest.seconds_in(batch)

    def wake(self) -> None:
        """Take no rest any more: to be called before the query is stopped, which it would delay."""
        self._publisher.wake()

    def stop(self) -> None:
        """Stop after what is being done; the next start goes on from there."""
        self.wake()
        self.query.stop()


def stop_between_batches(query: StreamingQuery, timeout: timedelta = timedelta(minutes=1)) -> None:
    """Stop a query once its micro-batch has ended; in any case when ``timeout`` has passed.

    Nothing is lost by stopping at any other moment, but Spark then fills the log with errors.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    before = query.lastProgress
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        last = query.lastProgress
        if last is not None and (before is None or last.batchId != before.batchId):
            break  # one has just ended, and the next is still being planned
        time.sleep(0.005)
    query.stop()


class _Publisher:
    """Does what Spark's own operators do not: rate caps, and handing over to the outbox."""

    def __init__(self, outbox: Outbox, checkpoint: Path, rest: Rest | None = None) -> None:
        self.outbox = outbox
        self.checkpoint = checkpoint
        self.rest = rest
        self.n_notifications = 0
        self._aside = outbox.prepare(checkpoint)
        shutil.rmtree(self._aside, ignore_errors=True)  # of runs that were killed
        self._ledgers = LedgerStore(checkpoint / "caps")
        self._guard = ClockGuard(checkpoint)
        self._guard.wait()

    def wake(self) -> None:
        """Take no rest any more; what waits is noted all the same."""
        if self.rest is not None:
            self.rest.wake()

    def publish(self, rows: DataFrame, batch: int) -> None:
        """Write the notifications of a micro-batch aside, apply the rate caps, hand them over."""
        # A new folder each time: an executor that outlives a driver may still write to its last.
        aside = self._aside / f"{batch}-{uuid4().hex}"
        ordered = rows.sortWithinPartitions("is_capped", *OUTBOX_ORDER)
        # Also where the outbox has the micro-batch already: the state is computed on the way.
        ordered.write.partitionBy("is_capped").parquet(str(aside))
        told = aside / "is_capped=false"
        self._apply_caps(batch, aside / "is_capped=true", told)
        if told.exists():
            n_told = sum(pq.read_metadata(file).num_rows for file in told.glob("*.parquet"))
            self.outbox.publish(batch, told)
            self.n_notifications += n_told
        shutil.rmtree(aside)
        if self.rest is not None:
            # A cap may tell of what it held back, whenever its window ends.
            has_caps = self._ledgers.before(batch + 1).num_rows > 0
            self.rest.take(batch, may_last=not has_caps)
        self._guard.wait()

    def _apply_caps(self, batch: int, capped: Path, told: Path) -> None:
        """Add to ``told`` what the rate caps allow of ``capped``, and write the next ledger."""
        ledger = self._ledgers.before(batch)
        if not ledger.num_rows and not capped.exists():
            return
        schema = self.outbox.schema
        rows = read_folder(capped, schema) if capped.exists() else schema.empty_table()
        times = batch_times(self.checkpoint, batch)
        allowed, following = apply_caps(rows, ledger, times.watermark_us)
        # First the ledger: where the outbox has a micro-batch, its ledger is there too.
        if not following.equals(ledger):
            self._ledgers.write(batch, following)
        if allowed.num_rows:
            told.mkdir(exist_ok=True)
            pq.write_table(allowed, told / "capped.parquet")


def _check_columns(matches: DataFrame) -> None:
    absent = [name for name in MATCH_COLUMNS if name not in matches.columns]
    if absent:
        raise PipelineError(
            f"the matches have no column {absent[0]!r}; expected {', '.join(MATCH_COLUMNS)}"
        )
    if not matches.isStreaming:
        raise PipelineError("the matches are not a stream; expected one, as spark.readStream gives")
