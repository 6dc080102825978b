"""The job of test_notifier_kills.py: a notifier that dies at a given moment, or never.

Run as ``python notifier_job.py FOLDER OUTBOX [MOMENT]`` in a process group of its own. OUTBOX is
``parquet`` or ``sqlite``. At the moment, which is one of MOMENTS, the whole group is killed,
Java with it, as by ``kill -9``. The hooks are here: the notifier itself knows nothing of this.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.spark import session
from tamis.spark.database import DatabaseOutbox
from tamis.spark.ledger import LedgerStore
from tamis.spark.notifier import notify_stream
from tamis.spark.outbox import Outbox, ParquetOutbox
from tests.integration.match_log import read_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOMENTS = ("before publishing", "after publishing", "after the ledger")


def die() -> None:
    """End this process and Java at once, without a chance to do anything else."""
    os.killpg(0, signal.SIGKILL)
    time.sleep(60)


def open_outbox(kind: str, folder: Path) -> ParquetOutbox | DatabaseOutbox:
    if kind == "parquet":
        return ParquetOutbox(folder / "outbox")
    return DatabaseOutbox(f"sqlite:///{folder}/outbox.db")


class MortalOutbox:
    """An outbox around which the process is killed, once some micro-batches have gone well."""

    def __init__(self, outbox: Outbox, moment: str) -> None:
        self.outbox, self.moment, self.schema = outbox, moment, outbox.schema
        self.n_published = 0

    def prepare(self, checkpoint: Path) -> Path:
        return self.outbox.prepare(checkpoint)

    def publish(self, batch: int, folder: Path) -> None:
        self.n_published += 1
        if self.n_published == 2 and self.moment == "before publishing":
            die()
        self.outbox.publish(batch, folder)
        if self.n_published == 2 and self.moment == "after publishing":
            die()


def kill_after_second_ledger() -> None:
    """Have the process killed when the ledger is on disk and the outbox does not know yet."""
    write, calls = LedgerStore.write, []

    def write_and_die(self: LedgerStore, batch: int, ledger: Any) -> None:
        write(self, batch, ledger)
        calls.append(batch)
        if len(calls) == 2:
            die()

    LedgerStore.write = write_and_die


def start(spark: SparkSession, folder: Path, outbox: Outbox) -> StreamingQuery:
    """Start the notifier from the log in ``folder`` to ``outbox``."""
    return notify_stream(
        read_log(spark, folder / "log"), outbox, checkpoint=folder / "checkpoint",
        interval=timedelta(milliseconds=200), retention=timedelta(hours=1),
    ).query  # fmt: skip


def main(folder: Path, kind: str, moment: str) -> None:
    """Notify until killed."""
    outbox: Outbox = open_outbox(kind, folder)
    if moment == "after the ledger":
        kill_after_second_ledger()
    elif moment:
        outbox = MortalOutbox(outbox, moment)
    spark = session("notifier", **{"spark.master": "local[2]"})
    start(spark, folder, outbox).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
