"""Tamis on Spark: needs the extra ``tamis[spark]``, and brings its own Java where there is none."""

from tamis.spark.events import EventMapping
from tamis.spark.java import java_home
from tamis.spark.matching import dead_letters, match
from tamis.spark.runtime import session
from tamis.spark.snapshots import SnapshotStore

__all__ = [
    "EventMapping",
    "SnapshotStore",
    "dead_letters",
    "java_home",
    "match",
    "session",
]
