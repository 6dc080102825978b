"""Sources and sinks of a pipeline, as its settings name them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import PipelineError
from tamis.spark.changes import ChangeDirectory, ChangeSource, ChangeTable
from tamis.spark.database import DatabaseOutbox
from tamis.spark.events import EventMapping
from tamis.spark.outbox import Outbox, ParquetOutbox
from tamis.spark.settings import EventSettings, SubscriptionSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE = "value"  # the column of Spark's text source


def check_folder(path: Path, what: str) -> None:
    """Raise PipelineError unless a folder is there and can be read."""
    if not path.is_dir():
        raise PipelineError(f"{what}: {path} is not a folder; make it, or name another one")


def open_events(spark: SparkSession, settings: EventSettings) -> tuple[DataFrame, EventMapping]:
    """The stream of events, and how its columns are read.

    A file of JSON lines is read as text, and each line by the tasks, so that a line nobody can
    read is kept as it is.
    """
    columns = settings.columns
    named: dict[str, Any] = {
        "id": columns.id, "time": columns.time, "payload": columns.payload,
        "points": columns.points, "attributes": columns.attributes,
    }  # fmt: skip
    if settings.source == "kafka":
        raise PipelineError("events.source 'kafka' is not there yet")
    assert settings.path is not None
    reader = spark.readStream.option("maxFilesPerTrigger", settings.files_per_batch)
    if settings.format == "jsonl":
        mapping = EventMapping(**named, json=[LINE, *columns.json_objects])
        return reader.text(str(settings.path)), mapping
    schema = settings.columns_ddl or _learned_schema(spark, settings)
    reader = reader.schema(schema)
    if settings.format == "csv":
        reader = reader.option("header", "true")
    frame = reader.format(settings.format).load(str(settings.path))
    return frame, EventMapping(**named, json=columns.json_objects)


def _learned_schema(spark: SparkSession, settings: EventSettings) -> Any:
    """The schema of the files that are there."""
    reader = spark.read.format(settings.format)
    if settings.format == "csv":
        reader = reader.option("header", "true").option("inferSchema", "true")
    frame = reader.load(str(settings.path))
    if not frame.columns:
        raise PipelineError(
            f"there is no {settings.format} file in {settings.path} to learn the columns from; "
            "give events.schema, as in schema = 'id string, price double'"
        )
    return frame.schema


def open_changes(spark: SparkSession, settings: SubscriptionSettings) -> ChangeSource:
    """Where changes of subscriptions come from."""
    if settings.source == "jdbc":
        assert settings.url is not None
        assert settings.table is not None
        return ChangeTable.jdbc(spark, settings.url, settings.table)
    assert settings.path is not None
    return ChangeDirectory(settings.path)


def open_outbox(place: str) -> Outbox:
    """The outbox of an address (``sqlite:///…``, ``postgresql://…``) or in a folder."""
    return DatabaseOutbox(place) if "://" in place else ParquetOutbox(place)
