"""Sources and sinks of a pipeline, as its settings name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tamis.errors import PipelineError
from tamis.spark.change_store import ChangeStore
from tamis.spark.changes import ChangeDirectory, ChangeSource, ChangeTable
from tamis.spark.database import DatabaseOutbox
from tamis.spark.events import EventMapping
from tamis.spark.failures import reason_of
from tamis.spark.outbox import Outbox, ParquetOutbox
from tamis.spark.paths import has_pattern, plain_path
from tamis.spark.settings import EventSettings, SubscriptionSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

LINE = "value"  # the column of Spark's text source
CORRUPT, ERROR = "_corrupt_record", "_error"  # or else these with more of "_" before them
NOT_UTF8 = "\ufffd"  # what Spark reads in the place of bytes that are no text
# As RFC 4180 has it: two quotes are one, and lines may break inside them.
_CSV = {"header": "true", "escape": '"', "multiLine": "true"}
# Spark passes over files that are older than this beside the newest it has seen; its own week
# would lose what is moved into the folder late, or comes back from a backup, without a word.
_OLDEST = {"maxFileAge": "36500d"}
# What tamis.spark.kafka makes of a message.
TOPIC_COLUMNS: dict[str, Any] = {
    "id": "id",
    "time": "time",
    "until": "until",
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
        objects = [LINE, *columns.json_objects]
        whole = replace(mapping, json=objects, attributes=None, fields=columns.attributes)
        return reader.text(_folder(settings)).where(f"trim({LINE}) != ''"), whole
    ddl = settings.columns_ddl or learned_columns(spark, settings)
    if settings.format == "csv":
        return _open_csv(spark, settings, ddl, mapping)
    reader = _file_reader(spark, settings).schema(ddl)
    return reader.format(settings.format).load(_folder(settings)), mapping


def _open_csv(
    spark: SparkSession, settings: EventSettings, ddl: str, mapping: EventMapping
) -> tuple[DataFrame, EventMapping]:
    """Files of CSV with a header."""
    from pyspark.sql.types import StructType

    names = cast(StructType, StructType.fromDDL(ddl)).names
    corrupt, error = free_name(CORRUPT, names), free_name(ERROR, names)
    # Else values would be taken by their position, whatever the header says they are.
    reader = _file_reader(spark, settings).options(**_CSV, enforceSchema="false")
    reader = reader.option("columnNameOfCorruptRecord", corrupt)
    frame = reader.schema(f"{ddl}, {corrupt} string").csv(_folder(settings))
    return _with_errors(frame, mapping, corrupt, error)


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name that is not taken; to Spark ID and id are one.

    >>> free_name("_error", ["id"]), free_name("_error", ["id", "_Error"])
    ('_error', '__error')
    """
    folded = {one.lower() for one in taken}
    while name in folded:
        name = f"_{name}"
    return name


def _with_errors(
    frame: DataFrame, mapping: EventMapping, corrupt: str, error_name: str
) -> tuple[DataFrame, EventMapping]:
    """Rows of CSV with what is wrong with their lines, which stand beside that as they are.

    Spark puts the same sign for all bytes that are not UTF-8: such texts are not what was written.
    """
    from pyspark.sql import functions as f

    quoted = {name: "`" + name.replace("`", "``") + "`" for name in frame.columns}
    texts = [f.col(quoted[name]) for name, kind in frame.dtypes if kind == "string"]
    error = f.when(f.col(corrupt).isNotNull(), "the line does not fit the columns").when(
        f.concat_ws("", *texts).contains(NOT_UTF8),
        f"the line holds bytes that are not UTF-8, or {NOT_UTF8}, which stands for them",
    )
    wanted = mapping.attributes
    if wanted is None:
        wanted = [name for name in frame.columns if name != corrupt]
    told = frame.withColumn(error_name, error)
    return told, replace(mapping, error=error_name, attributes=wanted)


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
    if has_pattern(settings.path or ""):
        # Else Spark reads each file as often as there are files in the micro-batch.
        reader = reader.option("recursiveFileLookup", "true")
    return reader.options(**_OLDEST)


def _folder(settings: EventSettings) -> str:
    """The folder of the files, as Spark takes it."""
    assert settings.path is not None
    return plain_path(settings.path)


def learned_columns(spark: SparkSession, settings: EventSettings) -> str:
    """The columns of the files that are there, as Spark spells them."""
    from pyspark.sql.types import StringType

    reader = spark.read.format(settings.format)
    if settings.format == "csv":
        reader = reader.options(**_CSV).option("inferSchema", "true")
        if has_pattern(str(settings.path)):  # to learn, Spark takes even an escaped one for one
            reader = reader.option("multiLine", "false")
    assert settings.path is not None
    files = [plain_path(file) for file in sorted(settings.path.glob(f"*.{settings.format}"))]
    if not files:
        raise PipelineError(
            f"there is no {settings.format} file in {settings.path} to learn the columns from; "
            "give events.schema, as in schema = 'id string, price double'"
        )
    columns = _schema_of(reader, files)
    for one in columns:
        if settings.format == "csv" and one.name == settings.columns.id:
            one.dataType = StringType()  # as a number 007 would be 7
    return columns.toDDL()


def _schema_of(reader: DataFrameReader, files: list[str]) -> StructType:
    """The columns of files; says of which file Spark cannot tell them."""
    from pyspark.errors import PySparkException

    try:
        return reader.load(files).schema
    except PySparkException:
        for file in files:  # Spark looks at the first, and seldom at more
            try:
                reader.load(file).schema  # noqa: B018
            except PySparkException as error:
                raise PipelineError(
                    f"the columns of events cannot be learned from {file}: {reason_of(error)}; "
                    "write it with types that Spark reads, such as timestamps in microseconds, or "
                    "take it out of the folder"
                ) from error
        raise


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
