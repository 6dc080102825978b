"""The files of events a query reads: removed when they are old, but never before they were read."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from heapq import heappop, heappush
from pathlib import Path
from urllib.parse import unquote

from tamis.errors import PipelineError
from tamis.spark.passed import PassedFiles

_logger = logging.getLogger(__name__)

_EVERY_S = 10.0


class EventFiles:
    """The files in a folder that the query with a checkpoint reads.

    ``read_until`` is when the newest file was written that it has read, in seconds since 1970; 0
    before it is known. Those that were passed are removed ``keep`` after they were written,
    without ``keep`` none is; which ones were passed is what Spark's checkpoint says.
    """

    def __init__(self, folder: Path, checkpoint: Path, keep: timedelta | None) -> None:
        self.read_until = 0.0
        self._folder, self._keep = folder, keep
        self._read = PassedFiles(checkpoint, n_left=0)
        self._passed = PassedFiles(checkpoint)
        self._queue: list[tuple[int, str]] = []  # milliseconds and name, the oldest first
        self._is_first, self._next = True, 0.0

    def tidy(self) -> None:
        """See what was read, and now and then remove what can go."""
        try:
            newest = max(self._read.more().values(), default=0)
            self.read_until = max(self.read_until, newest / 1_000)
            if self._keep is not None and time.monotonic() >= self._next:
                self._next = time.monotonic() + _EVERY_S
                self._notice(self._passed.more())
                self._remove_before(time.time() - self._keep.total_seconds())
        except (OSError, ValueError, PipelineError) as error:
            # What is not removed costs space; it is no reason to stop.
            _logger.warning("old files of events are not removed: %s", error)

    def _notice(self, passed: dict[str, int]) -> None:
        if not passed:
            return
        # At first it is all that was ever read, of which most has been removed.
        there = {path.name for path in self._folder.iterdir()} if self._is_first else None
        self._is_first = False
        for name, written in passed.items():
            plain = unquote(name)
            if there is None or plain in there:
                heappush(self._queue, (written, plain))

    def _remove_before(self, moment: float) -> None:
        while self._queue and self._queue[0][0] < moment * 1_000:
            (self._folder / self._queue[0][1]).unlink(missing_ok=True)
            heappop(self._queue)
