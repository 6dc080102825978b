"""Checkpoints: how Spark writes down what a query must remember.

For each file that it writes in a folder of this machine, Spark starts eight processes of
``readlink`` to find out what is there: some fifty in a micro-batch of the notifier, a tenth to a
fifth of all it takes. The other way that Spark has looks there itself. Either way a file gets its
name when it is whole. Neither keeps two queries with one checkpoint apart for certain;
``state_folder`` does that for pipelines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["settings_of_query"]

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_WITHOUT_LINKS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


@contextmanager
def settings_of_query(
    spark: SparkSession, checkpoint: str | Path, settings: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Apply settings while a query is started, which keeps a copy of them."""
    applied = dict(settings or {})
    if spark.conf.get(_MANAGER, None) is None and _is_local(spark, checkpoint):
        applied[_MANAGER] = _WITHOUT_LINKS
    before = {key: spark.conf.get(key, None) for key in applied}
    for key, value in applied.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _is_local(spark: SparkSession, checkpoint: str | Path) -> bool:
    """Whether a checkpoint is a folder of this machine; others have their own ways to rename."""
    java: Any = spark.sparkContext._jvm
    paths, configuration = java.org.apache.hadoop.fs, spark.sparkContext._jsc.hadoopConfiguration()
    found = paths.Path(str(checkpoint)).getFileSystem(configuration)
    return bool(found.getScheme() == "file")
