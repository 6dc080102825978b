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
_LOOK_EVERY_S = 60.0
_N_REMEMBERED = 10_000  # names that were removed; all there ever were may be too many


class EventFiles:
    """The files in a folder that the query with a checkpoint reads.

    ``read_until`` is when the newest file was written that it has read, in seconds since 1970; 0
    before it is known. Those that were passed are removed ``keep`` after they were written,
    without ``keep`` none is; which ones were passed is what Spark's checkpoint says.

    Spark reads a name once. A file that comes under the name of one that was read is told about,
    and never removed: it is another one if it was not written at the same moment. So is one whose
    name is not UTF-8, which Java does not see.
    """

    def __init__(self, folder: Path, checkpoint: Path, keep: timedelta | None) -> None:
        self.read_until = 0.0
        self._folder, self._keep = folder, keep
        self._read = PassedFiles(checkpoint, n_left=0)
        self._passed = PassedFiles(checkpoint)
        self._queue: list[tuple[int, str]] = []  # milliseconds and name, the oldest first
        self._removed: dict[str, int] = {}  # name and milliseconds, the first removed first
        self._there: dict[str, int] = {}  # name and milliseconds of those read that were not gone
        self._told: set[tuple[str, int]] = set()
        self._is_first, self._next, self._next_look = True, 0.0, 0.0

    def tidy(self) -> None:
        """See what was read, and now and then remove what can go."""
        try:
            read = self._read.more()
            self.read_until = max(self.read_until, max(read.values(), default=0) / 1_000)
            self._there.update((unquote(name), written) for name, written in read.items())
            if time.monotonic() >= self._next_look:
                self._next_look = time.monotonic() + _LOOK_EVERY_S
                self._look()
            if self._keep is not None and time.monotonic() >= self._next:
                self._next = time.monotonic() + _EVERY_S
                self._notice(self._passed.more())
                self._remove_before(time.time() - self._keep.total_seconds())
        except (OSError, ValueError, PipelineError) as error:
            # What is not removed costs space; it is no reason to stop.
            _logger.warning("old files of events are not removed: %s", error)

    def _look(self) -> None:
        """Tell of what is in the folder and will never be read."""
        names = [path.name for path in self._folder.iterdir()]
        self._there = {name: self._there[name] for name in names if name in self._there}
        for name, written in self._there.items():
            self._is_same(name, written)
        for name in names:
            if not _is_text(name) and self._is_news(name, 0):
                _logger.warning("%r is not read: its name is not UTF-8. Give it another", name)

    def _notice(self, passed: dict[str, int]) -> None:
        there = {path.name for path in self._folder.iterdir()}
        for name in there & self._removed.keys():
            self._is_same(name, self._removed.pop(name))
        for name, written in passed.items():
            plain = unquote(name)
            # At first it is all that was ever read, of which most has been removed.
            if not self._is_first or (plain in there and self._is_same(plain, written)):
                heappush(self._queue, (written, plain))
        self._is_first = self._is_first and not passed

    def _remove_before(self, moment: float) -> None:
        while self._queue and self._queue[0][0] < moment * 1_000:
            written, name = self._queue[0]
            if self._is_same(name, written):
                (self._folder / name).unlink(missing_ok=True)
                self._remember(name, written)
            heappop(self._queue)

    def _remember(self, name: str, written: int) -> None:
        self._removed[name] = written
        if len(self._removed) > _N_REMEMBERED:
            del self._removed[next(iter(self._removed))]

    def _is_same(self, name: str, written: int) -> bool:
        """Whether the file of a name is the one that was read, or gone; says so if it is not."""
        try:
            found = (self._folder / name).stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return True
        if found != written and self._is_news(name, found):
            _logger.warning(
                "%s has the name of a file that was read, but was written at another time; it is "
                "not removed, and not read if it is new: Spark reads a name once. Give it a name "
                "that was never there",
                self._folder / name,
            )
        return found == written

    def _is_news(self, name: str, moment: int) -> bool:
        """Whether nothing was told of a name since then, of the last ones there were."""
        is_news = (name, moment) not in self._told
        if len(self._told) >= _N_REMEMBERED:
            self._told.clear()
        self._told.add((name, moment))
        return is_news


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
