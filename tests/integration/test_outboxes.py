"""From digests to notifications, and what outboxes hold of them; no stream is started here."""

from __future__ import annotations

import json
import sqlite3
from base64 import b64decode
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy.exc import IntegrityError

from tamis.delivery import LARGEST_DIGEST, notification_id, settings_text
from tamis.errors import PipelineError, StorageError
from tamis.spark.database import DatabaseOutbox
from tamis.spark.digests import MATCH_COLUMNS, group, notifications
from tamis.spark.outbox import ParquetOutbox
from tests.integration.match_log import SPARK_SCHEMA, match
from tests.integration.postgresql import PostgreSQL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

DUE = datetime(2026, 3, 1, 9, 0, 0, 123456, tzinfo=UTC)
ROW: dict[str, Any] = {
    "id": "a", "subscription_id": "s", "owner": "o", "priority": 1, "due": DUE, "part": 1,
    "parts": 1, "total": 0, "n_matches": 0, "held_back": 0, "delivery": "", "matches": "[]",
}  # fmt: skip
NAMES = ["s1", "ü/1", "1/s1", "", "s'1\n"]


def groups(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """What the stream would release of these rows."""
    given = [tuple(row[name] for name in MATCH_COLUMNS) for row in rows]
    return group(spark.createDataFrame(given, SPARK_SCHEMA))


def expected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The notifications of matches with one due time, in plain Python."""
    made = []
    for name in {row["subscription_id"] for row in rows}:
        own = [row for row in rows if row["subscription_id"] == name]
        newest = max(own, key=lambda row: row["index_version"])
        settings = json.loads(newest["schedule"] or "{}")
        most = settings.get("max_digest", LARGEST_DIGEST)
        own.sort(key=lambda row: (row["priority"], row["event_time"], row["event_id"]))
        n_parts = -(-len(own) // most)
        for part in range(1, n_parts + 1):
            due_us = (DUE - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
            of_part = own[(part - 1) * most : part * most]
            made.append(
                {
                    "id": notification_id(name, due_us, part), "subscription_id": name,
                    "owner": newest["owner"], "priority": newest["priority"], "due": DUE,
                    "part": part, "parts": n_parts, "total": len(own), "n_matches": len(of_part),
                    "held_back": 0, "delivery": newest["schedule"],
                    "matches": [{key: row[key] for key in
                                 ("priority", "event_time", "event_id", "matched_at", "payload")}
                                for row in of_part],
                }
            )  # fmt: skip
    return sorted(made, key=lambda one: (one["priority"], one["subscription_id"], one["part"]))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Digests of several sizes; a subscription changed its settings between two of its matches."""
    small = settings_text({"max_digest": 3, "mail": "ü@b.example"})
    made = []
    for number, name in enumerate(NAMES):
        for n in range(1 + 3 * number):
            made.append(
                match(
                    f"e{n}", name, DUE, priority=9 - n % 3 if number == 1 else number,
                    event_time=DUE - timedelta(seconds=n % 5), payload=bytes([n, 255]),
                    index_version=n, owner=f"o{n}", schedule=small if n % 2 else "",
                )
            )  # fmt: skip
    return [*made, *(match(f"e{n:05}", "many", DUE) for n in range(LARGEST_DIGEST + 1))]


Publish = Callable[[Any, int], None]


def publisher(spark: SparkSession, rows: list[dict[str, Any]], folder: Path) -> Publish:
    """Writes the notifications of the rows aside and hands them over."""
    as_json = folder.name == "database"

    def publish(outbox: Any, batch: int) -> None:
        aside = folder / "aside" / str(batch)
        made = notifications(groups(spark, rows), as_json).drop("is_capped")
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        made.write.parquet(str(aside))
        outbox.publish(batch, aside)

    return publish


def test_parquet(spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    outbox = ParquetOutbox(tmp_path / "outbox")
    assert outbox.read().num_rows == 0
    publish = publisher(spark, rows, tmp_path)
    publish(outbox, 3)
    assert outbox.read().to_pylist() == expected(rows)

    # A replay finds the micro-batch there, even with other rows, and changes nothing.
    publisher(spark, rows[:3], tmp_path / "replay")(outbox, 3)
    assert outbox.read().to_pylist() == expected(rows)
    publisher(spark, rows[:1], tmp_path / "next")(outbox, 10)
    assert outbox.read().to_pylist() == expected(rows) + expected(rows[:1])
    assert sorted(path.name for path in outbox.path.iterdir()) == ["batch=10", "batch=3"]


def test_a_parquet_outbox_belongs_to_one_checkpoint(tmp_path: Path) -> None:
    outbox = ParquetOutbox(tmp_path / "outbox")
    first, second = tmp_path / "first", tmp_path / "second"
    aside = outbox.prepare(first)
    assert aside == ParquetOutbox(tmp_path / "outbox").prepare(first)
    with pytest.raises(PipelineError, match=r"filled from another checkpoint than .*second"):
        outbox.prepare(second)
    another = ParquetOutbox(tmp_path / "another")
    assert another.prepare(first) == another.path / "_aside"  # a new outbox for an old checkpoint
    (outbox.path / "_checkpoint").unlink()
    assert outbox.prepare(first) == aside  # killed between its two files, or emptied
    (outbox.path / "_checkpoint").unlink()
    (outbox.path / "batch=0").mkdir()
    with pytest.raises(PipelineError, match="use that checkpoint, or a new outbox"):
        outbox.prepare(first)


def test_sqlite(spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    check_database(f"sqlite:///{tmp_path}/outbox.db", spark, rows, tmp_path / "database")


def test_postgresql(
    postgresql: PostgreSQL, spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    check_database(postgresql.new_database(), spark, rows, tmp_path / "database")


def check_database(url: str, spark: SparkSession, rows: list[dict[str, Any]], folder: Path) -> None:
    outbox = DatabaseOutbox(url)
    publisher(spark, rows[:2], folder)(outbox, 3)
    first = outbox.read()
    assert [comparable(one) for one in first] == expected(rows[:2])
    assert [one["due"] for one in first] == ["2026-03-01T09:00:00.123456Z"] * len(first)

    # Once more with all rows: what is there stays as it is, what is not comes in.
    publisher(spark, rows, folder)(DatabaseOutbox(url), 4)
    held = outbox.read()
    assert held[: len(first)] == first
    known = {one["id"] for one in first}
    new = [one for one in expected(rows) if one["id"] not in known]
    assert [comparable(one) for one in held[len(first) :]] == new


def comparable(one: dict[str, Any]) -> dict[str, Any]:
    """A row of the database as a notification."""
    made = {**one, "due": datetime.fromisoformat(one["due"]), "matches": []}
    del made["batch"]
    for held in json.loads(one["matches"]):
        payload = b64decode(held["payload"]) if "payload" in held else None
        times = {key: datetime.fromisoformat(held[key]) for key in ("event_time", "matched_at")}
        made["matches"].append({**held, **times, "payload": payload})
    return made


def test_checkpoints_that_share_a_database_each_tell_what_they_have_to(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path}/outbox.db", tmp_path / "aside"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([ROW]), folder / "1.parquet")
    for name in ("first", "second", "first", "second"):  # the later ones are replays
        outbox = DatabaseOutbox(url)
        outbox.prepare(tmp_path / name)
        outbox.publish(7, folder)
    assert len({one["id"] for one in DatabaseOutbox(url).read()}) == 2
    # It is the checkpoint that counts, not where it is.
    (tmp_path / "first").rename(tmp_path / "moved")
    outbox.prepare(tmp_path / "moved")
    outbox.publish(7, folder)
    assert len(outbox.read()) == 2


def test_a_checkpoint_of_before_goes_on_with_the_ids_it_had(tmp_path: Path) -> None:
    outbox, folder = DatabaseOutbox(f"sqlite:///{tmp_path}/outbox.db"), tmp_path / "aside"
    folder.mkdir()
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([ROW]), folder / "1.parquet")
    outbox.prepare(tmp_path / "checkpoint")
    outbox.publish(7, folder)
    assert [one["id"] for one in outbox.read()] == [ROW["id"]]


def test_a_micro_batch_is_inserted_whole_or_not_at_all(tmp_path: Path) -> None:
    outbox = DatabaseOutbox(f"sqlite:///{tmp_path}/outbox.db")
    pq.write_table(
        pa.Table.from_pylist([ROW, {**ROW, "id": "b", "part": 2}]), tmp_path / "1.parquet"
    )
    with closing(sqlite3.connect(tmp_path / "outbox.db")) as connection:
        connection.execute(
            "CREATE TRIGGER stop BEFORE INSERT ON notifications WHEN new.id = 'b' "
            "BEGIN SELECT RAISE(FAIL, 'stopped halfway'); END"
        )
        with pytest.raises(IntegrityError, match="stopped halfway"):
            outbox.publish(0, tmp_path)
        assert outbox.read() == []
        connection.execute("DROP TRIGGER stop")
    outbox.publish(0, tmp_path)
    assert [held["id"] for held in outbox.read()] == ["a", "b"]


def test_outboxes_that_do_not_exist() -> None:
    with pytest.raises(StorageError, match="expected sqlite:///path or postgresql://"):
        DatabaseOutbox("mysql://localhost")
