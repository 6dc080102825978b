"""Subscriptions that join or move late get the events that are still valid, once each."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tamis import Event, Subscription
from tamis.errors import PipelineError
from tamis.language import evaluate
from tamis.spark import EventMapping, MatchLog, SnapshotStore, match_stream, streaming
from tamis.spark.changes import Change
from tamis.spark.follower import Follower
from tamis.spark.late_joiners import LateJoiners
from tamis.spark.pins import Pins
from tamis.spark.streaming import BatchMatcher
from tamis.spark.subscriptions import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
MAPPING = EventMapping(until="until", points={"location": ("lon", "lat")})
SCHEMA = "id string, price double, kind string, lon double, lat double, until timestamp"
Pair = tuple[str, str]


class Stopped(Exception):
    """Stands for the end of a process."""


@dataclass
class World:
    """What people do, and what must come of it."""

    chosen: random.Random
    now: datetime = START
    changes: list[Change] = field(default_factory=list)
    saved: dict[str, Subscription] = field(default_factory=dict)
    seen: dict[str, Subscription] = field(default_factory=dict)
    n_events: int = 0
    valid: list[Event] = field(default_factory=list)
    told: set[Pair] = field(default_factory=set)
    n_late: int = 0
    n_published: int = 0

    def after(self, sequence: int) -> list[Change]:
        """As a source of changes."""
        return [change for change in self.changes if change.sequence > sequence]

    def change(self) -> None:
        """Somebody saves, moves, changes or deletes a subscription."""
        id = f"s{self.chosen.randrange(6)}"
        held = self.saved.get(id)
        if held is not None and self.chosen.random() < 0.25:
            del self.saved[id]
            self._log(id, None)
            return
        if held is not None and self.chosen.random() < 0.5:
            made = Subscription(
                id, held.filter, self.chosen.randrange(10), "zoe", {},
                self._place() if held.location else None, held.radius_m,
            )  # fmt: skip
        else:
            is_near = self.chosen.random() < 0.6
            made = Subscription(
                id, f"price < {self.chosen.randrange(1, 12)} OR kind = 'gift'",
                location=self._place() if is_near else None, radius_m=600.0 if is_near else None,
            )  # fmt: skip
        self.saved[id] = made
        self._log(id, made)

    def publish(self) -> list[Event]:
        """Some events, most of them valid for a while; of some the id was there before."""
        made: list[Event] = []
        if self.chosen.random() < 0.3:
            return made
        self.n_published += 1
        earlier = [f"e{n + 1}" for n in range(self.n_events)]
        again = self.chosen.sample(earlier, min(len(earlier), self.chosen.randrange(4)))
        new = [f"e{self.n_events + n + 1}" for n in range(self.chosen.randrange(5))]
        self.n_events += len(new)
        for id in again + new:
            lasts = self.chosen.choice([None, -1, 0, 2, 6, 20, 20])
            until = None if lasts is None else self.now + timedelta(minutes=lasts)
            held: dict[str, Any] = {"price": float(self.chosen.randrange(10)), "kind": "offer"}
            made.append(Event(id, held, until=until, location=self._place()))
        return made

    def expect(self, events: list[Event], now: datetime) -> list[Pair]:
        """What a micro-batch must tell: what is accepted, valid, and was never told."""
        valid = [one for one in self.valid if one.until is not None and one.until > now]
        new = [one for one in events if one.until is None or one.until > now]
        late: list[Pair] = []
        for id, held in self.saved.items():
            before = self.seen.get(id)
            if before is None or before.condition != held.condition:
                late += [pair for pair in _accepted(held, valid) if pair not in self.told]
        live = [pair for held in self.saved.values() for pair in _accepted(held, new)]
        came = {event.id for event in events}
        self.told = {pair for pair in (*self.told, *late) if pair[0] not in came} | {*live}
        self.valid = [event for event in valid if event.id not in came] + new
        self.seen = dict(self.saved)
        self.n_late += len(late)
        return sorted(late + live)

    def _place(self) -> tuple[float, float]:
        return (4.9 + self.chosen.randrange(3) * 0.01, 52.37)

    def _log(self, id: str, held: Subscription | None) -> None:
        self.changes.append(Change(len(self.changes) + 1, id, held))


def _accepted(held: Subscription, events: list[Event]) -> list[Pair]:
    return [(one.id, held.id) for one in events if evaluate(held.condition, one.attributes)]


@dataclass
class Process:
    """A matcher, as each start of a pipeline makes one."""

    folder: Path
    spark: SparkSession
    world: World

    def __post_init__(self) -> None:
        store = load(self.spark, self.folder / "snapshots", None, 3)
        store.keeps_changes = True
        self.log = MatchLog(self.folder / "matches")
        self.pins = Pins(self.folder / "pins")
        late = LateJoiners(self.log, store)
        follower = Follower(store, self.world)
        self.queried = self.folder / "spark"
        self.matcher = BatchMatcher(
            follower, self.pins, self.log, MAPPING, None, None, None, late, self.queried
        )  # fmt: skip

    def begin(self, batch: int) -> None:
        """Write down what a micro-batch reads, as Spark does: of the events, and of the beat."""
        offsets = self.queried / "offsets" / str(batch)
        offsets.parent.mkdir(parents=True, exist_ok=True)
        offsets.write_text(f"v1\n{{}}\n{self.world.n_published}\n{batch}")


def frame_of(spark: SparkSession, events: list[Event]) -> DataFrame:
    rows = [
        (
            one.id, *(one.attributes[name][0] for name in ("price", "kind")),
            one.location and one.location.lon, one.location and one.location.lat, one.until,
        )
        for one in events
    ]  # fmt: skip
    return spark.createDataFrame(rows, SCHEMA)


def pairs_of(log: MatchLog, batch: int) -> list[Pair]:
    import pyarrow.parquet as pq

    found: list[Pair] = []
    for file in (log.path / f"batch={batch}").glob("matches-*.parquet"):
        table = pq.read_table(file)
        columns = (table[name].to_pylist() for name in ("event_id", "subscription_id"))
        found += zip(*columns, strict=True)
    return sorted(found)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Sets the time of the matcher."""

    def set_to(now: datetime) -> None:
        moment = np.datetime64(now.replace(tzinfo=None), "us")
        monkeypatch.setattr(streaming, "_now", lambda: moment)

    return set_to


