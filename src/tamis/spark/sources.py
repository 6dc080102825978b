"""Sources and sinks of a pipeline, as its settings name them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tamis.errors import PipelineError
from tamis.spark.change_store import ChangeStore
from tamis.spark.changes import ChangeDirectory, ChangeSource, ChangeTable
from tamis.spark.database import DatabaseOutbox
from tamis.spark.events import EventMapping
from tamis.spark.outbox import Outbox, ParquetOutbox
from tamis.spark.settings import EventSettings, SubscriptionSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

LINE = "value"  # the column of Spark's text source
CORRUPT, ERROR = "_corrupt_record", "_error"
# Spark passes over files that are older than this beside the newest it has seen; its own week
# would lose what is moved into the folder late, or comes back from a backup, without a word.
_OLDEST = {"maxFileAge": "36500d"}
# What tamis.spark.kafka makes of a message.
TOPIC_COLUMNS: dict[str, Any] = {
    "id": "id",
    "time": "time",
    "payload": "payload",
    "json": ["attributes"],
    "attributes": [],
    "error": "error",
}


def open_events(spark: SparkSession, settings: EventSettings) -> tuple[DataFrame, EventMapping]:
    """The stream of events, and how its columns are read."""
    columns = settings.columns
    mapping = EventMapping(
        columns.id, columns.time, columns.payload, columns.points, columns.json_objects,
        columns.attributes, until=columns.until,
    )  # fmt: skip
    if settings.source == "kafka":
        return _open_topic(spark, settings), replace(mapping, **TOPIC_COLUMNS)
    if settings.format == "jsonl":
        # Lines are read by the tasks, so that one that nobody can read is kept as it is.
        reader = _file_reader(spark, settings)
        whole = replace(mapping, json=[LINE, *columns.json_objects])
        return reader.text(str(settings.path)).where(f"trim({LINE}) != ''"), whole
    frame = _open_table(spark, settings)
    if settings.format == "csv":
        from pyspark.sql import functions as f

        does_not_fit = f"{CORRUPT} IS NOT NULL"
        error = f.when(f.expr(does_not_fit), "the line does not fit the columns")
        return frame.withColumn(ERROR, error).drop(CORRUPT), replace(mapping, error=ERROR)
    return frame, mapping


def _open_topic(spark: SparkSession, settings: EventSettings) -> DataFrame:
    from tamis.spark.kafka import read_kafka

    assert settings.servers is not None
    assert settings.topic is not None
    return read_kafka(
        spark, settings.servers, settings.topic, max_per_batch=settings.messages_per_batch,
        options=settings.options,
    )  # fmt: skip


def _file_reader(spark: SparkSession, settings: EventSettings) -> DataStreamReader:
    reader = spark.readStream.option("maxFilesPerTrigger", settings.files_per_batch)
    return reader.options(**_OLDEST)


def _open_table(spark: SparkSession, settings: EventSettings) -> DataFrame:
    """Files of rows: CSV with a header, or Parquet."""
    ddl = settings.columns_ddl or _learned_columns(spark, settings)
    reader = _file_reader(spark, settings)
    if settings.format == "csv":
        reader = reader.option("header", "true").option("columnNameOfCorruptRecord", CORRUPT)
        # Else values would be taken by their position, whatever the header says they are.
        reader = reader.option("enforceSchema", "false")
        ddl += f", {CORRUPT} string"
    return reader.schema(ddl).format(settings.format).load(str(settings.path))


def _learned_columns(spark: SparkSession, settings: EventSettings) -> str:
    """The columns of the files that are there."""
    reader = spark.read.format(settings.format)
    if settings.format == "csv":
        reader = reader.option("header", "true").option("inferSchema", "true")
    assert settings.path is not None
    files = [str(file) for file in sorted(settings.path.glob(f"*.{settings.format}"))]
    if not files:
        raise PipelineError(
            f"there is no {settings.format} file in {settings.path} to learn the columns from; "
            "give events.schema, as in schema = 'id string, price double'"
        )
    return ", ".join(
        f"`{column.name}` {column.dataType.simpleString()}" for column in reader.load(files).schema
    )


def open_changes(spark: SparkSession, settings: SubscriptionSettings) -> ChangeSource:
    """Where changes of subscriptions come from."""
    if settings.source == "store":
        assert settings.url is not None
        return ChangeStore(settings.url)
    if settings.source == "jdbc":
        assert settings.url is not None
        assert settings.table is not None
        return ChangeTable.jdbc(spark, settings.url, settings.table)
    assert settings.path is not None
    return ChangeDirectory(settings.path)


def open_outbox(place: str) -> Outbox:
    """The outbox of an address (``sqlite:///…``, ``postgresql://…``) or in a folder."""
    return DatabaseOutbox(place) if "://" in place else ParquetOutbox(place)
