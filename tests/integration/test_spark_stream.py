"""``match_stream``: every event once in the log, with the version its batch was pinned to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tamis.errors import PipelineError
from tamis.spark import ChangeDirectory, EventMapping, MatchLog, MatchStream, match_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JOB = Path(__file__).with_name("spark_stream_job.py")
EVENTS = "id string, price double, time timestamp, note string"
MAPPING = EventMapping(time="time", payload="note")


class Pipeline:
    """A directory of events, one of changes, and the stream between them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        for name in ("events", "changes"):
            (folder / name).mkdir()
        self.n_files = self.sequence = 0

    def publish(self, *rows: dict[str, Any]) -> None:
        """A file of events, which appears whole."""
        self.n_files += 1
        aside = self.folder / "aside"
        aside.write_text("".join(json.dumps(row) + "\n" for row in rows))
        aside.rename(self.folder / "events" / f"{self.n_files:04}.json")

    def change(self, id: str, filter: str | None, **more: Any) -> None:
        self.sequence += 1
        record = {"sequence": self.sequence, "id": id, **more}
        record |= {"op": "delete"} if filter is None else {"filter": filter}
        with (self.folder / "changes" / "log.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    def run(self, **options: Any) -> MatchStream:
        """Match everything that is there, and stop."""
        events = self.spark.readStream.schema(EVENTS).json(str(self.folder / "events"))
        stream = match_stream(
            events,
            changes=ChangeDirectory(self.folder / "changes"),
            checkpoint=self.folder / "checkpoint",
            mapping=MAPPING,
            trigger={"availableNow": True},
            **options,
        )
        try:
            assert stream.query.awaitTermination(120)
        finally:
            stream.stop()
        return stream

    def matches(self) -> list[tuple[str, str, int]]:
        rows = MatchLog(self.folder / "checkpoint" / "matches").read(self.spark).collect()
        return sorted((row.event_id, row.subscription_id, row.index_version) for row in rows)


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path)


def test_a_change_committed_before_a_batch_is_seen_by_it(pipeline: Pipeline) -> None:
    pipeline.change("cheap", "price < 10")
    pipeline.publish({"id": "e1", "price": 5}, {"id": "e2", "price": 20})
    pipeline.run()
    assert pipeline.matches() == [("e1", "cheap", 2)]
    pipeline.change("cheap", "price < 30")
    pipeline.change("all", "TRUE")
    pipeline.publish({"id": "e3", "price": 20})
    pipeline.run()
    assert pipeline.matches() == [("e1", "cheap", 2), ("e3", "all", 3), ("e3", "cheap", 3)]
    pipeline.change("cheap", None)
    pipeline.publish({"id": "e4", "price": 20})
    stream = pipeline.run()
    assert pipeline.matches()[3:] == [("e4", "all", 4)]
    assert stream.version == 4


def test_the_log_has_what_delivery_needs(pipeline: Pipeline) -> None:
    hourly = {"schedule": "every hour"}
    pipeline.change("s1", "price < 10", owner="Zoë", priority=2, delivery=hourly)
    pipeline.change("s2", "price < 9")
    pipeline.publish(
        {"id": "e1", "price": 5, "time": "2026-01-01T12:00:00Z", "note": "é"},
        {"id": "e2", "price": 9.5},
        {"id": "e2", "price": 9.5},  # the same id twice is two events
    )
    stream = pipeline.run()
    rows = {(r.event_id, r.subscription_id): r for r in stream.log.read(pipeline.spark).collect()}
    assert set(rows) == {("e1", "s1"), ("e1", "s2"), ("e2", "s1")}
    assert len(pipeline.matches()) == 4
    told, plain, late = rows["e1", "s1"], rows["e1", "s2"], rows["e2", "s1"]
    assert (told.owner, told.priority, json.loads(told.schedule)) == ("Zoë", 2, hourly)
    assert (plain.owner, plain.priority, plain.schedule) == ("", 5, "")
    assert bytes(told.payload) == "é".encode()
    assert late.payload is None
    assert told.event_time.isoformat() == "2026-01-01T12:00:00"
    assert late.event_time == late.matched_at  # an event without a time
    assert {row.matched_at for row in rows.values()} == {told.matched_at}
    assert all(row.due >= row.matched_at for row in rows.values())


