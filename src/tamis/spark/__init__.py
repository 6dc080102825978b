"""Tamis on Spark: needs the extra ``tamis[spark]``, and brings its own Java where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
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

_HOMES = {
    "tamis.spark.change_store": ("ChangeStore",),
    "tamis.spark.changes": ("ChangeDirectory", "ChangeSource", "ChangeTable"),
    "tamis.spark.database": ("DatabaseOutbox",),
    "tamis.spark.events": ("EventMapping",),
    "tamis.spark.java": ("java_home",),
    "tamis.spark.match_log": ("MatchLog",),
    "tamis.spark.matching": ("dead_letters", "match", "match_to_parquet"),
    "tamis.spark.notifier": ("NotifyStream", "notify_stream"),
    "tamis.spark.outbox": ("ParquetOutbox",),
    "tamis.spark.runtime": ("session",),
    "tamis.spark.snapshots": ("SnapshotStore",),
    "tamis.spark.streaming": ("MatchStream", "match_stream"),
}

# A pipeline can start Java before it has read the engine.
__getattr__, __dir__ = _lazy_names(__name__, _HOMES)
