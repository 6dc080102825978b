"""Matches written to stdout, to a file of JSON lines, or to Parquet."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from tamis.cli.terminal import BadInput
from tamis.index import MatchSet

if TYPE_CHECKING:  # imported where a file is Parquet
    import pyarrow.parquet as pq

STDOUT = "-"
COLUMNS = pa.schema(
    [("event_id", pa.string()), ("subscription_id", pa.string()), ("priority", pa.int8())]
)

_ROWS_A_GROUP = 100_000


class Writer(Protocol):
    """Takes the matches of one chunk of events after the other."""

    def write(self, event_ids: Sequence[str], matches: MatchSet) -> None:
        """Write the matches of these events."""


@contextmanager
def opened_writer(path: str) -> Iterator[Writer]:
    """A writer for a path; a Parquet file appears whole when all went well, or not at all."""
    ending = Path(path).suffix.lower()
    if ending == ".csv":
        raise BadInput(f"{path}: matches are written as JSON lines or Parquet, not as CSV")
    if path == STDOUT:
        yield JsonLines(sys.stdout.buffer)
    elif ending == ".parquet":
        import pyarrow.parquet as pq

        with _whole_file(Path(path)) as stream, pq.ParquetWriter(stream, COLUMNS) as file:
            writer = Parquet(file)
            yield writer
            writer.flush()
    else:
        with Path(path).open("wb") as stream:
            yield JsonLines(stream)


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    if not path.parent.is_dir():
        raise BadInput(f"{path}: no such directory")
    if path.is_dir():
        raise BadInput(f"{path}: is a directory")
    made = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        stream = made.open("wb")
    except OSError as error:  # names what nobody gave
        raise BadInput(f"{path}: {error.strerror}") from None
    try:
        with stream:
            yield stream
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


class JsonLines:
    """A JSON object a match, flushed with every chunk."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, event_ids: Sequence[str], matches: MatchSet) -> None:
        """Write the matches of these events."""
        ids, priorities, offsets = matches.ids, matches.priorities, matches.offsets
        lines = []
        for event, event_id in enumerate(event_ids):
            start = f'{{"event_id": {_quoted(event_id)}, "subscription_id": '
            for at in range(offsets[event], offsets[event + 1]):
                lines.append(f'{start}{_quoted(ids[at])}, "priority": {priorities[at]}}}\n')
        self._stream.write("".join(lines).encode())
        self._stream.flush()


class Parquet:
    """Rows gathered into groups that are worth a row group."""

    def __init__(self, file: pq.ParquetWriter) -> None:
        self._file = file
        self._tables: list[pa.Table] = []
        self._n_rows = 0

    def write(self, event_ids: Sequence[str], matches: MatchSet) -> None:
        """Take the matches of these events."""
        events = np.repeat(np.arange(len(event_ids)), np.diff(matches.offsets))
        columns = [
            pa.array(event_ids, pa.string()).take(pa.array(events)),
            pa.array(matches.ids, pa.string()),
            pa.array(matches.priorities, pa.int8()),
        ]
        self._tables.append(pa.table(columns, schema=COLUMNS))
        self._n_rows += len(matches.ids)
        if self._n_rows >= _ROWS_A_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered as one row group."""
        if self._n_rows:
            self._file.write_table(pa.concat_tables(self._tables).combine_chunks())
        self._tables, self._n_rows = [], 0


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
