"""First load: the changes that are there at a first start, read and indexed by tasks.

    parts of files ─► lines, each with its token ─► by token: the last change of each id, indexed

Subscriptions in the database of the service are written to a file first. The result is what the
follower makes of the same changes one by one, as the first version.
"""

from __future__ import annotations

import json
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import InvalidSubscription, SnapshotError, TamisError
from tamis.spark.change_store import ChangeStore
from tamis.spark.changes import (
    Change,
    ChangeDirectory,
    change_in,
    change_of,
    check_columns,
    end_of_lines,
    lines_of,
    rows_of,
)
from tamis.spark.follower import checked_changes, latest_of, reject
from tamis.spark.jobs import described
from tamis.spark.snapshots import SnapshotStore, token_of, write_subscriptions
from tamis.spark.versions import TokenPlace, Version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE_BYTES, LARGE_COUNT = 4_000_000, 10_000
"""From which size on, of files or of a database, a job is worth while."""

_PART_BYTES = 4_000_000
_FOLDER = ".first-load-"
_LINES = pa.schema(
    [("token", pa.int32()), ("held", pa.binary()), ("is_row", pa.bool_()), ("place", pa.string())]
)
_LINES_DDL = "token int, held binary, is_row boolean, place string"
_BUILT = pa.schema(
    [
        ("token", pa.int32()),
        ("path", pa.string()),
        ("sequence", pa.int64()),
        ("rejected", pa.list_(pa.binary())),
    ]
)
_BUILT_DDL = "token int, path string, sequence long, rejected array<binary>"
_YIELDED_LINES = 10_000


class Part(NamedTuple):
    """A part of a file of changes: whole lines from one byte to another, or a row group."""

    file: str
    first: int
    last: int


def is_large(changes: ChangeDirectory | ChangeStore) -> bool:
    """Whether there is so much that tasks should read it."""
    if isinstance(changes, ChangeStore):
        return changes.count() >= LARGE_COUNT
    return sum(file.stat().st_size for file in changes.files()) >= LARGE_BYTES


def load_changes(
    spark: SparkSession, store: SnapshotStore, changes: ChangeDirectory | ChangeStore
) -> Version:
    """Make the changes that are there the first version of a store."""
    if isinstance(changes, ChangeDirectory):
        return _load_files(spark, store, changes)
    for left in store.path.glob(f"{_FOLDER}*"):  # by a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=store.path, prefix=_FOLDER) as folder:
        changes.write(Path(folder) / "database.jsonl")
        return _load_files(spark, store, ChangeDirectory(folder))


def _load_files(spark: SparkSession, store: SnapshotStore, changes: ChangeDirectory) -> Version:
    parts = list(_parts(changes))
    spread = spark.createDataFrame(parts, "file string, first long, last long").repartition(
        max(1, min(len(parts), 4 * spark.sparkContext.defaultParallelism))
    )
    lines = spread.mapInArrow(partial(_read_parts, store.n_tokens), _LINES_DDL)
    by_token = lines.repartitionById(store.n_tokens, "token")
    with described(spark, f"tamis: index changes of subscriptions, {store.n_tokens} tokens"):
        built = by_token.mapInArrow(partial(_build_token, store), _BUILT_DDL).collect()
    reject(store, (Change(*pickle.loads(held)) for row in built for held in row.rejected))
    places = {row.token: TokenPlace(row.path) for row in built}
    return store.publish(
        (places.get(token, TokenPlace(None)) for token in range(store.n_tokens)),
        sequence=max((row.sequence for row in built), default=0),
    )


def _parts(changes: ChangeDirectory) -> Iterator[Part]:
    """What is whole, up to the first file that is not: later ones wait for it."""
    for file in changes.files():
        if file.suffix == ".parquet":
            try:
                n_groups = pq.ParquetFile(file).num_row_groups
            except (OSError, pa.ArrowException):
                return
            yield from (Part(str(file), group, group + 1) for group in range(n_groups))
            continue
        end, first = end_of_lines(file), 0
        while first < end:
            last = _line_end(file, min(first + _PART_BYTES, end), end)
            yield Part(str(file), first, last)
            first = last
        if end < file.stat().st_size:
            return


def _line_end(file: Path, position: int, end: int) -> int:
    """Where the line ends that has the byte before a position."""
    if position == end:
        return end
    with file.open("rb") as opened:
        opened.seek(position - 1)
        opened.readline()
        return opened.tell()


def _read_parts(n_tokens: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    for batch in batches:
        for part in batch.to_pylist():
            for held, is_row, place, id in _held(Part(**part)):
                rows.append(
                    {"token": _token(id, n_tokens), "held": held, "is_row": is_row, "place": place}
                )
                if len(rows) == _YIELDED_LINES:
                    yield pa.RecordBatch.from_pylist(rows, _LINES)
                    rows = []
    yield pa.RecordBatch.from_pylist(rows, _LINES)


def _token(id: Any, n_tokens: int) -> int:
    """The token of an id; any for what is none, which is rejected later."""
    try:
        return token_of(id, n_tokens)
    except (AttributeError, UnicodeEncodeError):
        return 0


def _held(part: Part) -> Iterator[tuple[bytes, bool, str, Any]]:
    """Each change of a part as it was found, whether it is a row, its place and its id."""
    file = Path(part.file)
    if file.suffix == ".jsonl":
        for line, place in lines_of(file, part.first, part.last):
            yield line, False, place, _id_in(line)
        return
    table = pq.ParquetFile(file)
    try:
        check_columns(table.schema_arrow.names)
    except InvalidSubscription as error:
        if part.first == 0:
            yield pickle.dumps(Change(0, "", None, str(error), file.name)), True, file.name, None
        return
    first = sum(table.metadata.row_group(group).num_rows for group in range(part.first))
    for row, place in rows_of(table.read_row_group(part.first), first, file.name):
        yield pickle.dumps(row), True, place, row["id"]


def _id_in(line: bytes) -> Any:
    """The id in a line, if there is one; whether the line can be read is not decided here."""
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return held.get("id") if isinstance(held, dict) else None


def _build_token(
    store: SnapshotStore, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the layer of a token; says which, where, and what is rejected."""
    changes: list[Change] = []
    token = -1
    for batch in batches:
        for row in batch.to_pylist():
            token = row["token"]
            changes.append(_change(row))
    if token < 0:
        return
    changes.sort(key=lambda change: change.sequence)
    try:
        path = _write_latest(store, token, changes)
    except SnapshotError:
        raise
    except (TamisError, ValueError):
        checked = checked_changes(changes)
        if checked == changes:
            raise
        changes = checked
        path = _write_latest(store, token, changes)
    rejected = [change for change in changes if change.problem]
    yield pa.RecordBatch.from_pylist(
        [
            {
                "token": token,
                "path": path,
                "sequence": changes[-1].sequence,
                "rejected": [pickle.dumps(tuple(change)) for change in rejected],
            }
        ],
        _BUILT,
    )


def _write_latest(store: SnapshotStore, token: int, changes: list[Change]) -> str | None:
    """Write a layer of what the last change says of each id; none if nothing is left."""
    living = [one for one in latest_of(changes).values() if one is not None]
    if not living:
        return None
    path = store.new_layer(token, "base")
    write_subscriptions(path, living)
    return str(path)


def _change(row: dict[str, Any]) -> Change:
    if not row["is_row"]:
        return change_in(row["held"], row["place"])
    held = pickle.loads(row["held"])
    return held if isinstance(held, Change) else change_of(held, row["place"])
