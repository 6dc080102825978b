"""Rest: a notifier with nothing to do leaves out micro-batches, of which each costs half a second.

There is something to do when matches have come, or when one of those that wait is due. What waits
is in Spark's state, which nobody can look into; so the seconds in which they are due are noted here
as they are taken up, and those that lie ahead are written beside the checkpoint, for the next
start. A day has few enough of them. Where it is not known what waits there is no rest.

The rest is taken at the end of a micro-batch, by not ending it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.errors import TamisError
from tamis.spark.clock import BatchTimes, batch_times
from tamis.spark.passed import files_of_batch
from tamis.spark.snapshots import read_json, write_json

__all__ = ["Rest"]

_logger = logging.getLogger(__name__)

_LONGEST_S = 10.0  # what has been told for long enough is forgotten in a micro-batch, too
_LOOK_EVERY_S = 0.05
_SECOND_US = 1_000_000
_ROWS_AT_ONCE = 1 << 20
_TROUBLE = (OSError, ValueError, LookupError, TypeError)
_FARTHEST_S = 8 * 86_400.0  # no schedule lets a match wait for longer


class Rest:
    """The rests of one notifier, which reads the match log in a folder."""

    def __init__(self, checkpoint: Path, log: Path, now: Callable[[], float] = time.time) -> None:
        self._checkpoint, self._log, self._now = checkpoint, log, now
        self._file = checkpoint / "waiting.json"
        self._seconds: dict[int, float] = {}  # of the last two micro-batches
        self._woken = threading.Event()
        self._seen = -1  # when the log had changed last before the next micro-batch looked at it
        self._is_known = True
        self._unknown_until = 0.0  # something may wait till then that nobody noted
        # What was taken up just before this start is due by now.
        self._due_s = {int(now())}
        self._begin()

    def take(self, batch: int, may_last: bool = True) -> None:
        """Return when there is something to do; at once where that is not known, or may not."""
        begun, end = self._now(), time.monotonic() + _LONGEST_S  # clocks may be set back
        try:
            next_s = self._note(batch)
        except (*_TROUBLE, pa.ArrowException, TamisError) as error:
            self._give_up(str(error))
        if self._is_known and may_last and begun >= self._unknown_until:
            until = min(next_s, begun + _LONGEST_S)
            while self._now() < until and time.monotonic() < end and self._changed() == self._seen:
                if self._woken.wait(_LOOK_EVERY_S):
                    break
        self._seen = self._changed()
        self._seconds = {
            batch - 1: self._seconds.get(batch - 1, 0.0),
            batch: max(0.0, self._now() - begun),
        }

    def wake(self) -> None:
        """End the rest, and take no more."""
        self._woken.set()

    def seconds_in(self, batch: int) -> float:
        """How much of a micro-batch was rest, of the last two."""
        return self._seconds.get(batch, 0.0)

    def _note(self, batch: int) -> float:
        """Note what a micro-batch took up; when the next of what waits is due."""
        times = batch_times(self._checkpoint, batch)
        taken = self._taken_up(batch, times)
        is_new = any(due > times.time_us // _SECOND_US for due in taken - self._due_s)
        released = times.watermark_us // _SECOND_US
        self._due_s = {due for due in self._due_s | taken if due >= released}
        if is_new:
            self._write()
        return min(self._due_s, default=float("inf"))

    def _taken_up(self, batch: int, times: BatchTimes) -> set[int]:
        """The seconds in which the matches of a micro-batch are due, none before its own."""
        found: set[int] = set()
        for url in files_of_batch(self._checkpoint, batch):
            with pq.ParquetFile(unquote(urlsplit(url).path)) as file:
                for rows in file.iter_batches(_ROWS_AT_ONCE, columns=["due"]):
                    micros = rows["due"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
                    late = pc.max_element_wise(micros, times.time_us)
                    found.update(pc.unique(pc.divide(late, _SECOND_US)).to_pylist())
        return found

    def _begin(self) -> None:
        """Read what the last start has noted; where it has not, something unknown may wait."""
        try:
            held = read_json(self._file)
            if held is not None:
                self._due_s.update(int(due) for due in held["due_s"])
                self._unknown_until = float(held["unknown_until_s"])
                return
            if any((self._checkpoint / "offsets").glob("[0-9]*")):
                self._unknown_until = self._now() + _FARTHEST_S
            self._write()
        except (*_TROUBLE, TamisError) as error:
            self._give_up(str(error))

    def _write(self) -> None:
        held = {"due_s": sorted(self._due_s), "unknown_until_s": self._unknown_until}
        write_json(self._file, held)

    def _give_up(self, reason: str) -> None:
        """Take no rest; the next start is to know that something may wait."""
        if self._is_known:
            _logger.warning("the notifier takes no rest: %s", reason)
        self._is_known = False
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def _changed(self) -> int:
        """When a batch last came into the log, or left it."""
        try:
            return self._log.stat().st_mtime_ns
        except OSError:
            return 0
