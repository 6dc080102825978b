"""Match files: matches as Parquet, written by the tasks themselves.

A match is three small numbers until it is written: the event, the subscription and its priority.
Texts are written as dictionaries, each different text once a row group, and never copied for
each match; this is several times as fast as handing rows back to Spark.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.delivery import due_times
from tamis.spark.events import TIMESTAMP, Events
from tamis.spark.kept_events import write_kept
from tamis.spark.tasks import Matcher, Plan, dead_letter_batch
from tamis.spark.versions import Found, OpenVersion

_TEXT = pa.dictionary(pa.int32(), pa.string())
_BYTES = pa.dictionary(pa.int32(), pa.binary())
_KEY = [
    pa.field("event_id", _TEXT, nullable=False),
    pa.field("subscription_id", _TEXT, nullable=False),
    pa.field("priority", pa.int8(), nullable=False),
    pa.field("index_version", pa.int64(), nullable=False),
]
_DELIVERY = [
    pa.field("owner", _TEXT, nullable=False),
    pa.field("event_time", TIMESTAMP, nullable=False),
    pa.field("matched_at", TIMESTAMP, nullable=False),
    pa.field("due", TIMESTAMP, nullable=False),
    pa.field("schedule", _TEXT, nullable=False),
    pa.field("payload", _BYTES),
]

# A row group pays for its dictionaries once, so it should be large; a match in it takes eight
# bytes of memory until it is written, or 32 with the columns for delivery.
_CONSTANT = 1 << 16
_GROUP_MATCHES = 32_000_000
_GROUP_DELIVERIES = 2_000_000
_GROUP_EVENTS = 1_000_000
_GROUP_PAYLOAD_BYTES = 64_000_000

Numbers = npt.NDArray[np.int32]

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; others may not have it

REPORT = (
    "file string, n_events long, n_matches long, dead_file string, n_dead long, kept_file string"
)


class MatchFile:
    """A Parquet file of matches; with ``matched_at`` it has the columns delivery needs."""

    def __init__(
        self, path: Path, opened: OpenVersion, version: int, matched_at: np.datetime64 | None
    ) -> None:
        self.n_matches = 0
        self._opened, self._version, self._matched_at = opened, version, matched_at
        self._most = _GROUP_MATCHES if matched_at is None else _GROUP_DELIVERIES
        self.schema = pa.schema(_KEY if matched_at is None else _KEY + _DELIVERY)
        texts = [field.name for field in self.schema if pa.types.is_dictionary(field.type)]
        self._file = pq.ParquetWriter(
            path,
            self.schema,
            use_dictionary=texts,
            compression={field.name: _compression(field.name) for field in self.schema},
            dictionary_pagesize_limit=1 << 30,
            write_batch_size=1 << 18,  # of Arrow's own 1,024 each costs some calls
            write_statistics=False,  # of a dictionary they cost more than the column itself
            store_schema=False,
        )
        # Memory that is used again: to get new memory from the system costs as much as writing.
        self._codes, self._rows = (np.empty(self._most, np.int32) for _ in range(2))
        self._clear()

    def _clear(self) -> None:
        self._events: list[Events] = []
        self._n_events = self._n_rows = self._n_payload = 0

    def add(self, events: Events, found: Found) -> None:
        """Add matches of some events."""
        for first in range(0, len(found.rows), self._most):
            self._put(events, found.part(slice(first, first + self._most)))

    def _put(self, events: Events, found: Found) -> None:
        """Add matches that fit into a row group."""
        if self._n_rows + len(found.rows) > self._most:
            self._write()
        if not self._events or self._events[-1] is not events:
            self._n_events += len(events)
            self._n_payload += events.payloads.nbytes
            self._events.append(events)
        places = slice(self._n_rows, self._n_rows + len(found.rows))
        # Events are counted through the row group.
        np.add(found.events, np.int32(self._n_events - len(events)), out=self._codes[places])
        self._rows[places] = found.rows
        self._n_rows = places.stop
        if self._n_events >= _GROUP_EVENTS or self._n_payload >= _GROUP_PAYLOAD_BYTES:
            self._write()

    def close(self) -> None:
        """Write the rest and the footer."""
        self._write()
        self._file.close()

    def _write(self) -> None:
        if self._n_rows:
            columns = self._key()
            if self._matched_at is not None:
                columns += self._delivery(self._matched_at)
            table = pa.table(columns, schema=self.schema)
            self._file.write_table(table, row_group_size=len(table))
            self.n_matches += len(table)
        self._clear()

    def _key(self) -> list[pa.Array | pa.ChunkedArray]:
        version = pa.array(np.full(_CONSTANT, self._version, np.int64))
        return [
            self._of_events([events.ids for events in self._events]),
            self._subscription_ids(),
            self._priorities(),
            _constant(version, self._n_rows),
        ]

    def _priorities(self) -> pa.Array | pa.ChunkedArray:
        of_row = self._opened.priorities
        if of_row.min() == of_row.max():
            return _constant(pa.array(np.full(_CONSTANT, of_row[0])), self._n_rows)
        return pa.array(of_row[self._rows[: self._n_rows]])

    def _subscription_ids(self) -> pa.Array:
        """Their dictionary has every id if most will occur; the search for them costs too."""
        ids, rows = self._opened.ids, self._rows[: self._n_rows]
        if self._n_rows < 2 * len(ids) or self._opened.has_removed:
            rows, used = _renumbered(rows, len(ids))
            ids = ids.take(pa.array(used))
        return _coded(rows, ids)

    def _of_events(self, arrays: list[pa.Array]) -> pa.Array:
        """What events hold, for each of their matches; Parquet wants no text twice."""
        held = pa.concat_arrays(arrays).dictionary_encode()
        codes = pa.array(self._codes[: self._n_rows])
        if len(held.dictionary) < len(held):
            codes = held.indices.take(codes)
        return _coded(codes, held.dictionary)

    def _delivery(self, matched_at: np.datetime64) -> list[pa.Array | pa.ChunkedArray]:
        opened, rows = self._opened, self._rows[: self._n_rows]
        now = pa.scalar(int(matched_at.astype(np.int64)), pa.int64()).cast(TIMESTAMP)
        times = pa.concat_arrays([events.times for events in self._events]).fill_null(now)
        owner_of_row = opened.owners.indices.to_numpy()
        schedule_of_row = opened.schedules.indices.to_numpy()
        schedules = schedule_of_row[rows]
        due = due_times(opened.schedules.dictionary, matched_at)
        moment = pa.array(np.full(_CONSTANT, matched_at), TIMESTAMP)
        return [
            _coded(owner_of_row[rows], opened.owners.dictionary),
            times.take(pa.array(self._codes[: self._n_rows])),
            _constant(moment, self._n_rows),
            pa.array(due[schedules], TIMESTAMP),
            _coded(schedules, opened.schedules.dictionary),
            self._of_events([events.payloads for events in self._events]),
        ]


def write_matches(
    plan: Plan, folder: Path, matched_at: np.datetime64 | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the matches, dead letters and kept events of a task; yields a row that says where.

    Names are unique: of a task that ran twice, only the files of the run that Spark counts
    are named in the report.
    """
    name = uuid.uuid4().hex
    matcher = Matcher(plan)
    file: MatchFile | None = None
    path, dead_path, kept_path = (
        folder / f"{kind}-{name}.parquet" for kind in ("matches", "dead", "kept")
    )
    for _, events, found in matcher.match(batches):
        if file is None:
            assert matcher.opened is not None
            file = MatchFile(path, matcher.opened, plan.version.number, matched_at)
        file.add(events, found)
    if file is not None:
        file.close()
    if matcher.dead:
        pq.write_table(pa.Table.from_batches([dead_letter_batch(matcher.dead)]), dead_path)
    if matcher.kept:
        write_kept(kept_path, matcher.kept)
    _give_back()
    n_events = matcher.n_events if matcher.is_first_shard else 0
    report = [
        pa.array([file and path.name], pa.string()),
        pa.array([n_events], pa.int64()),
        pa.array([file.n_matches if file else 0], pa.int64()),
        pa.array([dead_path.name if matcher.dead else None], pa.string()),
        pa.array([len(matcher.dead)], pa.int64()),
        pa.array([kept_path.name if matcher.kept else None], pa.string()),
    ]
    yield pa.RecordBatch.from_arrays(report, [part.split()[0] for part in REPORT.split(", ")])


