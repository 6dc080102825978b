"""Moments at which a part of a pipeline dies, armed by a test and met once.

A moment is a file; whoever removes it dies. The pipeline itself knows nothing of this:
`install` puts the hooks around its methods in the driver, and around what its tasks do.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.spark import match_log
from tamis.spark.match_files import write_matches
from tamis.spark.match_log import MatchLog
from tamis.spark.outbox import ParquetOutbox
from tamis.spark.pins import Pins
from tamis.spark.snapshots import SnapshotStore
from tests.integration.spark_cluster import parents

DRIVER_MOMENTS = {
    "a version is written": (SnapshotStore, "publish", True),
    "a batch is pinned": (Pins, "put", True),
    "a batch of matches is written aside": (MatchLog, "publish", False),
    "a batch of matches is in the log": (MatchLog, "publish", True),
    "notifications are written aside": (ParquetOutbox, "publish", False),
    "notifications are in the outbox": (ParquetOutbox, "publish", True),
}
"""Each with the method it belongs to, and whether it comes after it; then Spark commits."""
PYTHON_WORKER = "a Python worker has written its file"
EXECUTOR = "a Python worker has written its file, and its executor dies"
TASK_MOMENTS = (PYTHON_WORKER, EXECUTOR)


def arm(folder: Path, moment: str) -> None:
    (folder / "moments").mkdir(exist_ok=True)
    (folder / "moments" / moment).touch()


def is_armed(folder: Path, moment: str) -> bool:
    return (folder / "moments" / moment).exists()


def install(folder: Path) -> None:
    """Put the hooks in place, in the driver."""
    for moment, (owner, name, is_after) in DRIVER_MOMENTS.items():
        method = getattr(owner, name)
        setattr(owner, name, hooked(method, folder, moment, is_after))
    match_log.write_matches = partial(write_and_die, folder)


def hooked(
    method: Callable[..., Any], folder: Path, moment: str, is_after: bool
) -> Callable[..., Any]:
    def called(*arguments: Any, **options: Any) -> Any:
        if not is_after and meets(folder, moment):
            die()
        result = method(*arguments, **options)
        if is_after and meets(folder, moment):
            die()
        return result

    return called


def write_and_die(
    folder: Path, plan: Any, written: Path, matched_at: Any, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a task does; its files are there, and Spark does not know of them yet."""
    reports = list(write_matches(plan, written, matched_at, batches))
    if reports[0].column("file")[0].is_valid:
        if meets(folder, PYTHON_WORKER):
            os.kill(os.getpid(), signal.SIGKILL)
        if meets(folder, EXECUTOR):
            os.kill(parents()[os.getppid()], signal.SIGKILL)
            time.sleep(60)
    yield from reports


def meets(folder: Path, moment: str) -> bool:
    try:
        (folder / "moments" / moment).unlink()
    except FileNotFoundError:
        return False
    return True


def die() -> None:
    """End the driver, Python and Java, without a chance to do anything else."""
    os.killpg(0, signal.SIGKILL)
    time.sleep(60)
