"""Late joiners: what subscriptions that are new, changed or moved get of events still valid.

A micro-batch is pinned to a version of the subscriptions and to a time. Its own events are
matched with that version by the tasks: the live path. Beside that, each subscription that changed
since the version of the micro-batch before is matched here with the events of all *earlier*
micro-batches that are valid at that time. So an event and a subscription meet once: live if the
version of the event's micro-batch has the subscription as it is, here if it changed afterwards.

A subscription that changes again must not be told again of what it was told before. All valid
events that it accepted as it was have been told, live or here; they are remembered until they
expire. What it accepts as it is now, less what is remembered, is told.

An event replaces the one that an earlier micro-batch kept under its id, also if it is not kept
itself, and nobody has been told of it yet. So a file that says of an id that it came again stays
for as long as an older file would say otherwise.

Everything a micro-batch adds is in its folder of the match log, which appears whole; what is in
memory is read from there after a restart.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.delivery import due_times, settings_text
from tamis.events import EventStore
from tamis.model import Event, Subscription
from tamis.spark.events import TIMESTAMP
from tamis.spark.kept_events import read_kept, read_untils
from tamis.spark.layers import sync
from tamis.spark.snapshots import SnapshotStore

if TYPE_CHECKING:
    from tamis.spark.match_log import MatchLog
    from tamis.spark.versions import Version

__all__ = ["LateJoiners", "LateMatches"]

_MATCHES = pa.schema(
    [
        ("event_id", pa.string()),
        ("subscription_id", pa.string()),
        ("priority", pa.int8()),
        ("index_version", pa.int64()),
        ("owner", pa.string()),
        ("event_time", TIMESTAMP),
        ("matched_at", TIMESTAMP),
        ("due", TIMESTAMP),
        ("schedule", pa.string()),
        ("payload", pa.binary()),
    ]
)
_TOLD = pa.schema(
    [("subscription_id", pa.string()), ("event_id", pa.string()), ("until", TIMESTAMP)]
)
_SWEEP_EVERY = 20  # micro-batches
_SWEEP_EVENTS = 100_000

_Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class LateMatches:
    """What a micro-batch adds for late joiners: matches, and what they were told before."""

    matches: pa.Table
    told: pa.Table

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self.matches.num_rows and not self.told.num_rows

    def write(self, folder: Path) -> None:
        """Write the files of a micro-batch."""
        for kind, table in (("matches", self.matches), ("told", self.told)):
            if table.num_rows:
                path = folder / f"{kind}-late-{uuid.uuid4().hex}.parquet"
                pq.write_table(table, path)
                sync(path)


class LateJoiners:
    """Matches subscriptions that changed with the events kept of earlier micro-batches."""

    def __init__(self, log: MatchLog, snapshots: SnapshotStore) -> None:
        self._log, self._snapshots = log, snapshots
        self._store = EventStore()
        self._ids: set[str] = set()  # of the events in the store
        self._told: dict[str, set[str]] = {}  # event: subscriptions
        self._next = 0  # the first micro-batch whose events are not in the store

    def join(
        self, batch: int, version: Version, before: Version | None, now: np.datetime64
    ) -> LateMatches:
        """What those get that changed between two versions."""
        self._load(batch, now)
        if batch % _SWEEP_EVERY == 0:
            self._sweep(now)
        matches: list[_Row] = []
        told: list[_Row] = []
        if len(self._store):
            for id, old, new in self._changed(version, before):
                told += self._remember(id, old, now)
                if new is not None:
                    matches += self._matches(new, version.number, now)
        return LateMatches(_table(matches, _MATCHES), _table(told, _TOLD))

    def _changed(
        self, version: Version, before: Version | None
    ) -> Iterator[tuple[str, Subscription | None, Subscription | None]]:
        """The subscriptions that ask for something else than before: as they were and are."""
        snapshots = self._snapshots
        ids = None if before is None else snapshots.changed(before.number, version.number)
        if ids is None:
            ids = set(snapshots.ids(version))
        old = {} if before is None else snapshots.find(before, ids)
        new = snapshots.find(version, ids)
        for id in sorted(ids):
            was, now = old.get(id), new.get(id)
            if was is None or now is None or was.condition != now.condition:
                yield id, was, now

    def _remember(self, id: str, old: Subscription | None, now: np.datetime64) -> list[_Row]:
        """Remember what a subscription was told as it was; what is new in that."""
        if old is None:
            return []
        more = [one for one in self._accepted(old, now) if id not in self._told.get(one, ())]
        for event in more:
            self._told.setdefault(event, set()).add(id)
        return [(id, event, _until(self._store[event])) for event in more]

    def _matches(self, new: Subscription, version: int, now: np.datetime64) -> list[_Row]:
        text = settings_text(new.delivery)
        (due,) = due_times(pa.array([text], pa.string()), now)
        made: list[_Row] = []
        for id in self._accepted(new, now):
            if new.id in self._told.get(id, ()):
                continue
            event = self._store[id]
            times = (event.time or _datetime(now), _datetime(now), _datetime(due))
            payload = event.payload or None
            made.append((id, new.id, new.priority, version, new.owner, *times, text, payload))
        return made

    def _accepted(self, subscription: Subscription, now: np.datetime64) -> list[str]:
        return self._store.match(subscription, _datetime(now))

    # -- what is kept

    def _load(self, batch: int, now: np.datetime64) -> None:
        """Take in what the micro-batches before this one have kept."""
        for folder in self._folders(batch):
            self._load_told(folder)  # of events of earlier micro-batches, so this comes first
            kept: dict[str, Event] = {}
            for file in sorted(folder.glob("kept-*.parquet")):
                ids, events = read_kept(file, now)
                self._replace(ids)
                kept.update((event.id, event) for event in events)
            self._store.insert_many(kept.values(), _datetime(now))
            self._ids.update(kept)
        self._next = batch

    def _load_told(self, folder: Path) -> None:
        for file in folder.glob("told-*.parquet"):
            table = pq.read_table(file)
            pairs = zip(*(table[name].to_pylist() for name in _TOLD.names[:2]), strict=True)
            for subscription, event in pairs:
                self._told.setdefault(event, set()).add(subscription)

    def _replace(self, ids: list[str]) -> None:
        """Forget the events of ids that came again, and who was told of them."""
        for id in self._ids.intersection(ids):
            self._ids.remove(id)
            if id in self._store:
                self._store.delete(id)
        for id in self._told.keys() & ids:
            del self._told[id]

    def _folders(self, batch: int) -> Iterable[Path]:
        if batch == self._next + 1:
            return [self._log.path / f"batch={self._next}"]
        numbers = {
            _batch_of(file)
            for kind in ("kept", "told")
            for file in self._log.path.glob(f"batch=*/{kind}-*.parquet")
        }
        wanted = sorted(number for number in numbers if self._next <= number < batch)
        return [self._log.path / f"batch={number}" for number in wanted]

    def _sweep(self, now: np.datetime64) -> None:
        """Let go of what has expired, in memory and in files."""
        self._store.expire(_datetime(now), _SWEEP_EVENTS)
        self._ids = {id for id in self._ids if id in self._store}
        for id in self._told.keys() - self._ids:
            del self._told[id]
        moment = int(now.astype("M8[us]").astype(np.int64))
        for file in self._log.path.glob("batch=*/told-*.parquet"):
            last = pq.read_table(file, columns=["until"])["until"].cast(pa.int64())
            if max(last.to_pylist()) <= moment:
                file.unlink()
        for file in _outdated(self._log.path.glob("batch=*/kept-*.parquet"), moment):
            file.unlink()


def _outdated(files: Iterable[Path], moment: int) -> Iterator[Path]:
    """The files of kept events, oldest first, that nobody needs.

    A file is needed for an event that did not come again since, while it is valid, or while it
    would be valid in an older file that is there.
    """
    held = [(_batch_of(file), file, read_untils(file)) for file in files]
    held.sort(key=itemgetter(0))
    newest = {id: batch for batch, _, untils in held for id in untils}
    older: set[str] = set()
    for batch, file, untils in held:
        valid = {id for id, until in untils.items() if until > moment}
        if not any(newest[id] == batch for id in valid | (older & untils.keys())):
            yield file
        older |= valid


def _batch_of(file: Path) -> int:
    return int(file.parent.name.removeprefix("batch="))


def _table(rows: list[_Row], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(list(held), field.type) for held, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _until(event: Event) -> datetime:
    assert event.until is not None
    return event.until


def _datetime(moment: np.datetime64) -> datetime:
    made: datetime = moment.astype("M8[us]").item()
    return made.replace(tzinfo=UTC)
