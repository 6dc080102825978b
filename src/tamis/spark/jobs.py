"""Jobs: how they are named in Spark's web interface, and what machines they run on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"


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