@pytest.mark.parametrize("seed", range(3))
def test_each_valid_event_is_told_once(
    seed: int,
    spark: SparkSession,
    clock: Callable[[datetime], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Random changes and events, and processes that end at the worst moments."""
    world = World(random.Random(seed))
    process = Process(tmp_path, spark, world)
    for batch in range(12):
        for _ in range(world.chosen.randrange(6)):
            world.change()
        events = world.publish()
        clock(world.now)
        expected = world.expect(events, world.now)
        frame = frame_of(spark, events)
        process.begin(batch)
        trouble = world.chosen.choice(["", "", "refreshed", "pinned", "written", "published"])
        if trouble:
            process = fail_at(trouble, process, frame, batch, monkeypatch)
            if trouble != "refreshed":
                for _ in range(2):
                    world.change()  # of these the batch that is repeated must not know
            clock(world.now + timedelta(minutes=1))
        process.matcher(frame, batch)
        assert pairs_of(process.log, batch) == expected, (batch, trouble)
        world.now += timedelta(minutes=2)
    assert world.n_late > 3


def fail_at(
    moment: str,
    process: Process,
    frame: DataFrame,
    batch: int,
    monkeypatch: pytest.MonkeyPatch,
) -> Process:
    """Let a process end at a moment of a batch; the next one."""

    def stop(*_: Any, **__: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patched:
        if moment == "refreshed":
            patched.setattr(process.matcher.pins, "put", stop)
        elif moment == "pinned":
            patched.setattr(process.matcher, "_late", stop)
        elif moment == "written":
            patched.setattr(process.log, "publish", stop)
        elif moment == "published":
            patched.setattr(process.matcher, "_forget", stop)
        # Of a batch that adds nothing there is nothing to write.
        with suppress(Stopped) if moment == "written" else pytest.raises(Stopped):
            process.matcher(frame, batch)
    return Process(process.folder, process.spark, process.world)


def test_what_has_expired_is_let_go(
    spark: SparkSession, clock: Callable[[datetime], None], tmp_path: Path
) -> None:
    world = World(random.Random(1))
    process = Process(tmp_path, spark, world)
    for batch in range(41):
        clock(START + timedelta(minutes=batch))
        until = START + timedelta(minutes=batch + 3)
        near = Event(
            f"e{batch}", {"price": 1.0, "kind": "offer"}, until=until, location=(4.9, 52.3)
        )
        world.saved["s"] = Subscription("s", f"price < {2 + batch % 2}")
        world._log("s", world.saved["s"])
        world.n_published += batch % 2
        process.begin(batch)
        process.matcher(frame_of(spark, [near] if batch % 2 else []), batch)
    kept = [
        int(file.parent.name[6:])
        for kind in ("kept", "told")
        for file in process.log.path.glob(f"batch=*/{kind}-*")
    ]
    assert kept
    assert min(kept) >= 36
    joiners = process.matcher.late_joiners
    assert joiners is not None
    assert len(joiners._store) <= 3
    assert sum(map(len, joiners._told.values())) <= 3


def test_a_subscription_joins_while_no_events_come(spark: SparkSession, tmp_path: Path) -> None:
    """The whole stream: without an event after the subscription, it is told of the one before."""
    (tmp_path / "events").mkdir()
    world = World(random.Random(0))
    frame = spark.readStream.schema(SCHEMA).json(str(tmp_path / "events"))
    stream = match_stream(
        frame, changes=world, checkpoint=tmp_path / "state", mapping=MAPPING, n_tokens=2,
        trigger={"processingTime": "200 milliseconds"},
    )  # fmt: skip
    try:
        (tmp_path / "aside").write_text(
            '{"id": "e1", "price": 1.0, "kind": "offer", "until": "2999-01-01T00:00:00Z"}\n'
        )
        (tmp_path / "aside").rename(tmp_path / "events" / "1.json")
        wait_for(lambda: stream.totals.n_events == 1)
        world._log("s1", Subscription("s1", "price < 2"))
        wait_for(lambda: stream.totals.n_matches == 1)
        world._log("s1", Subscription("s1", "price < 3"))
        version = stream.version
        wait_for(lambda: stream.version > version)
        n_batches = stream.progress["batchId"]
        wait_for(lambda: stream.progress["batchId"] > n_batches + 1)
        assert stream.totals.n_matches == 1
    finally:
        stream.stop()
    with pytest.raises(PipelineError, match="name the column 'until' as before"):
        match_stream(frame, checkpoint=tmp_path / "state")


def wait_for(is_true: Callable[[], bool]) -> None:
    import time

    until = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_changes_of_versions_are_known(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "snapshots", 3)
    first = store.apply({}, 0)
    store.keeps_changes = True
    held = {id: Subscription(id, "x = 1") for id in ("a", "b", "c")}
    second = store.apply(dict(held), 3)
    third = store.apply({"b": None, "c": Subscription("c", "x = 2")}, 5)
    assert store.changed(first.number, third.number) == {"a", "b", "c"}
    assert store.changed(second.number, third.number) == {"b", "c"}
    assert store.changed(0, third.number) is None
    assert store.find(second, ["a", "b", "nobody"]) == {"a": held["a"], "b": held["b"]}
    assert store.find(third, ["a", "b", "c"]) == {"a": held["a"], "c": Subscription("c", "x = 2")}
    assert sorted(store.ids(third)) == ["a", "c"]
    store.drop_before(third.number)
    assert [file.suffix for file in sorted((store.path / "versions").iterdir())] == [
        ".ids",
        ".json",
    ]
