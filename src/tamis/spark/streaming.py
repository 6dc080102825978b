"""``match_stream``: a stream of events against subscriptions that change, into the match log."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import PipelineError
from tamis.spark.change_store import ChangeStore
from tamis.spark.changes import ChangeDirectory, ChangeSource
from tamis.spark.checkpoints import settings_of_query
from tamis.spark.cleaning import LogCleaner
from tamis.spark.events import EventMapping
from tamis.spark.file_names import check_names, forget_refused
from tamis.spark.first_load import is_large, load_changes
from tamis.spark.follower import Follower
from tamis.spark.jobs import described, stoppable
from tamis.spark.late_joiners import LateJoiners, LateMatches
from tamis.spark.match_log import MatchLog, Written
from tamis.spark.matching import Mode, arrow_schema, plan_of, spread_events
from tamis.spark.passed import has_only_beat
from tamis.spark.pins import Pin, Pins
from tamis.spark.snapshots import SnapshotStore, read_json, write_json
from tamis.spark.subscriptions import load
from tamis.spark.versions import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_KEPT_BATCHES = 2


class MatchStream:
    """A running match of a stream."""

    def __init__(self, spark: SparkSession, query: StreamingQuery, matcher: BatchMatcher) -> None:
        self._spark = spark
        self.query = query
        """Spark's own handle: ``awaitTermination``, ``lastProgress``, ``exception`` and so on."""
        self.log = matcher.log
        self._matcher = matcher

    @property
    def totals(self) -> Written:
        """Events, matches and dead letters since this was started."""
        return self._matcher.totals

    @property
    def matches(self) -> DataFrame:
        """The matches as a streaming DataFrame, to be processed by another query."""
        return self.log.read_stream(self._spark)

    @property
    def dead_letters(self) -> DataFrame:
        """The rows that could not be read so far: reason, row."""
        return self.log.read_dead(self._spark)

    @property
    def version(self) -> int:
        """The newest version of the subscriptions."""
        latest = self._matcher.follower.store.latest()
        return 0 if latest is None else latest.number

    @property
    def progress(self) -> Any:
        """What Spark says of the last batch; None before the first."""
        return self.query.lastProgress

    def stop(self) -> None:
        """Stop after what is being done; the next start goes on from there."""
        self.query.stop()


class BatchMatcher:
    """Matches one micro-batch after another, each with the version it is pinned to."""

    def __init__(
        self,
        follower: Follower,
        pins: Pins,
        log: MatchLog,
        mapping: EventMapping,
        mode: Mode | None = None,
        n_shards: int | None = None,
        cleaner: LogCleaner | None = None,
        late_joiners: LateJoiners | None = None,
        checkpoint: Path | None = None,
    ) -> None:
        self.follower, self.pins, self.log = follower, pins, log
        self.mapping, self.mode, self.n_shards = mapping, mode, n_shards
        self.cleaner, self.late_joiners = cleaner, late_joiners
        self.checkpoint = checkpoint
        self.totals = Written(0, 0, 0)

    def __call__(self, events: DataFrame, batch: int) -> Written | None:
        """Match a batch; one that is in the log already was replayed and is left alone."""
        if self.log.has(batch):
            return None
        if self.checkpoint is not None:
            check_names(self.checkpoint, batch)
        spark = events.sparkSession
        last = self.pins.get(batch - 1)
        pin = self.pins.get(batch)
        if pin is None:
            with described(spark, f"tamis: changes of subscriptions before batch {batch}"):
                version = self.follower.refresh()
            now = _now() if last is None else max(_now(), last.matched_at)
            pin = self.pins.put(Pin(batch, version.number, now))
        version = self.follower.store.version(pin.version)
        late = self._late(pin, version, last)
        if late is not None and self._has_only_beat(batch):
            written = self.log.write_late(batch, late)
        else:
            written = self._match(events, pin, version, late)
        self.totals = Written(*map(sum, zip(self.totals, written, strict=True)))
        self._forget(batch)
        return written

    def _match(
        self, events: DataFrame, pin: Pin, version: Version, late: LateMatches | None
    ) -> Written:
        """Match the events of a batch, which is not in the log."""
        plan = plan_of(events, version, self.mapping, self.mode, self.n_shards)
        plan = replace(plan, now=pin.matched_at)
        how = "replicated" if plan.n_shards == 1 else f"{plan.n_shards} shards"
        told = f"tamis: match batch {pin.batch}, version {pin.version}, {how}"
        with described(events.sparkSession, told):
            spread = spread_events(events, plan)
            return self.log.write(pin.batch, spread, plan, pin.matched_at, late)

    def _has_only_beat(self, batch: int) -> bool:
        """Whether there are no events in a batch, which then needs no job of Spark.

        Where that cannot be told it is matched as if it had some, and also where the events come
        from operators with a state, which must run in every batch.
        """
        if self.checkpoint is None or (self.checkpoint / "state").exists():
            return False
        try:
            return has_only_beat(self.checkpoint, batch)
        except (OSError, ValueError, PipelineError):
            return False

    def _late(self, pin: Pin, version: Version, last: Pin | None) -> LateMatches | None:
        """What subscriptions get of earlier batches that changed since the last one."""
        if self.late_joiners is None:
            return None
        before = None if last is None else self.follower.store.version(last.version)
        return self.late_joiners.join(pin.batch, version, before, pin.matched_at)

    def _forget(self, batch: int) -> None:
        """Drop what only batches could need that Spark has committed."""
        self.pins.drop_before(batch - _KEPT_BATCHES)
        oldest = self.pins.oldest_version()
        if oldest is not None:
            self.follower.store.drop_before(oldest)
        if self.cleaner is not None:
            self.cleaner.clean(batch - _KEPT_BATCHES)