def test_rows_that_cannot_be_read_are_kept_and_the_stream_goes_on(pipeline: Pipeline) -> None:
    pipeline.change("all", "TRUE")
    pipeline.publish({"id": "e1", "price": 5}, {"price": 7, "note": "lost?"}, {"id": "e2"})
    (pipeline.folder / "events" / "garbage.json").write_bytes(b"\x00\xff not json\n{\n")
    (pipeline.folder / "events" / "nothing.json").write_bytes(b"")
    stream = pipeline.run()
    assert [row[0] for row in pipeline.matches()] == ["e1", "e2"]
    dead = [(row.reason, json.loads(row.row)) for row in stream.dead_letters.collect()]
    assert [row["note"] for reason, row in dead if row["price"] == 7] == ["lost?"]
    assert all(reason == "the event has no id" for reason, _ in dead)
    assert len(dead) == 3  # Spark gives a row of nulls for each line that is no JSON


def test_matches_are_a_stream_for_the_next_query(pipeline: Pipeline) -> None:
    pipeline.change("all", "TRUE")
    pipeline.publish({"id": "e1"}, {"id": "e2"})
    stream = pipeline.run()
    seen: list[str] = []
    for round_ in range(2):
        seen += read_new(stream, pipeline.folder / "following")
        assert sorted(seen) == [f"e{n}" for n in range(1, 3 + round_)]
        pipeline.publish({"id": f"e{3 + round_}"})
        pipeline.run(mode="sharded")  # from now on
    assert len(pipeline.matches()) == 4


def test_a_killed_driver_loses_nothing_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    moments = ["written", "published"]
    killed = {}
    for moment in moments:
        (tmp_path / moment).mkdir()
        pipeline = Pipeline(spark, tmp_path / moment)
        pipeline.change("cheap", "price < 10")
        pipeline.publish({"id": "e1", "price": 5}, {"id": "e2", "price": 20})
        killed[moment] = pipeline
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
    jobs = [
        subprocess.Popen([sys.executable, JOB, tmp_path / moment, moment], env=environ)
        for moment in moments
    ]
    assert [job.wait(timeout=200) for job in jobs] == [-signal.SIGKILL] * 2
    for moment, pipeline in killed.items():
        n_before = len(pipeline.matches())
        assert n_before == (moment == "published"), moment
        # What changes now must not be seen by the batch that is replayed, only by the next.
        pipeline.change("dear", "price >= 10")
        pipeline.run()
        assert pipeline.matches() == [("e1", "cheap", 2)], moment
        pipeline.publish({"id": "e3", "price": 30})
        pipeline.run()
        assert pipeline.matches() == [("e1", "cheap", 2), ("e3", "dear", 3)], moment
        aside = pipeline.folder / "checkpoint" / "matches" / "_aside"
        assert not aside.exists() or not list(aside.iterdir())


def test_a_log_of_another_checkpoint_is_refused(pipeline: Pipeline) -> None:
    pipeline.publish({"id": "e1"})
    pipeline.run(log=pipeline.folder / "log")
    shutil.rmtree(pipeline.folder / "checkpoint")
    with pytest.raises(PipelineError, match="another checkpoint"):
        pipeline.run(log=pipeline.folder / "log")


