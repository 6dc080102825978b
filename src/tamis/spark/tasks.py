"""What the tasks of a Spark job do: read events, match them, hand over or write the matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.model import Event
from tamis.spark.events import EventMapping, EventReader, Events
from tamis.spark.kept_events import lasting_events, passing_ids, valid_events
from tamis.spark.rows import row_as_json
from tamis.spark.versions import Found, OpenVersion, Version, open_version

SHARD = "_tamis_shard"

_FIRST_SLICE = 512
_WANTED_MATCHES = 1 << 22  # in a slice of a batch: what bounds the memory of a task
_YIELDED_ROWS = 1 << 16

MATCHES = pa.schema(
    [
        ("event_id", pa.string()),
        ("subscription_id", pa.string()),
        ("priority", pa.int8()),
        ("index_version", pa.int64()),
    ]
)
DEAD_LETTERS = pa.schema([("reason", pa.string()), ("row", pa.string())])


@dataclass(frozen=True)
class Plan:
    """What a task must know: the version, how events are read, how many shards there are.

    With one shard every task has all tokens. With more, events come with the number of the
    shard they are to be matched against, and each event comes to every shard. At ``now`` events
    whose validity has ended are passed over; without it none are.
    """

    version: Version
    mapping: EventMapping
    n_shards: int = 1
    now: np.datetime64 | None = None


class Slice(NamedTuple):
    """Some events of a batch, with what they matched in one layer."""

    batch: pa.RecordBatch
    events: Events
    found: Found


class Matcher:
    """Matches the batches of one task."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.opened: OpenVersion | None = None
        self.n_events = 0
        self.kept: list[Event] = []
        self.passing: list[pa.Array] = []
        self.dead: list[tuple[str, str]] = []
        self._reader: EventReader | None = None
        self._shard = 0
        self._slice = _FIRST_SLICE

    @property
    def is_first_shard(self) -> bool:
        """Whether this task reports on the events, of which every shard sees all."""
        return self._shard == 0

    def match(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Slice]:
        """Everything that matches.

        Rows nobody can read are gathered in ``dead``, events with a validity in ``kept``, the ids
        of those without one in ``passing``.
        """
        for whole in batches:
            batch = self._prepare(whole)
            first = 0
            while first < batch.num_rows:
                part = batch.slice(first, self._slice)
                first += part.num_rows
                yield from self._match_slice(part)

    def _prepare(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Find out the shard, open its tokens, and take the shard out of the batch."""
        if self.plan.n_shards > 1 and batch.num_rows:
            self._shard = batch.column(SHARD)[0].as_py()
            batch = batch.drop_columns([SHARD])
        if self.opened is None and batch.num_rows:
            n_tokens, version = len(self.plan.version.tokens), self.plan.version
            if self.plan.n_shards > 1:
                version = version.part(range(self._shard, n_tokens, self.plan.n_shards))
            self.opened = open_version(version)
            self._reader = EventReader(self.plan.mapping, batch.schema, self.opened.schema)
        return batch

    def _match_slice(self, batch: pa.RecordBatch) -> Iterator[Slice]:
        assert self.opened is not None
        assert self._reader is not None
        events = self._reader.read(batch)
        self.n_events += len(events)
        if self.is_first_shard:
            self.dead += [(reason, row_as_json(batch, row)) for row, reason in events.dead]
        if self.plan.now is not None and self.plan.mapping.until is not None:
            passing = passing_ids(events, self.plan.now)
            events = valid_events(events, self.plan.now)
            if self.is_first_shard:
                self.kept += lasting_events(events)
                self.passing += [passing] if len(passing) else []
        if not len(events):
            return
        n_matches = 0
        for found in self.opened.match(events.attributes):
            n_matches += len(found.rows)
            if len(found.rows):
                yield Slice(batch, events, found)
        self._slice = max(64, min(1 << 14, len(events) * _WANTED_MATCHES // max(1, n_matches)))


def match_rows(
    plan: Plan, columns: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Matches as record batches, with columns of the events."""
    matcher = Matcher(plan)
    for batch, events, found in matcher.match(batches):
        assert matcher.opened is not None
        for first in range(0, len(found.rows), _YIELDED_ROWS):
            few = found.part(first, first + _YIELDED_ROWS)
            own = few.events
            arrays = [
                events.ids.take(pa.array(own)),
                matcher.opened.ids.take(pa.array(few.rows)),
                pa.array(matcher.opened.priorities[few.rows]),
                pa.array(np.full(len(few.rows), plan.version.number, np.int64)),
            ]
            places = pa.array(events.positions[own])
            arrays += [batch.column(name).take(places) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, [*MATCHES.names, *columns])


def dead_rows(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows nobody can read, without matching the others."""
    for batch in batches:
        schema = open_version(plan.version).schema if plan.version.tokens else None
        dead = EventReader(plan.mapping, batch.schema, schema).read(batch).dead
        pairs = [(reason, row_as_json(batch, row)) for row, reason in dead]
        yield dead_letter_batch(pairs)


def dead_letter_batch(pairs: list[tuple[str, str]]) -> pa.RecordBatch:
    """Dead letters as Arrow."""
    reasons, rows = ([pair[side] for pair in pairs] for side in (0, 1))
    return pa.RecordBatch.from_arrays([pa.array(reasons, pa.string()), pa.array(rows, pa.string())],
                                      schema=DEAD_LETTERS)  # fmt: skip
