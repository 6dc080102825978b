"""The job of test_spark_stream.py: a stream whose driver dies at a chosen moment.

Run as ``python spark_stream_job.py FOLDER MOMENT``; FOLDER holds the events and changes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tamis.spark import ChangeDirectory, EventMapping, match_stream, session
from tamis.spark.match_log import MatchLog


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: die()


def after(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*arguments: Any) -> None:
        function(*arguments)
        die()

    return called


def main(folder: Path, moment: str) -> None:
    """Start the stream; it does not come back."""
    wrap = {"written": before, "published": after}[moment]
    MatchLog.publish = wrap(MatchLog.publish)  # type: ignore[method-assign]
    spark = session("stream job", **{"spark.master": "local[2]"})
    schema = "id string, price double, time timestamp, note string"
    stream = match_stream(
        spark.readStream.schema(schema).json(str(folder / "events")),
        changes=ChangeDirectory(folder / "changes"),
        checkpoint=folder / "checkpoint",
        mapping=EventMapping(time="time", payload="note"),
        trigger={"availableNow": True},
    )
    stream.query.awaitTermination(120)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