def _compression(column: str) -> str:
    """Numbers of subscriptions, packed by Parquet, do not get smaller, and take time."""
    return "none" if column == "subscription_id" else "lz4"


def _give_back() -> None:
    """Let the system have what is free: the worker lives on, and its next batch may be small."""
    pa.default_memory_pool().release_unused()
    if _trim is not None:
        _trim(0)


def _coded(codes: pa.Array | Numbers, texts: pa.Array) -> pa.Array:
    """Texts by their positions."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), texts, safe=False)


def _constant(chunk: pa.Array, n: int) -> pa.ChunkedArray:
    """N times the same, over the memory of one chunk."""
    whole, rest = divmod(n, len(chunk))
    return pa.chunked_array([*[chunk] * whole, chunk.slice(0, rest)])


def _renumbered(rows: Numbers, n_rows: int) -> tuple[Numbers, Numbers]:
    """Rows numbered anew in their order, without those that do not occur; and the old numbers."""
    if len(rows) < n_rows >> 5:
        used, codes = np.unique(rows, return_inverse=True)
        return codes.astype(np.int32), used
    is_used = np.zeros(n_rows, np.bool_)
    is_used[rows] = True
    code_of_row = np.cumsum(is_used, dtype=np.int32)
    code_of_row -= 1
    return code_of_row[rows], np.flatnonzero(is_used).astype(np.int32)
