"""Tamis on Spark: needs the extra ``tamis[spark]``, and brings its own Java where there is none."""

from tamis.spark.database import DatabaseOutbox
from tamis.spark.java import java_home
from tamis.spark.notifier import notify_stream
from tamis.spark.outbox import ParquetOutbox
from tamis.spark.runtime import session

__all__ = ["DatabaseOutbox", "ParquetOutbox", "java_home", "notify_stream", "session"]
