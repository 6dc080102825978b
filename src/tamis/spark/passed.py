"""Which files a query has passed: read in a micro-batch that Spark never repeats.

Spark writes down, in the checkpoint of a query that reads files,

    offsets/<batch>           a line for each source: {"logOffset": n}, how far the batch goes
    commits/<batch>           there when the batch is done
    sources/<source>/<n>      a line for each file found then: {"path", "timestamp", "batchId": n}
    sources/<source>/<n>.compact    the same of all before, too
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.errors import PipelineError

__all__ = [
    "PassedFiles",
    "files_of_batch",
    "has_only_beat",
    "logs_after_commit",
    "newest_compact",
    "offsets_before",
]


class PassedFiles:
    """The files that the query with a checkpoint has passed; found bit by bit.

    On a start Spark looks again at the last batch it has committed, so that one is left out; with
    ``n_left=0`` it is not, and what is found was read, but is not to be removed.
    """

    def __init__(self, checkpoint: Path, n_left: int = 1) -> None:
        self._checkpoint, self._n_left = checkpoint, n_left
        self._seen: dict[int, int] = {}

    def more(self) -> dict[str, int]:
        """The files it has passed since this was asked last.

        Their names as in a URL, and when they were written, in milliseconds since 1970.
        """
        found: dict[str, int] = {}
        for source, offset in offsets_before(self._checkpoint, self._n_left):
            entries = _entries(
                self._checkpoint / "sources" / str(source), self._seen.get(source, -1), offset
            )
            found.update((path.rpartition("/")[2], written) for path, written in entries)
            self._seen[source] = offset
        return found


def offsets_before(checkpoint: Path, n_left: int) -> Iterator[tuple[int, int]]:
    """The sources of files of a query, and how far it has read each, but for its last batches."""
    done = max(_numbers(checkpoint / "commits"), default=-1) - n_left
    yield from _offsets_at(checkpoint, done)


def files_of_batch(checkpoint: Path, batch: int) -> Iterator[str]:
    """The paths, as URLs, of the files that a micro-batch reads; it need not be done."""
    before = dict(_offsets_at(checkpoint, batch - 1))
    for source, offset in _offsets_at(checkpoint, batch):
        folder = checkpoint / "sources" / str(source)
        for path, _ in _entries(folder, before.get(source, -1), offset):
            yield path


def has_only_beat(checkpoint: Path, batch: int) -> bool:
    """Whether a micro-batch reads nothing but its last source, of all that it could read."""
    lines = []
    for number in (batch - 1, batch):
        file = checkpoint / "offsets" / str(number)
        if not file.exists():
            return False
        version, _, *offsets = file.read_text().splitlines()
        _check(file, version)
        lines.append(offsets)
    before, now = lines
    return len(now) > 1 and now[:-1] == before[:-1]


def logs_after_commit(checkpoint: Path) -> Iterator[tuple[Path, int]]:
    """The logs with files that no committed batch has read, and the offset these come after."""
    done = dict(offsets_before(checkpoint, n_left=0))
    for folder in (checkpoint / "sources").glob("*"):
        offset = done.get(int(folder.name), -1) if folder.name.isdigit() else None
        if offset is None:
            continue
        for suffix in ("", ".compact"):
            for number in list(_numbers(folder, suffix)):
                if number > offset:
                    yield folder / f"{number}{suffix}", offset


def newest_compact(folder: Path) -> Path | None:
    """The newest log of a source that repeats those before."""
    newest = max(_numbers(folder, ".compact"), default=None)
    return None if newest is None else folder / f"{newest}.compact"


def _offsets_at(checkpoint: Path, batch: int) -> Iterator[tuple[int, int]]:
    """How far a batch goes in each source of files; nothing where there is no such batch."""
    file = checkpoint / "offsets" / str(batch)
    if batch >= 0 and file.exists():
        yield from _offsets(file)


def _offsets(file: Path) -> Iterator[tuple[int, int]]:
    """The sources of files in the log of a batch, and how far each was read."""
    version, _, *lines = file.read_text().splitlines()
    _check(file, version)
    for source, line in enumerate(lines):
        try:
            held = json.loads(line)
        except ValueError:
            continue  # "-", for none yet, or what a source of another kind writes
        offset = held.get("logOffset") if isinstance(held, dict) else None
        if isinstance(offset, int):  # a topic may have that name, too
            yield source, offset


def _entries(folder: Path, after: int, until: int) -> Iterator[tuple[str, int]]:
    """The files that a source found after one offset and up to another: path, time."""
    whole = [n for n in _numbers(folder, ".compact") if after < n <= until]
    if whole:
        newest = max(whole)
        for held in _backwards(folder / f"{newest}.compact"):
            if held["batchId"] <= after:
                break
            yield held["path"], held["timestamp"]
        after = newest
    for number in range(after + 1, until + 1):
        for held in _backwards(folder / str(number)):
            yield held["path"], held["timestamp"]


def _backwards(file: Path) -> Iterator[Any]:
    """What a log of Spark holds, the newest first: old entries are repeated for ever."""
    version, *lines = file.read_text().splitlines()
    _check(file, version)
    return map(json.loads, reversed(lines))


def _numbers(folder: Path, suffix: str = "") -> Iterator[int]:
    for path in folder.glob(f"*{suffix}"):
        if path.suffix == suffix and path.stem.isdigit():
            yield int(path.stem)


def _check(file: Path, version: str) -> None:
    if version != "v1":
        raise PipelineError(f"{file} has the format {version!r}; this Tamis reads 'v1'")
