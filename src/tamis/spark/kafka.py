"""Kafka as a source of events and a sink of matches and notifications.

Spark reads and writes Kafka through a connector that is not part of pyspark: four jars, which
``make kafka`` fetches. docs/kafka.md shows the whole way.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import MissingExtra, TamisError
from tamis.model import Event
from tamis.spark.checkpoints import settings_of_query
from tamis.spark.events import TIMESTAMP
from tamis.spark.rows import values_of
from tamis.values import value_to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["connector_settings", "jar_folder", "read_kafka", "write_kafka"]

_EVENTS = (
    "id string, time timestamp, until timestamp, attributes string, payload binary, error string, "
    "key string, value binary, topic string, partition int, offset long"
)
_ARROW_EVENTS = pa.schema(
    [
        ("id", pa.string()),
        ("time", TIMESTAMP),
        ("until", TIMESTAMP),
        ("attributes", pa.string()),
        ("payload", pa.binary()),
        ("error", pa.string()),
    ]
)
_KEPT = ("key", "value", "topic", "partition", "offset")


def jar_folder(name: str) -> Path:
    """Where ``make kafka`` puts the jars of the ``connector`` or the ``broker``."""
    return Path(sys.prefix, "share", "tamis", "kafka", name)


def connector_settings() -> dict[str, str]:
    """The settings with which a session can read and write Kafka.

    For ``tamis.spark.session(**connector_settings())``; Spark loads jars only when it starts.
    """
    folder = jar_folder("connector")
    jars = sorted(folder.glob("*.jar")) if (folder / "complete").is_file() else []
    if not jars:
        raise MissingExtra(
            f"Spark's connector for Kafka is not in {folder}. In the repository of Tamis: make "
            "kafka (it needs Maven). Elsewhere let Spark fetch it: spark.jars.packages = "
            "org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION."
        )
    return {"spark.jars": ",".join(str(jar) for jar in jars)}


def read_kafka(
    spark: SparkSession,
    servers: str,
    topic: str,
    *,
    starting: str = "earliest",
    max_per_batch: int | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The events of a topic as a streaming DataFrame: one JSON object a message.

    The object is an event as ``Event.from_json`` reads it: with ``attributes``, a CloudEvent, or
    the attributes themselves. ``id`` is the event's own or ``topic/partition/offset``, which stays
    the same however often a message is read; ``time`` its own or that of the message, null if that
    is beyond the year 9999; ``until`` its own; ``attributes`` JSON text. A message that is no event
    has no ``id`` and an ``error`` that says why. ``value`` is the message as it came, beside its
    key, topic, partition and offset.

    ``starting`` counts for a query without a checkpoint. ``max_per_batch`` bounds a micro-batch.
    ``options`` are Spark's (``"minPartitions"``) and, after ``kafka.``, those of Kafka's client
    (``"kafka.security.protocol"``).
    """
    settings = {"subscribe": topic, "startingOffsets": starting, **_options(servers, options)}
    if max_per_batch is not None:
        settings["maxOffsetsPerTrigger"] = str(max_per_batch)
    messages = spark.readStream.format("kafka").options(**settings).load()
    columns = ["cast(key as string) as key", *_KEPT[1:], "timestamp"]
    return messages.selectExpr(*columns).mapInArrow(_read_events, _EVENTS)


def write_kafka(
    rows: DataFrame,
    servers: str,
    topic: str,
    *,
    checkpoint: str | Path,
    key: str = "subscription_id",
    options: Mapping[str, str] | None = None,
    interval: timedelta | None = timedelta(seconds=1),
    name: str = "tamis kafka",
) -> StreamingQuery:
    """Start a query that writes every row of a stream, a JSON object of its columns.

    Messages are keyed by one column, so that those of a subscription are in one partition. At
    least once: a micro-batch that Spark replays is written again, with the same content; who
    reads the topic tells by event and subscription, or by a notification's id, what is new.
    With ``interval=None`` the query writes what is there, and ends.
    """
    settings = {"topic": topic, **_options(servers, options)}
    writer = _messages(rows, key).writeStream.format("kafka").options(**settings)
    writer = writer.option("checkpointLocation", str(checkpoint)).queryName(name)
    if interval is None:
        writer = writer.trigger(availableNow=True)
    else:
        pause_ms = interval // timedelta(milliseconds=1)
        writer = writer.trigger(processingTime=f"{pause_ms} milliseconds")
    with settings_of_query(rows.sparkSession, checkpoint):
        return writer.start()


def _messages(rows: DataFrame, key: str) -> DataFrame:
    from pyspark.sql import functions as f

    values = f.to_json(f.struct(*[f.col(f"`{name}`") for name in rows.columns]))
    return rows.select(f.col(f"`{key}`").cast("string").alias("key"), values.alias("value"))


def _options(servers: str, options: Mapping[str, str] | None) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, **(options or {})}


def _read_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        names = ("value", "topic", "partition", "offset")
        columns = [batch.column(name).to_pylist() for name in names]
        times = values_of(batch.column("timestamp"))
        rows = [
            _event_row(value, f"{topic}/{partition}/{offset}", time)
            for value, topic, partition, offset, time in zip(*columns, times, strict=True)
        ]
        events = pa.RecordBatch.from_pylist(rows, _ARROW_EVENTS)
        kept = [batch.column(name) for name in _KEPT]
        yield pa.RecordBatch.from_arrays(
            [*events.columns, *kept], names=[*_ARROW_EVENTS.names, *_KEPT]
        )


def _event_row(value: bytes | None, place: str, arrival: Any) -> dict[str, Any]:
    """The columns of an event; of a message that is none, only the error.

    ``arrival``: the time of the message, which whoever sends it says, or why it is none.

    >>> row = _event_row(b'{"price": 3}', "ads/0/17", datetime(2026, 1, 1))
    >>> row["id"], row["attributes"]
    ('ads/0/17', '{"price": [3]}')
    >>> _event_row(None, "ads/0/18", datetime(2026, 1, 1))
    {'error': 'the message has no value'}
    """
    if value is None:
        return {"error": "the message has no value"}
    try:
        event = Event.from_json(value, default_id=place)
    except TamisError as error:
        return {"error": str(error)}
    attributes = {
        name: [value_to_json(one) for one in values] for name, values in event.attributes.items()
    }
    return {
        "id": event.id,
        "time": event.time or (arrival if isinstance(arrival, datetime) else None),
        "until": event.until,
        "attributes": json.dumps(attributes, ensure_ascii=False),
        "payload": event.payload or None,
    }
