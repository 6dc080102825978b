"""Events and subscriptions read from files, a chunk at a time and each with its place.

A chunk of JSON lines is what has arrived, at most ``CHUNK`` lines: a slow pipe is answered as
soon as it speaks, and a long one is never held in memory.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa

from tamis.cli.terminal import BadInput, message_of
from tamis.errors import TamisError, quoted
from tamis.model import Event, EventColumns, Subscription, events_from_arrow
from tamis.model.event_arrow import objects_of
from tamis.values import load_json

STDIN = "-"
CHUNK = 1_000
MAX_LINE_BYTES = 16 * 2**20

T = TypeVar("T")
# Where a record stands (line, or row in Parquet), and the record or why it cannot be read.
Reading = tuple[int, T | TamisError]

_ID_COLUMNS = (EventColumns().id, "id")
_READ_BYTES = 2**20


def label_of(path: str) -> str:
    """How messages call a file."""
    return "stdin" if path == STDIN else path


def unit_of(path: str) -> str:
    """What the places in a file count."""
    return "row" if _ending(path) == ".parquet" else "line"


def events_in(path: str) -> Iterator[list[Reading[Event]]]:
    """The events of a file: Parquet, CSV, or else JSON lines. Without an id, the place is it."""
    if _ending(path) == ".parquet":
        return _parquet_events(path)
    if _ending(path) == ".csv":
        return _csv_events(path)
    return _json_lines(path, lambda text, line: Event.from_json(text, default_id=str(line)))


def subscriptions_in(path: str) -> Iterator[list[Reading[Subscription]]]:
    """The subscriptions of a file: Parquet (id, filter, priority), or else JSON lines."""
    if _ending(path) == ".csv":
        raise BadInput(f"{path}: subscriptions are read from JSON lines or Parquet, not from CSV")
    if _ending(path) == ".parquet":
        return _parquet_subscriptions(path)
    return _json_lines(path, lambda text, line: Subscription.from_json(text))


def find_subscription(path: str, id: str) -> Subscription:
    """The subscription of this id; the filters of the others are not even parsed."""
    for place, raw in _raw_subscriptions(path):
        if isinstance(raw, Mapping) and raw.get("id") == id:
            _, held = _read(place, partial(Subscription.from_json, raw))
            if isinstance(held, Subscription):
                return held
            raise BadInput(f"{label_of(path)}, {unit_of(path)} {place}: {message_of(held)}")
    raise BadInput(f"no subscription {quoted(id)} in {label_of(path)}")


def _raw_subscriptions(path: str) -> Iterator[tuple[int, Any]]:
    if _ending(path) == ".parquet":
        for first, batch in _parquet_batches(path):
            for i in range(batch.num_rows):
                place, row = _read(first + i, partial(_present, batch.slice(i, 1)))
                if isinstance(row, TamisError):
                    raise BadInput(f"{label_of(path)}, row {place}: {row}")
                yield place, row
        return
    for lines in _lines(path):
        for place, line in lines:
            try:
                yield place, load_json(line)
            except (ValueError, RecursionError) as error:
                raise BadInput(f"{label_of(path)}, line {place} is not JSON: {error}") from None


def _ending(path: str) -> str:
    return Path(path).suffix.lower()


# -- JSON lines


def _json_lines(path: str, read: Callable[[str, int], T]) -> Iterator[list[Reading[T]]]:
    for lines in _lines(path):
        readings = [
            _read(number, partial(_read_line, read, line, number)) for number, line in lines
        ]
        if readings:
            yield readings


def _read_line(read: Callable[[str, int], T], line: bytes, number: int) -> T:
    return read(_decode(line), number)


def _read(place: int, make: Callable[[], T]) -> Reading[T]:
    try:
        return place, make()
    except TamisError as error:
        return place, error


def _decode(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"the line is not UTF-8: {error.reason} at byte {error.start + 1}") from None


def _lines(path: str) -> Iterator[list[tuple[int, bytes]]]:
    """The lines that are not blank, numbered from 1, as they arrive."""
    with opened(path) as stream:
        number, rest = 0, b""
        while data := stream.read1(_READ_BYTES):
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            for start in range(0, len(lines), CHUNK):
                yield _numbered(lines[start : start + CHUNK], number + start + 1)
            number += len(lines)
            if len(rest) > MAX_LINE_BYTES:
                raise BadInput(
                    f"{label_of(path)}, line {number + 1} is longer than {MAX_LINE_BYTES:,} bytes; "
                    "expected a JSON object a line"
                )
        if rest:
            yield _numbered([rest], number + 1)


def _numbered(lines: list[bytes], first: int) -> list[tuple[int, bytes]]:
    if first == 1 and lines:
        lines = [lines[0].removeprefix(b"\xef\xbb\xbf"), *lines[1:]]  # a byte order mark
    return [(n, line) for n, line in enumerate(lines, first) if line.strip()]


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader]:
    """A file, or stdin, as bytes."""
    if path == STDIN:
        if sys.stdin is None:
            raise BadInput("stdin is closed; give a file or a pipe")
        yield sys.stdin.buffer  # type: ignore[misc]  # a BufferedReader it is
        return
    with Path(path).open("rb") as stream:
        yield stream


# -- CSV


def _csv_events(path: str) -> Iterator[list[Reading[Event]]]:
    # Bytes that are not UTF-8 become surrogates, which are found row by row.
    with Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        rows = _csv_rows(stream, path)
        while chunk := list(islice(rows, CHUNK)):
            yield [
                (line, row)
                if isinstance(row, TamisError)
                else _read(line, partial(_event_of_row, row, line))
                for line, row in chunk
            ]


def _csv_rows(stream: IO[str], path: str) -> Iterator[tuple[int, dict[str, str] | BadInput]]:
    """Each row with its line; an empty cell is left out. Numbers stay text."""
    reader = csv.reader(stream, strict=True)
    header = _next_row(reader)
    if header is None:
        return
    names = _check_header(header, path)
    while (row := _next_row(reader)) is not None:
        if isinstance(row, BadInput):
            yield reader.line_num, row
        elif len(row) not in (0, len(names)):
            cells = f"{len(row)} cells in a table of {len(names)} columns"
            yield reader.line_num, BadInput(cells)
        elif row:
            yield reader.line_num, {n: c for n, c in zip(names, row, strict=True) if c}


def _next_row(reader: Iterator[list[str]]) -> list[str] | BadInput | None:
    try:
        row = next(reader, None)
    except csv.Error as error:
        return BadInput(f"not CSV: {error}")
    for number, cell in enumerate(row or (), 1):
        try:
            cell.encode()
        except UnicodeEncodeError:
            return BadInput(f"not UTF-8 in cell {number}")
    return row


def _check_header(header: list[str] | BadInput, path: str) -> list[str]:
    if isinstance(header, BadInput):
        raise BadInput(f"{path}, line 1: {header}")
    for name in header:
        if not name:
            raise BadInput(f"{path}, line 1: a column has no name")
        if header.count(name) > 1:
            raise BadInput(f"{path}, line 1: two columns are named {quoted(name)}")
    return header


def _event_of_row(row: dict[str, Any], line: int) -> Event:
    id_column = next((name for name in _ID_COLUMNS if name in row), "")
    attributes = {name: held for name, held in row.items() if name != id_column}
    return Event(row.get(id_column, str(line)), attributes)


# -- Parquet


def _parquet_batches(path: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches of a file, each with the number of its first row."""
    import pyarrow.parquet as pq

    try:
        with Path(path).open("rb") as stream, pq.ParquetFile(stream) as file:
            first = 1
            for batch in file.iter_batches(batch_size=CHUNK):
                yield first, batch
                first += batch.num_rows
    except pa.ArrowException as error:
        raise BadInput(f"{path} cannot be read as Parquet: {error}") from None


