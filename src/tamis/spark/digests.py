"""From matches to notifications, with Spark's own operators.

    matches ─► once per (event, subscription) ─► groups by (due, subscription) ─► parts of a digest

Both steps that remember something are native: ``dropDuplicatesWithinWatermark`` and an aggregation
with a watermark, whose state Spark keeps in RocksDB and checkpoints.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tamis.delivery.settings import LARGEST_DIGEST
from tamis.spark.clock import DUE, follow_clock

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["MATCH_COLUMNS", "digests", "group", "notifications"]

MATCH_COLUMNS = {
    "event_id": "string",
    "subscription_id": "string",
    "priority": "tinyint",
    "index_version": "bigint",
    "owner": "string",
    "event_time": "timestamp",
    "matched_at": "timestamp",
    "due": "timestamp",
    "schedule": "string",
    "payload": "binary",
}
"""The columns of the match log with their Spark types."""

_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}


def digests(matches: DataFrame, retention: timedelta) -> DataFrame:
    """Group matches into digests: one row for each due time and subscription, once it is due.

    Columns: due, subscription_id, newest (what the newest index version says of the subscription)
    and matches.
    """
    from pyspark.sql import functions as f

    wanted = matches.select(*(f.col(name).cast(kind) for name, kind in MATCH_COLUMNS.items()))
    once = follow_clock(wanted, retention).dropDuplicatesWithinWatermark(
        ["event_id", "subscription_id"]
    )
    return group(once)


def group(matches: DataFrame) -> DataFrame:
    """One row for each due time and subscription."""
    from pyspark.sql import functions as f

    match = f.struct("priority", "event_time", "event_id", "matched_at", "payload")
    newest = f.struct("index_version", "priority", "owner", "schedule")
    return matches.groupBy(DUE, "subscription_id").agg(
        f.max(newest).alias("newest"), f.collect_list(match).alias("matches")
    )


def notifications(groups: DataFrame, as_json: bool = False) -> DataFrame:
    """Cut digests into notifications of at most ``max_digest`` matches, the first ones first.

    The columns are those of an outbox and ``is_capped``, which says whether there is a rate cap.
    With ``as_json`` the matches are a JSON text, with payloads in base64.
    """
    from pyspark.sql import functions as f

    delivery = f.coalesce("newest.schedule", f.lit(""))
    most = f.coalesce(_setting(delivery, "max_digest").cast("int"), f.lit(LARGEST_DIGEST))
    total = f.size("matches")
    parts = f.ceil(total / most).cast("int")
    whole = groups.select(
        "subscription_id", DUE, "newest", delivery.alias("delivery"), most.alias("most"),
        total.alias("total"), parts.alias("parts"),
        f.sort_array("matches").alias("all"),
    )  # fmt: skip
    cut = whole.withColumn("part", f.explode(f.sequence(f.lit(1), "parts")))
    first = (f.col("part") - 1) * f.col("most") + 1
    slice_of_all = f.slice("all", first, f.col("most"))
    return cut.select(
        _notification_id().alias("id"), "subscription_id",
        f.coalesce("newest.owner", f.lit("")).alias("owner"), "newest.priority", DUE,
        "part", "parts", "total", f.least("most", f.col("total") - first + 1).alias("n_matches"),
        f.lit(0).cast("bigint").alias("held_back"), "delivery",
        (f.to_json(slice_of_all, _JSON) if as_json else slice_of_all).alias("matches"),
        _setting(f.col("delivery"), "rate_cap").isNotNull().alias("is_capped"),
    )  # fmt: skip


def _setting(delivery: Column, name: str) -> Column:
    """One of the delivery settings as text; null where it is not given."""
    from pyspark.sql import functions as f

    return f.when(delivery != "", f.get_json_object(delivery, f"$.{name}"))


def _notification_id() -> Column:
    """As :func:`tamis.delivery.notification.notification_id`."""
    from pyspark.sql import functions as f

    due_us = f.unix_micros(DUE).cast("string")
    text = f.concat_ws("/", due_us, f.col("part").cast("string"), "subscription_id")
    return f.substring(f.sha2(text, 256), 1, 32)
