"""Source logs: what Spark writes down of the files that a query has found, kept short.

Spark repeats every file that it ever found in every tenth log (``<n>.compact``, see ``passed``),
and has no setting that would end it: of two files a second that is 20 MB more a day, written anew
every few seconds. A file that is gone can not be found again, so its entry is left out of the
newest of these logs, from which Spark makes the next one. Where all files are gone it may be their
disk that is: then nothing is left out.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tamis.spark.passed import newest_compact, offsets_before

_logger = logging.getLogger(__name__)

_EVERY_S = 10.0
_SHORT = 1 << 16  # bytes; what is shorter may stay as it is


class SourceLogs:
    """The logs of the queries with some checkpoints, each with the folder that it reads.

    They may run meanwhile.
    """

    def __init__(self, folders: Mapping[Path, Path]) -> None:
        self._folders = folders
        self._size: dict[Path, int] = {}  # of a log when it was shortened last
        self._next = 0.0

    def tidy(self) -> None:
        """Shorten the logs that have become twice as long; looks no more often than it pays."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        for checkpoint, folder in self._folders.items():
            try:
                for source, offset in offsets_before(checkpoint, n_left=1):
                    self._tidy_source(checkpoint / "sources" / str(source), offset, folder)
            except (OSError, ValueError) as error:
                # What is not shortened costs space; it is no reason to stop.
                _logger.warning("the logs in %s are not shortened: %s", checkpoint, error)

    def _tidy_source(self, source: Path, offset: int, folder: Path) -> None:
        log = newest_compact(source)
        if log is not None and log.stat().st_size > max(_SHORT, 2 * self._size.get(source, 0)):
            _shorten(log, offset, folder)
            self._size[source] = log.stat().st_size


def _shorten(log: Path, offset: int, folder: Path) -> None:
    """Leave out the files up to an offset that are gone from a folder, unless it has none."""
    version, *lines = log.read_text().splitlines()
    kept = [line for line in lines if not _is_over(json.loads(line), offset)]
    if version != "v1" or len(kept) == len(lines) or not any(folder.glob("*")):
        return
    rewrite_log(log, [version, *kept])


def rewrite_log(log: Path, lines: Sequence[str]) -> None:
    """Write a log of Spark anew, at once."""
    aside = log.with_name(f".{log.name}.shorter")
    aside.write_text("\n".join(lines))
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    # Whoever reads the log without its checksum, old or new, is content with what is there.
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    aside.replace(log)


def _is_over(entry: dict[str, object], offset: int) -> bool:
    """Whether a file was passed, and is gone."""
    number, url = entry["batchId"], urlsplit(str(entry["path"]))
    is_passed = isinstance(number, int) and number <= offset
    return is_passed and url.scheme == "file" and not Path(unquote(url.path)).exists()
