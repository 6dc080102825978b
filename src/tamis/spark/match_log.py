"""The match log: the matches of every batch, each batch there once whatever is replayed.

<path>/_log.json              format, and the checkpoint it belongs to
<path>/_aside/                batches that are being written
<path>/batch=N/matches-*      the matches of a batch, Parquet
<path>/batch=N/dead-*         the rows of a batch that nobody can read, Parquet
<path>/batch=N/kept-*         its events with a validity, and the ids of the others, for late
                              joiners, Parquet
<path>/batch=N/told-*         which of such events subscriptions that changed were told of, Parquet

A folder ``batch=N`` appears whole, by one rename; a batch without events that tells nobody of
anything has none. Nothing in it changes, but for the matches that
`clean` removes once every query that reads them has passed them.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.errors import PipelineError
from tamis.spark.jobs import map_batches
from tamis.spark.layers import sync
from tamis.spark.match_files import REPORT, write_matches
from tamis.spark.paths import plain_path
from tamis.spark.snapshots import read_json, write_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tamis.spark.late_joiners import LateMatches
    from tamis.spark.tasks import Plan

FORMAT = 1
LOG_SCHEMA = (
    "event_id string, subscription_id string, priority tinyint, index_version bigint, "
    "owner string, event_time timestamp, matched_at timestamp, due timestamp, schedule string, "
    "payload binary"
)
DEAD_SCHEMA = "reason string, row string"
# What stays in a folder when its matches go: dead letters are for people, who delete them; of the
# others `LateJoiners` does so when the events have expired.
_KEPT = ("dead", "kept", "told")


class Written(NamedTuple):
    """What a batch was: how many events, matches and dead letters."""

    n_events: int
    n_matches: int
    n_dead: int


class MatchLog:
    """The folder of a match log."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()

    def claim(self, owner: str) -> None:
        """Say which checkpoint writes here; another's batches would be taken for its own."""
        held = read_json(self.path / "_log.json")
        if held is None:
            write_json(self.path / "_log.json", {"format": FORMAT, "owner": owner})
            return
        if held.get("format") != FORMAT:
            has = held.get("format")
            raise PipelineError(
                f"the match log at {self.path} has format {has}; this Tamis writes {FORMAT}"
            )
        if held.get("owner") != owner:
            raise PipelineError(
                f"the match log at {self.path} was written with another checkpoint, so its batches "
                "are not those of this one; give a new path, or the checkpoint it was written with"
            )
        shutil.rmtree(self.path / "_aside", ignore_errors=True)

    def clean(self, passed: Callable[[str], bool], before: int, age: timedelta) -> None:
        """Remove matches that all have passed, of batches before one and of that age."""
        newest = time.time() - age.total_seconds()
        for folder in self.path.glob("batch=*"):
            if int(folder.name[6:]) >= before or folder.stat().st_mtime > newest:
                continue
            matches = list(folder.glob("matches-*.parquet"))
            if not all(passed(file.name) for file in matches):
                continue
            if any(any(folder.glob(f"{kind}-*.parquet")) for kind in _KEPT):
                for file in matches:
                    file.unlink()
            else:
                shutil.rmtree(folder)

    def has(self, batch: int) -> bool:
        """Whether a batch is there."""
        return self._folder(batch).exists()

    def write(
        self,
        batch: int,
        spread: DataFrame,
        plan: Plan,
        matched_at: np.datetime64,
        late: LateMatches | None = None,
    ) -> Written:
        """Match a batch of events into the log, where it is not yet.

        ``late`` is what late joiners get of the events of earlier batches.
        """
        folder = self.aside()
        try:
            written = run_tasks(spread, plan, folder, matched_at)
            return self._finish(batch, folder, written, late)
        finally:
            shutil.rmtree(folder.parent, ignore_errors=True)

    def write_late(self, batch: int, late: LateMatches) -> Written:
        """Write a batch without events; where nobody is told of anything it leaves no folder."""
        if late.is_empty:
            return Written(0, 0, 0)
        folder = self.aside()
        folder.mkdir()
        try:
            return self._finish(batch, folder, Written(0, 0, 0), late)
        finally:
            shutil.rmtree(folder.parent, ignore_errors=True)

    def _finish(
        self, batch: int, folder: Path, written: Written, late: LateMatches | None
    ) -> Written:
        if late is not None:
            late.write(folder)
            written = written._replace(n_matches=written.n_matches + late.matches.num_rows)
            sync(folder)
        self.publish(batch, folder)
        return written

    def aside(self) -> Path:
        """A new folder for a batch that is being written."""
        (self.path / "_aside").mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self.path / "_aside")) / "whole"

    def publish(self, batch: int, folder: Path) -> None:
        """Make a whole folder the batch."""
        folder.rename(self._folder(batch))
        sync(self.path)

    def read_stream(self, spark: SparkSession) -> DataFrame:
        """The matches as a stream."""
        # Of a pattern Spark forgives that a folder it found is gone when it looks into it.
        return (
            spark.readStream.schema(LOG_SCHEMA)
            .option("recursiveFileLookup", "true")
            .option("pathGlobFilter", "matches-*.parquet")
            .parquet(f"{plain_path(self.path)}/batch=*")
        )

    def read(self, spark: SparkSession) -> DataFrame:
        """The matches that are there now."""
        return self._read(spark, LOG_SCHEMA, "matches-*.parquet")

    def read_dead(self, spark: SparkSession) -> DataFrame:
        """The rows that nobody could read, with the reason."""
        return self._read(spark, DEAD_SCHEMA, "dead-*.parquet")

    def _read(self, spark: SparkSession, schema: str, names: str) -> DataFrame:
        reader = spark.read.schema(schema).option("recursiveFileLookup", "true")
        return reader.option("pathGlobFilter", names).parquet(plain_path(self.path))

    def _folder(self, batch: int) -> Path:
        return self.path / f"batch={batch}"


def run_tasks(
    spread: DataFrame, plan: Plan, folder: Path, matched_at: np.datetime64 | None
) -> Written:
    """Let the tasks write their files, and gather those that count in a new ``folder``."""
    written = folder.with_name("written")
    written.mkdir()
    function = partial(write_matches, plan, written, matched_at)
    report = map_batches(spread, function, REPORT).collect()
    folder.mkdir()
    for row in report:
        for name in (row.file, row.dead_file, row.kept_file):
            if name is not None:
                (written / name).rename(folder / name)
                sync(folder / name)
    sync(folder)
    return Written(
        sum(row.n_events for row in report),
        sum(row.n_matches for row in report),
        sum(row.n_dead for row in report),
    )
