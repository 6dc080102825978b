"""The event log in a folder: files of lines that appear whole, written by many at once.

A file is written under a hidden name. Its lines are durable, and acknowledged, when it has been
synced; all that wait are synced together. Ten times a second at most it gets the name under which
the pipeline sees it, so that a busy log is some thousand files an hour and not one a request. What
a crash leaves under a hidden name gets its visible one at the next start. Who removes files is the
pipeline, which knows what it has read.
"""

from __future__ import annotations

import fcntl
import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO, Protocol

from tamis.errors import StorageUnavailable
from tamis.model import Event
from tamis.service.logs import log
from tamis.service.published import event_of_line, line_of, new_id, time_of_id

__all__ = ["EventLog", "FileLog"]

_VISIBLE_EVERY_S = 0.1
_HIDDEN = ".open-"


class EventLog(Protocol):
    """Where events wait for the pipeline."""

    def append(self, events: Sequence[Event]) -> Future[None]:
        """Write events down; done when they are durable."""

    def recent(self, n: int) -> list[Event]:
        """The last events, the oldest first; fewer where it cannot tell."""

    def file_times(self) -> list[float] | None:
        """When each file there is was begun, in seconds since 1970; None if it has no files."""

    def close(self) -> None:
        """Write what waits, and end."""


_Waiting = tuple[bytes, Future[None]]


class FileLog:
    """An event log in a folder, which a pipeline reads with ``source = "files"``."""

    def __init__(self, folder: Path, visible_every_s: float = _VISIBLE_EVERY_S) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._visible_every_s = visible_every_s
        self._recover()
        self._file: BinaryIO | None = None
        self._name = ""
        self._size = 0
        self._shown_at = 0.0
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write_all, name="event-log", daemon=True)
        self._thread.start()

    def append(self, events: Sequence[Event]) -> Future[None]:
        """Write events down; done when they are durable, and failed if none of them is."""
        done: Future[None] = Future()
        if self._is_closed:
            done.set_exception(StorageUnavailable("the event log is closed; try again"))
        else:
            self._queue.put((b"".join(map(line_of, events)), done))
        return done

    def recent(self, n: int) -> list[Event]:
        """The last events in the files that are there, the oldest first."""
        found: list[Event] = []
        for path in sorted(self.folder.glob("*.jsonl"), reverse=True):
            if path.name.startswith(".") or len(found) >= n:
                continue
            found += reversed(list(_events_in(path)))
        return found[:n][::-1]

    def file_times(self) -> list[float]:
        """When each file that can be seen was begun, by its name where that tells it."""
        found = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl") and not entry.name.startswith("."):
                    at = time_of_id(entry.name.removesuffix(".jsonl"))
                    found.append(_modified(entry) if at is None else at)
        return [at for at in found if at is not None]

    def close(self) -> None:
        """Write what waits, show it, and end."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
            self._thread.join()

    # -- the thread that writes

    def _write_all(self) -> None:
        while True:
            batch = self._next()
            is_last = None in batch
            waiting = [one for one in batch if one is not None]
            if waiting:
                self._write(waiting)
            is_due = time.monotonic() - self._shown_at >= self._visible_every_s
            if self._size and (is_due or is_last):
                self._show()
            if is_last:
                self._drop()
                return

    def _next(self) -> list[_Waiting | None]:
        """All that wait; nothing if a file is due to be shown first."""
        left: float | None = None
        if self._size:
            left = max(0.0, self._shown_at + self._visible_every_s - time.monotonic())
        batch: list[_Waiting | None] = []
        try:
            batch.append(self._queue.get(timeout=left))
            while True:
                batch.append(self._queue.get_nowait())
        except queue.Empty:
            return batch

    def _write(self, waiting: list[_Waiting]) -> None:
        try:
            file = self._open()
            _write_whole(file, b"".join(lines for lines, _ in waiting))
            os.fsync(file.fileno())
            self._size = file.tell()
        except OSError as error:
            self._give_up(error, waiting)
            return
        for _, done in waiting:
            done.set_result(None)

    def _give_up(self, error: OSError, waiting: list[_Waiting]) -> None:
        """Take back what was written in part, and go on in another file."""
        log.error("event log", problem=str(error))
        try:
            if self._file is not None:
                self._file.truncate(self._size)
                if self._size:
                    self._show()
        except OSError as worse:
            log.error("event log", problem=str(worse))
        self._drop()
        for _, done in waiting:
            done.set_exception(
                StorageUnavailable(f"the event log cannot be written: {error.strerror}")
            )

    def _open(self) -> BinaryIO:
        if self._file is None:
            before, self._name = self._name, f"{new_id()}.jsonl"
            if self._name <= before:  # ids of one millisecond are in no order
                time.sleep(0.001)
                self._name = f"{new_id()}.jsonl"
            self._file = (self.folder / (_HIDDEN + self._name)).open("xb", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not another's to recover
            self._sync_folder()
        return self._file

    def _show(self) -> None:
        """Give the file the name under which the pipeline sees it."""
        try:
            (self.folder / (_HIDDEN + self._name)).rename(self.folder / self._name)
            self._sync_folder()
        except OSError as error:  # it stays durable under its hidden name, and is tried again
            log.error("event log", problem=str(error))
            self._shown_at = time.monotonic()
            return
        self._shown_at = time.monotonic()
        self._close_file()

    def _drop(self) -> None:
        """Leave the file; one with nothing in it is removed."""
        if self._file is not None and not self._size:
            (self.folder / (_HIDDEN + self._name)).unlink(missing_ok=True)
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._size = None, 0

    def _sync_folder(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _recover(self) -> None:
        """Show what a crash left under a hidden name, without a line that is not whole."""
        for path in sorted(self.folder.glob(f"{_HIDDEN}*.jsonl")):
            with path.open("r+b") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:  # of a service that runs
                    continue
                held = file.read()
                file.truncate(held.rfind(b"\n") + 1)
                os.fsync(file.fileno())
            if held.rfind(b"\n") < 0:
                path.unlink()
            else:
                path.rename(self.folder / path.name.removeprefix(_HIDDEN))
        self._sync_folder()


def _write_whole(file: BinaryIO, lines: bytes) -> None:
    """Write all bytes: a disk that is nearly full takes some of them without an error."""
    left = memoryview(lines)
    while left:
        left = left[file.write(left) :]


def _modified(entry: os.DirEntry[str]) -> float | None:
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:  # removed meanwhile
        return None


def _events_in(path: Path) -> Iterator[Event]:
    for line in path.read_bytes().splitlines():
        try:
            yield event_of_line(line)
        except (ValueError, KeyError, TypeError):  # a line that others put there
            continue