def _parquet_events(path: str) -> Iterator[list[Reading[Event]]]:
    for first, batch in _parquet_batches(path):
        try:
            yield list(enumerate(_events(batch, first), first))
        except TamisError:  # row by row, to tell which
            yield [
                _read(first + i, partial(_only_event, batch.slice(i, 1), first + i))
                for i in range(batch.num_rows)
            ]


def _events(batch: pa.RecordBatch, first: int) -> list[Event]:
    return events_from_arrow(_with_ids(batch, first))


def _only_event(row: pa.RecordBatch, number: int) -> Event:
    return _events(row, number)[0]


def _with_ids(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """The same batch with a text column of event ids; a row without one gets its number."""
    column = next((name for name in _ID_COLUMNS if name in batch.schema.names), None)
    held = [None] * batch.num_rows if column is None else objects_of(batch.column(column))
    ids = [str(n) if id is None else str(id) for n, id in enumerate(held, first)]
    kept = [name for name in batch.schema.names if name != column]
    columns = [*(batch.column(name) for name in kept), pa.array(ids, pa.string())]
    return pa.RecordBatch.from_arrays(columns, names=[*kept, EventColumns().id])


def _parquet_subscriptions(path: str) -> Iterator[list[Reading[Subscription]]]:
    for first, batch in _parquet_batches(path):
        yield [
            _read(first + i, partial(_only_subscription, batch.slice(i, 1)))
            for i in range(batch.num_rows)
        ]


def _only_subscription(row: pa.RecordBatch) -> Subscription:
    return Subscription.from_json(_present(row))


def _present(row: pa.RecordBatch) -> dict[str, Any]:
    """What the only row of a batch holds."""
    held = {name: objects_of(row.column(name))[0] for name in row.schema.names}
    return {name: one for name, one in held.items() if one is not None}
