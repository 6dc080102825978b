"""The job of test_spark_runtime.py: everything Tamis uses of Spark, once, on small data.

Run as ``python spark_runtime_job.py FOLDER``; prints one JSON object with what came out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tamis.spark import session

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# One file a micro-batch; the delay of the watermark is 10 s, a window lasts 10 s.
FILES = [
    [("a", 1), ("b", 2), ("a", 3)],
    [("a", 4), ("c", 25)],  # joins the state of the first file, then closes the window 0-10
    [("a", 5), ("d", 60)],  # closes 20-30; its first row still counts, by Spark's rule for lateness
]
# The first row is too late now; the second closes 60-70, which only the checkpoint remembers.
FILE_AFTER_RESTART = [("a", 6), ("e", 120)]


def query(spark: SparkSession) -> list[int]:
    """A shuffle: the sums of the residue classes of 0..999 modulo 3."""
    sums = spark.range(1000).groupBy((f.col("id") % 3).alias("rest")).sum("id").orderBy("rest")
    return [row[1] for row in sums.collect()]


def map_in_arrow(spark: SparkSession) -> list[int]:
    """A Python function over Arrow batches, in another process that runs this interpreter."""

    def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [2 * value for value in batch.column(0).to_pylist()]
            same = [Path(sys.executable).samefile(expected)] * len(values)
            yield pa.RecordBatch.from_arrays([pa.array(values), pa.array(same)], ["id", "same"])

    expected = sys.executable
    rows = spark.range(5).mapInArrow(double, "id long, same boolean").collect()
    assert all(row.same for row in rows), "the workers run another Python"
    return sorted(row.id for row in rows)


def write_events(folder: Path, name: str, rows: list[tuple[str, int]], age_s: int) -> None:
    """One input file; Spark reads files in order of their time."""
    lines = [json.dumps({"key": key, "time": f"2026-01-01T00:{s // 60:02}:{s % 60:02}Z"})
             for key, s in rows]  # fmt: skip
    path = folder / name
    path.write_text("\n".join(lines))
    moment = path.stat().st_mtime - age_s
    os.utime(path, (moment, moment))


def run_stream(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Aggregate with a watermark until the input is used up; return the state metrics."""
    events = (
        spark.readStream.schema("key string, time timestamp")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder / "events"))
    )
    grouped = (
        events.withWatermark("time", "10 seconds")
        .groupBy(f.window("time", "10 seconds"), "key")
        .agg(f.sort_array(f.collect_list(f.second("time"))).alias("seconds"))
        .select(f.unix_timestamp("window.start").alias("start"), "key", "seconds")
    )
    running = (
        grouped.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "sink"))
    )
    try:
        assert running.awaitTermination(120), "the stream did not finish in time"
        progress = running.lastProgress
    finally:
        running.stop()
    assert progress is not None
    return dict(progress.stateOperators[0].customMetrics)


def sink(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.schema("start long, key string, seconds array<int>").parquet(
        str(folder / "sink")
    )


def groups(frame: DataFrame) -> list[list[Any]]:
    """The groups in the sink: second of the window, key, seconds of the events."""
    rows = frame.orderBy("start", "key").collect()
    return [[row.start % 3600, row.key, row.seconds] for row in rows]


def main(folder: Path) -> dict[str, Any]:
    """Run everything and return what came out."""
    conf = {
        "spark.master": "local[2]",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    }
    spark = session("runtime", **conf)
    try:
        system = spark.sparkContext._jvm.java.lang.System
        results: dict[str, Any] = {
            "java": system.getProperty("java.home"),
            "query": query(spark),
            "mapInArrow": map_in_arrow(spark),
        }
        (folder / "events").mkdir()
        for number, rows in enumerate(FILES):
            write_events(folder / "events", f"{number}.json", rows, age_s=100 - number)
        metrics = run_stream(spark, folder)
        results["rocksdb"] = any(name.startswith("rocksdb") for name in metrics)
        results["stream"] = groups(sink(spark, folder))
        write_events(folder / "events", "last.json", FILE_AFTER_RESTART, age_s=0)
        run_stream(spark, folder)
        results["after restart"] = groups(sink(spark, folder))
        return results
    finally:
        spark.stop()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
