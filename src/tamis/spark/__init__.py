"""Tamis on Spark: needs the extra ``tamis[spark]``, and brings its own Java where there is none."""

from tamis.spark.change_store import ChangeStore
from tamis.spark.changes import ChangeDirectory, ChangeSource, ChangeTable
from tamis.spark.database import DatabaseOutbox
from tamis.spark.events import EventMapping
from tamis.spark.java import java_home
from tamis.spark.match_log import MatchLog
from tamis.spark.matching import dead_letters, match, match_to_parquet
from tamis.spark.notifier import NotifyStream, notify_stream
from tamis.spark.outbox import ParquetOutbox
from tamis.spark.runtime import session
from tamis.spark.snapshots import SnapshotStore
from tamis.spark.streaming import MatchStream, match_stream

__all__ = [
    "ChangeDirectory",
    "ChangeSource",
    "ChangeStore",
    "ChangeTable",
    "DatabaseOutbox",
    "EventMapping",
    "MatchLog",
    "MatchStream",
    "NotifyStream",
    "ParquetOutbox",
    "SnapshotStore",
    "dead_letters",
    "java_home",
    "match",
    "match_stream",
    "match_to_parquet",
    "notify_stream",
    "session",
]