def match_stream(
    events: DataFrame,
    subscriptions: Any = None,
    *,
    changes: ChangeSource | None = None,
    checkpoint: str | Path,
    log: str | Path | None = None,
    snapshots: str | Path | None = None,
    n_tokens: int | None = None,
    mapping: EventMapping | None = None,
    mode: Mode | None = None,
    n_shards: int | None = None,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    readers: Sequence[str | Path] = (),
    keep: timedelta = timedelta(hours=1),
) -> MatchStream:
    """Match a stream of events into the match log, and go on where the last run stopped.

    ``subscriptions`` are those to begin with (as for `match`; read at the first start only),
    ``changes`` what happens to them afterwards: a ChangeDirectory, a ChangeTable, or anything
    with ``after(sequence)``. A change that is committed before a micro-batch starts is seen
    by it. ``trigger`` is what ``writeStream.trigger`` takes, as a dict.

    ``checkpoint`` is a directory that survives, and that on a cluster every machine sees. The
    match log is its folder ``matches`` and the index files its folder ``snapshots``, where
    ``log`` and ``snapshots`` do not say otherwise.

    Where the mapping says till when events are valid (``until``), those that are valid are kept,
    and subscriptions that are new, changed or moved are told of them too: docs/events.md.

    ``readers`` are the checkpoints of the queries that read the log. Matches that all of them
    have passed are removed from it, ``keep`` after they were written; without readers none are.
    """
    if not events.isStreaming:
        raise PipelineError("the events are no stream; use match(), or spark.readStream")
    mapping = mapping or EventMapping()
    mapping.check(arrow_schema(events))
    folder = Path(checkpoint).absolute()
    match_log = MatchLog(log or folder / "matches")
    keeps_events = mapping.until is not None
    match_log.claim(_name_of(folder, keeps_events))
    spark = events.sparkSession
    place = Path(snapshots or folder / "snapshots")
    follower = Follower(_store(spark, place, subscriptions, changes, n_tokens), changes)
    cleaner = LogCleaner(match_log, [Path(reader) for reader in readers], keep) if readers else None
    pins = Pins(folder / "pins")
    late = None
    if keeps_events:
        follower.store.keeps_changes = True
        late = LateJoiners(match_log, follower.store)
        events = _with_beat(events)
    queried = folder / "spark"
    forget_refused(queried)
    matcher = BatchMatcher(
        follower, pins, match_log, mapping, mode, n_shards, cleaner, late, queried
    )
    writer = events.writeStream.foreachBatch(stoppable(matcher))
    writer = writer.option("checkpointLocation", str(queried))
    writer = writer.queryName(name or "tamis matcher")
    if trigger:
        writer = writer.trigger(**trigger)
    with settings_of_query(spark, queried):
        return MatchStream(spark, writer.start(), matcher)


def _store(
    spark: SparkSession,
    place: Path,
    subscriptions: Any,
    changes: ChangeSource | None,
    n_tokens: int | None,
) -> SnapshotStore:
    """The store of snapshots; at the first start with what there is to begin with."""
    if subscriptions is None and isinstance(changes, ChangeDirectory | ChangeStore):
        store = SnapshotStore(place, n_tokens)
        if store.latest() is None and is_large(changes):
            load_changes(spark, store, changes)
            return store
    return load(spark, place, subscriptions, n_tokens)


def _name_of(checkpoint: Path, keeps_events: bool) -> str:
    """A name that the checkpoint keeps for as long as it lives."""
    file = checkpoint / "checkpoint.json"
    held = read_json(file)
    if held is None:
        held = {"id": uuid.uuid4().hex, "keeps_events": keeps_events}
        write_json(file, held)
    if held.get("keeps_events", False) != keeps_events:
        did, does = ("keeps", "not to") if held.get("keeps_events") else ("does not keep", "to")
        raise PipelineError(
            f"the checkpoint {checkpoint} is of a stream that {did} events for late joiners, and "
            f"this one is {does}; name the column 'until' as before, or give a new checkpoint"
        )
    return str(held["id"])


def _with_beat(events: DataFrame) -> DataFrame:
    """The same events, with a micro-batch every second also when there are none.

    Without it a subscription would join only when the next event comes.
    """
    from pyspark.sql import functions as f

    beat = events.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).load()
    nothing = beat.where("value < 0").select(
        *(f.lit(None).cast(field.dataType).alias(field.name) for field in events.schema)
    )
    return events.unionByName(nothing)


def _now() -> np.datetime64:
    return np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us")
