"""Where subscriptions come from: a DataFrame, an index, a store of snapshots."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.delivery import check_delivery
from tamis.errors import InvalidSubscription, SnapshotError, TamisError
from tamis.index import Index
from tamis.model import Subscription
from tamis.spark.jobs import described, is_local
from tamis.spark.layers import n_bytes_of, settings_table, write_layer
from tamis.spark.snapshots import SnapshotStore, problem_of, write_subscriptions
from tamis.spark.table_rows import BadValue, dicts_of
from tamis.spark.versions import TokenPlace, Version
from tamis.values import load_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIELDS = ("id", "filter", "priority", "owner", "delivery", "location", "radius_m", "area")

_TOKEN = "_tamis_token"
_BUILT = "token int, path string, n_rejected long, rejected array<string>"
_N_SHOWN = 5


def prepare(spark: SparkSession, subscriptions: Any, snapshots: str | Path | None) -> Version:
    """A version of the subscriptions that tasks can open."""
    if isinstance(subscriptions, SnapshotStore):
        return _latest(subscriptions)
    if isinstance(subscriptions, str | Path):
        return _of_path(Path(subscriptions))
    if isinstance(subscriptions, Index):
        path = Path(tempfile.mkdtemp(dir=_folder(spark, snapshots))) / "index"
        subscriptions.save(path)
        return _of_path(path)
    if hasattr(subscriptions, "mapInArrow"):
        path = Path(tempfile.mkdtemp(dir=_folder(spark, snapshots)))
        return build(SnapshotStore(path, _n_tokens(spark)), subscriptions)
    raise InvalidSubscription(
        f"{type(subscriptions).__name__} holds no subscriptions; give a DataFrame (id, filter, …), "
        "an Index, the path of a saved index, or a SnapshotStore"
    )


def build(store: SnapshotStore, subscriptions: DataFrame) -> Version:
    """Index a DataFrame of subscriptions, a token a task, as the first version of a store."""
    from pyspark.sql import functions as f

    names = [name for name in FIELDS if name in subscriptions.columns]
    absent = [name for name in ("id", "filter") if name not in names]
    if absent:
        raise InvalidSubscription(
            f"the subscriptions have no column {absent[0]!r}; they have "
            f"{', '.join(subscriptions.columns)}"
        )
    hashed = f.crc32(f.col("id").cast("string").cast("binary"))
    token = f.coalesce(hashed % store.n_tokens, f.lit(0)).cast("int")
    rows = subscriptions.select(*names).withColumn(_TOKEN, token)
    spread = rows.repartitionById(store.n_tokens, _TOKEN)
    spark = subscriptions.sparkSession
    with described(spark, f"tamis: index subscriptions, {store.n_tokens} tokens"):
        built = spread.mapInArrow(partial(_build_token, store), _BUILT).collect()
    n_rejected = sum(row.n_rejected for row in built)
    if n_rejected:
        shown = [reason for row in built for reason in row.rejected][:_N_SHOWN]
        listed = "".join(f"\n  - {reason}" for reason in shown)
        raise InvalidSubscription(f"{n_rejected} subscriptions cannot be indexed:{listed}")
    places = {row.token: TokenPlace(row.path) for row in built}
    return store.publish(
        (places.get(token, TokenPlace(None)) for token in range(store.n_tokens)), sequence=0
    )


def load(
    spark: SparkSession, path: Path, subscriptions: Any, n_tokens: int | None = None
) -> SnapshotStore:
    """A store whose first version holds these subscriptions; as it is where it has versions."""
    is_frame = hasattr(subscriptions, "mapInArrow")
    if subscriptions is not None and not is_frame:
        n_tokens = 1  # an index cannot be taken apart
    store = SnapshotStore(path, n_tokens)
    if store.latest() is not None:
        return store
    if subscriptions is None:
        store.apply({}, sequence=0)
    elif is_frame:
        build(store, subscriptions)
    else:
        given = subscriptions
        index = given if isinstance(given, Index) else Index.open(given)
        layer = store.new_layer(0, "base")
        write_layer(layer, index, settings_table(index.deliveries()))
        store.publish([TokenPlace(str(layer))], sequence=0)
    return store


def subscription_of(row: dict[str, Any]) -> Subscription:
    """The subscription of a row: null is absent, delivery may be JSON text, struct or map."""
    held = {name: value for name, value in row.items() if value is not None}
    for name, value in held.items():
        if isinstance(value, BadValue):
            raise InvalidSubscription(f"{name}: {value}")
    delivery = held.get("delivery")
    if isinstance(delivery, str):
        try:
            held["delivery"] = load_json(delivery) if delivery else {}
        except (ValueError, RecursionError) as error:
            raise InvalidSubscription(f"the delivery settings are not JSON: {error}") from None
    elif isinstance(delivery, list):
        raise InvalidSubscription(
            "the delivery settings are a list; give JSON text, a struct or a map"
        )
    elif isinstance(delivery, dict):
        held["delivery"] = {key: value for key, value in delivery.items() if value is not None}
    subscription = Subscription.from_json(held)
    check_delivery(subscription)
    return subscription


def _build_token(
    store: SnapshotStore, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the layer of a token; says which, where, and what could not be indexed."""
    saved: dict[str, Subscription] = {}
    rejected: list[str] = []
    token = -1
    for batch in batches:
        for row in dicts_of(batch):
            token = row.pop(_TOKEN)
            try:
                one = subscription_of(row)
                if one.id in saved:
                    raise InvalidSubscription("the id is there twice")
                saved[one.id] = one
            except (TamisError, TypeError, ValueError) as error:
                rejected.append(f"{_told_id(row['id'])!r}: {error}")
    if token < 0:
        return
    path = store.new_layer(token, "base")
    if not rejected:
        try:
            write_subscriptions(path, list(saved.values()))
        except SnapshotError:
            raise
        except (TamisError, ValueError):
            problems = {id: problem_of(one) for id, one in saved.items()}
            rejected = [f"{id!r}: {problem}" for id, problem in problems.items() if problem]
            if not rejected:
                raise
    yield pa.RecordBatch.from_arrays(
        [
            pa.array([token], pa.int32()),
            pa.array([str(path)]),
            pa.array([len(rejected)], pa.int64()),
            pa.array([rejected[:_N_SHOWN]], pa.list_(pa.string())),
        ],
        ["token", "path", "n_rejected", "rejected"],
    )


def _told_id(id: Any) -> Any:
    return id.shown if isinstance(id, BadValue) else id


def _latest(store: SnapshotStore) -> Version:
    version = store.latest()
    if version is None:
        raise InvalidSubscription(f"the snapshots at {store.path} hold no version yet")
    return version


def _of_path(path: Path) -> Version:
    path = path.absolute()
    if (path / "store.json").exists():
        return _latest(SnapshotStore(path))
    Index.open(path)  # says what is wrong with it, if anything is
    return Version(1, (TokenPlace(str(path)),), n_bytes_of(path))


def _n_tokens(spark: SparkSession) -> int:
    return max(1, spark.sparkContext.defaultParallelism)


def _folder(spark: SparkSession, snapshots: str | Path | None) -> Path:
    """Where index files go: as asked, or on one machine into a folder that goes with it."""
    if snapshots is not None:
        folder = Path(snapshots).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    if not is_local(spark):
        raise InvalidSubscription(
            "on a cluster index files must go where every machine sees them; give snapshots=PATH"
        )
    folder = Path(tempfile.mkdtemp(prefix="tamis-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
