"""The saved index: what took minutes to build, in a folder, so that the next start need not.

saved.json        which directory counts, the last change that is in it, who wrote it
<sequence>-…/     an index as `tamis.Index` saves it
lock              of who makes one, where services share the folder

It is made by a process of its own, which has the time and the memory that this takes:
`tamis.service.index_saver`.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from tamis.errors import SnapshotError
from tamis.index import Index
from tamis.service.indexing import Built
from tamis.service.logs import log
from tamis.storage import ChangeLog, Database

__all__ = ["SavedIndex", "end_saving", "start_saving"]

_NOTE, _LOCK = "saved.json", "lock"
_SAVER = "tamis.service.index_saver"
_PATIENCE_S, _LOOK_EVERY_S = 60.0, 0.5  # with another who saves
_LAST_SEQUENCE = 2**63 - 1
# What comes of files that are not what was written.
_DAMAGED = (
    OSError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError, SnapshotError,
)  # fmt: skip


class SavedIndex:
    """The index of a database in a folder."""

    def __init__(self, folder: Path, log: ChangeLog) -> None:
        self.folder = folder
        self._log = log

    def open(self) -> Built | None:
        """What was saved; None if there is nothing, or nothing that can be trusted."""
        try:
            note = json.loads((self.folder / _NOTE).read_text())
            directory, sequence = str(note["directory"]), int(note["sequence"])
            if not 0 <= sequence <= _LAST_SEQUENCE:
                raise ValueError(f"there is no sequence {sequence}")
            # The sequences of a database that was put back are given to other changes.
            if note != self._note(directory, sequence):
                return None
            return Built(Index.open(self.folder / directory, verify=True), sequence)
        except FileNotFoundError:
            return None
        except _DAMAGED as error:
            said = str(error) or repr(error)
            log.warning("the saved index cannot be used; it is built anew", problem=said)
            return None

    def save(self, built: Built) -> None:
        """Write an index, and take away those before it; with the lock."""
        name = f"{built.sequence}-{time.time_ns()}"
        built.index.save(self.folder / name)
        made = self.folder / f".{_NOTE}"
        made.write_text(json.dumps(self._note(name, built.sequence)))
        made.replace(self.folder / _NOTE)
        for other in self.folder.iterdir():
            if other.is_dir() and other.name != name:
                shutil.rmtree(other, ignore_errors=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The lock of who makes one; it goes when its process ends.

        Raises OSError if another has it for too long.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + _PATIENCE_S
        with (self.folder / _LOCK).open("ab") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(_LOOK_EVERY_S)
            yield

    def _note(self, directory: str, sequence: int) -> dict[str, object]:
        change = self._log.at(sequence)
        return {
            "directory": directory, "sequence": sequence, "tamis": version("tamis"),
            "change": None if change is None else [*change],
        }  # fmt: skip


def start_saving(database: Database, folder: Path) -> subprocess.Popen[bytes]:
    """Let a process save the index of a database as it is now, from what was saved before."""
    process = subprocess.Popen([sys.executable, "-m", _SAVER], stdin=subprocess.PIPE)
    assert process.stdin is not None
    url = database.url.render_as_string(hide_password=False)
    told = {"database": url, "folder": str(folder)}
    process.stdin.write(json.dumps(told).encode() + b"\n")
    process.stdin.flush()  # and left open: it ends with us
    return process


def end_saving(process: subprocess.Popen[bytes]) -> None:
    """End a process that saves, done or not."""
    process.terminate()
    process.communicate()
