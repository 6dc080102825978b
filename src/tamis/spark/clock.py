"""The notifier's clock: a watermark that follows the time of day, not the data.

Spark emits a group when the *watermark* passes its event time, and moves the watermark to the
largest event time seen less a delay. For due times that is wrong twice: one match that is due next
month would release everything before it, and without new matches nothing would ever be released.

So a heartbeat joins the stream, one row in each micro-batch, whose event time is the time of the
micro-batch plus the delay. There are two watermarks in the plan: one over matches and heartbeat,
which far due times push ahead, and one over the heartbeat alone, which is exactly the time of the
last micro-batch. Spark uses the smaller. docs/decisions/0006-notifier-clock.md has the reasons.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tamis.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DUE", "BatchTimes", "ClockGuard", "batch_times", "follow_clock"]

DUE = "due"
"""The event-time column: when a match is due, but never before the micro-batch that reads it."""

_IS_BEAT = "is_beat"
_LONGEST_WAIT_S = 60.0


def follow_clock(matches: DataFrame, retention: timedelta) -> DataFrame:
    """Give ``matches`` a watermark on their due time that is the time of the last micro-batch.

    Due times that have passed become the time of the micro-batch, so that no match is ever late.
    The delay of the watermark is ``retention``, and has no other effect than that
    ``dropDuplicatesWithinWatermark`` remembers a row for that long after its due time.
    """
    from pyspark.sql import functions as f

    delay = f"{-(-retention // timedelta(seconds=1))} seconds"  # in whole ones, no fewer
    now = f.current_timestamp()  # of the micro-batch: Spark's log keeps it for a replay
    rows = matches.withColumn(DUE, f.greatest(DUE, now)).withColumn(_IS_BEAT, f.lit(False))
    source = matches.sparkSession.readStream.format("rate-micro-batch")
    beat = (
        source.option("rowsPerBatch", 1)
        .option("numPartitions", 1)
        .load()
        .select(
            *(f.lit(None).cast(field.dataType).alias(field.name) for field in matches.schema
              if field.name != DUE),
            (now + f.expr(f"INTERVAL {delay}")).alias(DUE),
            f.lit(True).alias(_IS_BEAT),
        )
    )  # fmt: skip
    either = rows.unionByName(beat).withWatermark(DUE, delay)
    clocked = either.unionByName(beat.withWatermark(DUE, delay))
    # Naming the event time keeps Spark from moving this filter below the watermarks.
    is_match = ~f.col(_IS_BEAT) | (f.col(DUE) < f.timestamp_seconds(f.lit(0)))
    return clocked.filter(is_match).drop(_IS_BEAT)


class ClockGuard:
    """Keeps the time of micro-batches from going back, which would make new matches late.

    Spark takes the time of a micro-batch from the machine. If that is set back, the guard holds the
    stream until it has caught up, or raises PipelineError if that would take more than a minute.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._latest = _last_batch_time(checkpoint)

    def wait(self) -> float:
        """Return the time in seconds, once it is not before any time returned so far."""
        behind = self._latest - time.time()
        if behind > _LONGEST_WAIT_S:
            raise PipelineError(
                f"the clock of this machine is {behind:.0f} s behind the notifier's last "
                "micro-batch; matches would be taken for late. Set the clock, then start again"
            )
        if behind > 0:
            time.sleep(behind)
        self._latest = max(self._latest, time.time())
        return self._latest


class BatchTimes(NamedTuple):
    """When a micro-batch was begun, and its watermark: what is due up to then is released."""

    time_us: int
    watermark_us: int


def batch_times(checkpoint: Path, batch: int) -> BatchTimes:
    """The times of a micro-batch, from the second line of Spark's log of it."""
    path = checkpoint / "offsets" / str(batch)
    try:
        version, _, rest = path.read_text().partition("\n")
        if version not in ("", "v1"):
            raise PipelineError(f"{path} has the format {version!r}; this Tamis reads 'v1'")
        held = json.loads(rest.partition("\n")[0])
        names = ("batchTimestampMs", "batchWatermarkMs")
        return BatchTimes(*(int(held[name]) * 1000 for name in names))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(
            f"{path}, Spark's log of a micro-batch, is damaged ({error!r}); restore the state "
            "folder from a back-up, or begin with a new one and a new outbox"
        ) from None


def _last_batch_time(checkpoint: Path) -> float:
    names = [path.name for path in (checkpoint / "offsets").glob("*")]
    numbers = [int(name) for name in names if name.isdigit()]
    return batch_times(checkpoint, max(numbers)).time_us / 1e6 if numbers else 0.0
