"""``match``: a DataFrame of events against subscriptions, in one of two modes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from tamis.errors import InvalidEvent, PipelineError
from tamis.spark import tasks
from tamis.spark.events import EventMapping
from tamis.spark.jobs import described, map_batches, memory_bytes
from tamis.spark.match_log import Written, run_tasks
from tamis.spark.subscriptions import prepare
from tamis.spark.versions import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["replicated", "sharded"]


def match(
    events: DataFrame,
    subscriptions: Any,
    *,
    mapping: EventMapping | None = None,
    columns: Sequence[str] = (),
    mode: Mode | None = None,
    n_shards: int | None = None,
    snapshots: str | Path | None = None,
) -> DataFrame:
    """Which subscriptions each event satisfies: event_id, subscription_id, priority, index_version.

    ``subscriptions`` is a DataFrame (id, filter, and as wanted priority, owner, delivery,
    location, radius_m, area), an Index, the path of a saved one, or a SnapshotStore.
    ``columns`` of the events are added to the result. Rows that cannot be read are left out;
    `dead_letters` gives them.

    ``mode``: *replicated*, every task maps the whole index and has a part of the events;
    *sharded*, every task has some tokens and sees all events. Without one, the size of the
    index and the executors' memory decide. ``snapshots`` is where index files go when they
    have to be made; on a cluster a directory all machines see.
    """
    mapping = mapping or EventMapping()
    schema = arrow_schema(events)
    mapping.check(schema)
    _check_added(columns, schema.names)
    version = prepare(events.sparkSession, subscriptions, snapshots)
    plan = plan_of(events, version, mapping, mode, n_shards)
    spread = spread_events(events, plan)
    added = [events.schema[name] for name in columns]
    function = partial(tasks.match_rows, plan, tuple(columns))
    return map_batches(spread, function, _result_schema(added))


def _check_added(columns: Sequence[str], names: Sequence[str]) -> None:
    """Raise InvalidEvent for columns that cannot be added to the result."""
    for place, name in enumerate(columns):
        if name not in names or name in tasks.MATCHES.names:
            raise InvalidEvent(
                f"the column {name!r} cannot be added: the events have {', '.join(names)}, and "
                f"the result has {', '.join(tasks.MATCHES.names)}"
            )
        if name in columns[:place]:
            raise InvalidEvent(f"the column {name!r} is to be added twice; name it once")


def match_to_parquet(
    events: DataFrame,
    subscriptions: Any,
    path: str | Path,
    *,
    mapping: EventMapping | None = None,
    mode: Mode | None = None,
    n_shards: int | None = None,
    snapshots: str | Path | None = None,
) -> Written:
    """Write what `match` finds to a new directory of Parquet files, and say how much it was.

    The tasks write the files themselves, several times as fast as through Spark where events
    match many subscriptions. The directory appears whole or not at all; on a cluster it must
    be one that every machine sees. Rows that cannot be read are in its folder ``_dead_letters``.
    """
    target = Path(path).absolute()
    if target.exists():
        raise PipelineError(f"{target} exists; give a new path")
    mapping = mapping or EventMapping()
    mapping.check(arrow_schema(events))
    version = prepare(events.sparkSession, subscriptions, snapshots)
    plan = plan_of(events, version, mapping, mode, n_shards)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        with described(events.sparkSession, f"tamis: match into {target}"):
            written = run_tasks(spread_events(events, plan), plan, aside / "whole", None)
        dead = aside / "whole" / "_dead_letters"
        dead.mkdir()
        for file in (aside / "whole").glob("dead-*.parquet"):
            file.rename(dead / file.name)
        (aside / "whole").rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return written


def dead_letters(
    events: DataFrame, subscriptions: Any = None, *, mapping: EventMapping | None = None
) -> DataFrame:
    """The rows of events that `match` cannot read: reason, row (as JSON).

    ``subscriptions`` is needed only where they have a schema that rules out some events.
    """
    mapping = mapping or EventMapping()
    mapping.check(arrow_schema(events))
    version = Version(0, ())
    if subscriptions is not None:
        version = prepare(events.sparkSession, subscriptions, None)
    function = partial(tasks.dead_rows, tasks.Plan(version, mapping))
    return map_batches(events, function, "reason string, row string")


def plan_of(
    events: DataFrame,
    version: Version,
    mapping: EventMapping,
    mode: Mode | None,
    n_shards: int | None,
) -> tasks.Plan:
    """Decide on the mode and the number of shards."""
    spark = events.sparkSession
    if mode is None:
        mode = chosen_mode(version.n_bytes, memory_bytes(spark), len(version.tokens))
    if mode == "replicated":
        return tasks.Plan(version, mapping)
    if mode != "sharded":
        raise ValueError(f"mode {mode!r} is not one of replicated, sharded")
    wanted = n_shards or spark.sparkContext.defaultParallelism
    return tasks.Plan(version, mapping, max(1, min(wanted, len(version.tokens))))


def chosen_mode(n_bytes: int, memory: int, n_tokens: int) -> Mode:
    """Sharded if the index takes more than half of an executor's memory and can be split.

    >>> chosen_mode(100, 1000, 8), chosen_mode(600, 1000, 8), chosen_mode(600, 1000, 1)
    ('replicated', 'sharded', 'replicated')
    """
    return "sharded" if n_tokens > 1 and n_bytes > memory // 2 else "replicated"


def spread_events(events: DataFrame, plan: tasks.Plan) -> DataFrame:
    """The events as the tasks of a plan want them: once, or once for every shard."""
    if plan.n_shards == 1:
        return events
    from pyspark.sql import functions as f

    if tasks.SHARD in events.columns:
        raise InvalidEvent(f"the column {tasks.SHARD!r} is used by Tamis itself; rename yours")

    shards = f.explode(f.array(*(f.lit(shard) for shard in range(plan.n_shards))))
    return events.withColumn(tasks.SHARD, shards).repartitionById(plan.n_shards, tasks.SHARD)


def arrow_schema(events: DataFrame) -> pa.Schema:
    """The schema the tasks will see; raises InvalidEvent for a column that they cannot."""
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    fields = []
    for one in events.schema:
        try:
            fields += to_arrow_schema(StructType([one]), timezone="UTC")
        except PySparkTypeError:
            raise InvalidEvent(
                f"the column {one.name!r} is of type {one.dataType.simpleString()}, which Spark "
                "cannot hand to Python; cast it to a text or a number, or drop it"
            ) from None
    return pa.schema(fields)


def _result_schema(added: list[Any]) -> Any:
    from pyspark.sql import types as t

    return t.StructType(
        [
            t.StructField("event_id", t.StringType()),
            t.StructField("subscription_id", t.StringType()),
            t.StructField("priority", t.ByteType()),
            t.StructField("index_version", t.LongType()),
            *added,
        ]
    )
