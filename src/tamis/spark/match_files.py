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
from tamis.kernels.ordering import N_PRIORITIES
from tamis.spark.coded_parquet import CodedWriter, Column, Runs
from tamis.spark.events import TIMESTAMP, Events
from tamis.spark.kept_events import write_kept
from tamis.spark.tasks import Matcher, Plan, dead_letter_batch
from tamis.spark.versions import Found, OpenVersion

_KEY = [
    pa.field("event_id", pa.string(), nullable=False),
    pa.field("subscription_id", pa.string(), nullable=False),
    pa.field("priority", pa.int8(), nullable=False),
    pa.field("index_version", pa.int64(), nullable=False),
]
_DELIVERY = [
    pa.field("owner", pa.string(), nullable=False),
    pa.field("event_time", TIMESTAMP, nullable=False),
    pa.field("matched_at", TIMESTAMP, nullable=False),
    pa.field("due", TIMESTAMP, nullable=False),
    pa.field("schedule", pa.string(), nullable=False),
    pa.field("payload", pa.binary()),
]
# The numbers of subscriptions, packed, do not get smaller, and take time.
_UNCOMPRESSED = frozenset(["subscription_id"])

# A row group pays for its dictionaries once, so it should be large; a match in it takes four
# bytes of memory until it is written, or 20 with the columns for delivery.
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
        schema = pa.schema(_KEY if matched_at is None else _KEY + _DELIVERY)
        self._file = CodedWriter(path, schema, _UNCOMPRESSED)
        # Memory that is used again: to get new memory from the system costs as much as writing.
        self._rows = np.empty(self._most, np.int32)
        self._clear()

    def _clear(self) -> None:
        self._events: list[Events] = []
        self._runs: list[Runs] = []
        self._n_events = self._n_rows = self._n_payload = 0

    def add(self, events: Events, found: Found) -> None:
        """Add matches of some events."""
        for first in range(0, len(found.rows), self._most):
            self._put(events, found.part(first, first + self._most))

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
        numbers = np.arange(self._n_events - len(events), self._n_events, dtype=np.int32)
        self._runs.append(Runs(numbers, places.start + found.ends))
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
            self._file.write(columns, self._n_rows)
            self.n_matches += self._n_rows
        self._clear()

    def _key(self) -> list[Column]:
        return [
            self._of_events([events.ids for events in self._events]),
            self._subscription_ids(),
            self._priorities(),
            Column(pa.array([self._version], pa.int64()), self._same(0)),
        ]

    def _same(self, code: int) -> Runs:
        """A code that all matches have."""
        return Runs(np.array([code], np.int32), np.array([self._n_rows]))

    def _priorities(self) -> Column:
        of_row = self._opened.priorities
        levels = pa.array(np.arange(N_PRIORITIES, dtype=np.int8))
        if of_row.min() == of_row.max():
            return Column(levels, self._same(int(of_row[0])))
        return Column(levels, of_row[self._rows[: self._n_rows]].astype(np.int32))

    def _subscription_ids(self) -> Column:
        """Their dictionary has every id if most will occur; the search for them costs too."""
        ids, rows = self._opened.ids, self._rows[: self._n_rows]
        if self._n_rows < 2 * len(ids) or self._opened.has_removed:
            rows, used = _renumbered(rows, len(ids))
            ids = ids.take(pa.array(used))
        return Column(ids, rows)

    def _of_events(self, arrays: list[pa.Array]) -> Column:
        """What events hold, for each of their matches."""
        codes, ends = map(np.concatenate, zip(*self._runs, strict=True))
        held = pa.concat_arrays(arrays).dictionary_encode()
        return Column(held.dictionary, Runs(_codes_of(held)[codes], ends))

    def _delivery(self, matched_at: np.datetime64) -> list[Column]:
        opened, rows = self._opened, self._rows[: self._n_rows]
        moment = pa.array(np.array([matched_at]), TIMESTAMP)
        times = [events.times.fill_null(moment[0]) for events in self._events]
        owner_of_row = opened.owners.indices.to_numpy()
        schedule_of_row = opened.schedules.indices.to_numpy()
        schedules = schedule_of_row[rows]
        due = pa.array(due_times(opened.schedules.dictionary, matched_at), TIMESTAMP)
        due = due.dictionary_encode()
        return [
            Column(opened.owners.dictionary, owner_of_row[rows]),
            self._of_events(times),
            Column(moment, self._same(0)),
            Column(due.dictionary, _codes_of(due)[schedules]),
            Column(opened.schedules.dictionary, schedules),
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
    has_kept = bool(matcher.kept or matcher.passing)
    if has_kept:
        assert plan.now is not None
        write_kept(kept_path, matcher.kept, matcher.passing, plan.now)
    _give_back()
    n_events = matcher.n_events if matcher.is_first_shard else 0
    report = [
        pa.array([file and path.name], pa.string()),
        pa.array([n_events], pa.int64()),
        pa.array([file.n_matches if file else 0], pa.int64()),
        pa.array([dead_path.name if matcher.dead else None], pa.string()),
        pa.array([len(matcher.dead)], pa.int64()),
        pa.array([kept_path.name if has_kept else None], pa.string()),
    ]
    yield pa.RecordBatch.from_arrays(report, [part.split()[0] for part in REPORT.split(", ")])


def _give_back() -> None:
    """Let the system have what is free: the worker lives on, and its next batch may be small."""
    pa.default_memory_pool().release_unused()
    if _trim is not None:
        _trim(0)


def _codes_of(values: pa.DictionaryArray) -> Numbers:
    """The position of each value in the dictionary, -1 for a null."""
    codes: Numbers = values.indices.fill_null(-1).to_numpy()
    return codes


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
