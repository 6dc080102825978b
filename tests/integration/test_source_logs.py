"""Spark goes on with logs of its sources that were shortened under it, and after a start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tamis.spark import source_logs
from tamis.spark.passed import newest_compact
from tamis.spark.source_logs import SourceLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark


def test_a_query_whose_log_is_shortened_reads_every_file_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_logs, "_SHORT", 0)
    monkeypatch.setattr(source_logs, "_EVERY_S", 0.0)
    files, checkpoint = tmp_path / "a folder", tmp_path / "checkpoint"
    files.mkdir()
    read: list[str] = []
    n_files = 0

    def start() -> StreamingQuery:
        def note(few: DataFrame, batch: int) -> None:
            read.extend(row.value for row in few.collect())

        stream = spark.readStream.text(str(files))
        options = {"checkpointLocation": str(checkpoint)}
        return stream.writeStream.foreachBatch(note).options(**options).start()

    def put(query: StreamingQuery, n: int) -> None:
        nonlocal n_files
        for _ in range(n):
            (files / f"{n_files:03}.txt").write_text(f"{n_files}\n")
            n_files += 1
            query.processAllAvailable()

    def length() -> int:
        log = newest_compact(checkpoint / "sources" / "0")
        assert log is not None
        return len(log.read_text().splitlines()) - 1

    name = "spark.sql.streaming.fileSource.log.compactInterval"
    spark.conf.set(name, "3")
    try:
        query = start()
        put(query, 6)
        for number in range(5):
            (files / f"{number:03}.txt").unlink()
        logs = SourceLogs({checkpoint: files})
        assert length() == 6
        logs.tidy()  # while the query runs
        assert length() < 3
        put(query, 4)
        assert length() <= 5
        query.stop()
        for number in range(5, 9):
            (files / f"{number:03}.txt").unlink()
        SourceLogs({checkpoint: files}).tidy()
        query = start()
        put(query, 4)
        query.stop()
        assert length() <= 6
    finally:
        spark.conf.unset(name)
    assert read == [str(number) for number in range(n_files)]
