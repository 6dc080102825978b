"""Jobs: how they are started and named in Spark's web interface, run on what, and stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DESCRIPTION = "spark.job.description"
# What Spark looks for in the error of a micro-batch to know that it was stopped.
_CALLED = "py4j.protocol.Py4JJavaError: An error occurred while calling"
_INTERRUPTIONS = (
    "java.lang.InterruptedException",
    "java.io.InterruptedIOException",
    "java.nio.channels.ClosedByInterruptException",
)


class Interrupted(Exception):
    """A micro-batch that was stopped."""


def stoppable(handle: Callable[[DataFrame, int], Any]) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` whose error is short where its query is stopped meanwhile.

    Spark searches the error for the sign of an interruption with a regular expression that
    needs more stack than there is where the error is long, and then fills the log.
    """

    def handle_batch(frame: DataFrame, batch: int) -> None:
        try:
            handle(frame, batch)
        except Exception as error:
            told = str(error)
            for sign in _INTERRUPTIONS:
                if sign in told:
                    raise Interrupted(f"{_CALLED} a micro-batch: {sign}") from None
            raise

    return handle_batch


def map_batches(frame: DataFrame, function: Callable[..., Any], schema: Any) -> DataFrame:
    """``frame.mapInArrow`` for any names of columns.

    It takes dots for fields, and names that differ in upper and lower case for one.
    """
    names = frame.columns
    has_twins = len({name.lower() for name in names}) < len(names)
    if not has_twins and not any("." in name or "`" in name for name in names):
        return frame.mapInArrow(function, schema)
    numbered = frame.toDF(*(f"_{place}" for place in range(len(names))))
    return numbered.mapInArrow(partial(_renamed, function, names), schema)


def _renamed(
    function: Callable[..., Any], names: list[str], batches: Iterator[pa.RecordBatch]
) -> Any:
    return function(batch.rename_columns(names) for batch in batches)


@contextmanager
def described(spark: SparkSession, description: str) -> Iterator[None]:
    """Jobs started inside are shown with this description in Spark's web interface."""
    context = spark.sparkContext
    before: Any = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(description)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # None takes it away


def is_local(spark: SparkSession) -> bool:
    """Whether Spark runs in one process on this machine."""
    return (spark.sparkContext.master or "").startswith("local")


def memory_bytes(spark: SparkSession) -> int:
    """The memory of an executor; of the machine where Spark runs in one process."""
    if is_local(spark):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    jvm: Any = spark.sparkContext._jvm
    text = spark.sparkContext.getConf().get("spark.executor.memory", "1g")
    return int(jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(text))
