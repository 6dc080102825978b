"""``match_stream``: every event once in the log, with the version its batch was pinned to."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tamis import Subscription
from tamis.spark import ChangeDirectory, EventMapping, MatchLog, MatchStream, match_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

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