def test_old_versions_are_removed(pipeline: Pipeline) -> None:
    for number in range(1, 6):
        pipeline.change("cheap", f"price < {number}")
        pipeline.publish({"id": f"e{number}", "price": 0})
        pipeline.run()
    snapshots = pipeline.folder / "checkpoint" / "snapshots"
    assert sorted(int(path.stem) for path in (snapshots / "versions").iterdir()) == [4, 5, 6]
    assert len(list((snapshots / "layers").iterdir())) <= 4
    assert [row[2] for row in pipeline.matches()] == [2, 3, 4, 5, 6]


def read_new(stream: MatchStream, folder: Path) -> list[str]:
    """What a query with a checkpoint of its own reads of the log, from where it was."""
    seen: list[str] = []
    query = (
        stream.matches.writeStream.foreachBatch(
            lambda frame, _: seen.extend(row.event_id for row in frame.collect())
        )
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return sorted(seen)


def test_matches_go_when_every_reader_has_passed_them(pipeline: Pipeline) -> None:
    fast, slow = (pipeline.folder / name for name in ("fast", "slow"))
    options: dict[str, Any] = {"readers": [fast, slow], "keep": timedelta(0)}

    def batches() -> list[int]:
        log = pipeline.folder / "checkpoint" / "matches"
        folders = {file.parent for file in log.glob("batch=*/matches-*.parquet")}
        return sorted(int(folder.name[6:]) for folder in folders)

    pipeline.change("all", "TRUE")
    for number in range(5):
        pipeline.publish({"id": f"e{number}"}, *([{"note": "no id"}] if number == 1 else []))
        stream = pipeline.run(**options)
        assert read_new(stream, fast) == [f"e{number}"]
    assert batches() == [0, 1, 2, 3, 4]  # the other has read nothing
    assert read_new(stream, slow) == [f"e{number}" for number in range(5)]
    pipeline.publish({"id": "e5"})
    stream = pipeline.run(**options)
    assert batches() == [0, 1, 2, 3, 4, 5]  # on a start Spark looks at its last batch again
    assert read_new(stream, slow) == ["e5"]
    assert read_new(stream, fast) == ["e5"]
    pipeline.publish({"id": "e6"})
    stream = pipeline.run(**options)
    assert batches() == [4, 5, 6]  # those of the last micro-batches of the matcher stay
    assert len(stream.dead_letters.collect()) == 1
    assert read_new(stream, slow) == ["e6"]
    assert read_new(stream, fast) == ["e6"]
    assert sorted(path.name for path in stream.log.path.glob("batch=*")) == [
        f"batch={number}" for number in (1, 4, 5, 6)
    ]


def tasks_shown(spark: SparkSession, description: str) -> list[int]:
    """The tasks of each stage of the newest job so described, as Spark's web interface has them.

    It keeps fifty stages: of older jobs it may have forgotten all, and of any job those that were
    skipped, which it forgets first.
    """
    jvm_context: Any = spark.sparkContext._jsc.sc()
    jvm_context.listenerBus().waitUntilEmpty()
    store = jvm_context.statusStore()
    jobs = [store.jobsList(None).apply(n) for n in range(store.jobsList(None).size())]
    told = [job for job in jobs if job.description().isDefined()]
    described = [job for job in told if job.description().get() == description]
    ids = max(described, key=lambda job: job.jobId()).stageIds()
    tracker = spark.sparkContext.statusTracker()
    known = map(tracker.getStageInfo, [ids.apply(n) for n in range(ids.size())])
    return [stage.numTasks for stage in known if stage is not None]


def test_plan_and_skew_are_shown_by_named_stages(pipeline: Pipeline) -> None:
    for number in range(20):
        pipeline.change(f"s{number}", f"price < {number}")
    pipeline.publish({"id": "e1", "price": 5}, {"id": "e2", "price": 10})
    stream = pipeline.run(mode="sharded", n_shards=2)
    assert len(pipeline.matches()) == 14 + 9
    shown = tasks_shown(pipeline.spark, f"tamis: match batch 0, version {stream.version}, 2 shards")
    assert 2 in shown  # a task a shard
