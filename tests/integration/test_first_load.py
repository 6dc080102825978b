"""The first load of many changes by a job: the same as one after the other."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis import Subscription
from tamis.spark import first_load
from tamis.spark.change_store import ChangeStore
from tamis.spark.changes import ChangeDirectory
from tamis.spark.first_load import is_large, load_changes
from tamis.spark.follower import Follower
from tamis.spark.snapshots import SnapshotStore
from tamis.spark.versions import Version, open_version
from tamis.storage import Database, Saved, SubscriptionStore
from tamis.storage.direct import statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TOO_COMPLEX = " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(14))
BROKEN = [
    "{ nonsense",
    "[]",
    '{"sequence": 7, "id": "s1", "filter": "x <"}',
    '{"sequence": 8, "op": "drop", "id": "s2"}',
    '{"sequence": 9, "op": "delete", "id": "\\ud800"}',
    json.dumps({"sequence": 10, "id": "kept", "filter": TOO_COMPLEX}),
    '{"sequence": 9223372036854775808, "id": "s4", "filter": "x < 1"}',
]


def random_changes(rng: random.Random, first: int, count: int) -> list[dict[str, Any]]:
    changes = []
    for sequence in range(first, first + count):
        record: dict[str, Any] = {"sequence": sequence, "id": f"s{rng.randrange(60)}"}
        if rng.random() < 0.3:
            changes.append({**record, "op": "delete", "filter": None})
            continue
        record |= {"op": "upsert", "filter": f"x < {rng.randrange(10)} OR y = 'é{sequence}'"}
        changes.append({**record, "priority": rng.randrange(10), "owner": f"o{sequence % 7}"})
    return changes


def write_changes(folder: Path) -> None:
    """Files as they come: lines and tables, some broken, the last of them not whole."""
    rng = random.Random(11)
    folder.mkdir()
    records = random_changes(rng, 100, 300)
    records.append({"sequence": 5, "id": "kept", "filter": "x < 7"})
    lines = [json.dumps(record) for record in records]
    for line in BROKEN:
        lines.insert(rng.randrange(len(lines)), line)
    (folder / "1.jsonl").write_text("\n".join(lines) + "\n\n")
    table = pa.Table.from_pylist([{"priority": None, "owner": None, **one}
                                  for one in random_changes(rng, 400, 150)])  # fmt: skip
    pq.write_table(table, folder / "2.parquet", row_group_size=40)
    pq.write_table(pa.table({"sequence": [500], "name": ["s1"]}), folder / "3.parquet")
    last = [json.dumps(record) for record in random_changes(rng, 600, 40)]
    (folder / "4.jsonl").write_text("\n".join(last))  # the end of the last line is missing
    (folder / "5.jsonl").write_text(json.dumps({"sequence": 700, "id": "s1", "filter": "x < 9"}))


def matched(version: Version) -> list[list[tuple[Any, ...]]]:
    """What each of some events matches."""
    opened = open_version(version)
    found = []
    for event in [*({"x": x} for x in range(10)), {"y": "é399"}, {"y": 'é7\\ "'}, {}]:
        rows = []
        for some in opened.match([event]):
            for row in some.rows:
                columns = (opened.ids, opened.owners, opened.schedules)
                priority = int(opened.priorities[row])
                rows.append((*(column[int(row)].as_py() for column in columns), priority))
        found.append(sorted(rows))
    return found


def rejected(store: SnapshotStore) -> dict[str, Any]:
    files = (store.path / "rejected").iterdir()
    return {file.name: json.loads(file.read_text()) for file in files}


def test_the_same_as_one_after_the_other(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_load, "_PART_BYTES", 1_000)
    write_changes(tmp_path / "changes")
    source = ChangeDirectory(tmp_path / "changes")
    assert not is_large(source)
    plain, store = (SnapshotStore(tmp_path / name, 4) for name in ("plain", "store"))
    plain.apply({}, 0)
    expected = Follower(plain, ChangeDirectory(tmp_path / "changes")).refresh()
    loaded = load_changes(spark, store, source)
    assert (loaded.number, loaded.sequence) == (1, expected.sequence)
    assert loaded.sequence == 638
    assert matched(loaded) == matched(expected)
    assert ("kept", "", "", 5) in matched(loaded)[6]  # its second change cannot be indexed
    assert rejected(store) == rejected(plain)
    assert len(rejected(store)) == len(BROKEN) + 1

    follower = Follower(store, source)
    assert follower.refresh() == loaded  # what is there is known
    with (tmp_path / "changes" / "4.jsonl").open("a") as file:
        file.write("\n")
    assert follower.refresh().sequence == 639
    assert rejected(store) == rejected(plain)


def test_no_changes_and_none_that_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "changes").mkdir()
    source = ChangeDirectory(tmp_path / "changes")
    nothing = load_changes(spark, SnapshotStore(tmp_path / "nothing", 2), source)
    assert (nothing.sequence, len(matched(nothing)[0])) == (0, 0)
    (tmp_path / "changes" / "1.jsonl").write_text("{\n")
    store = SnapshotStore(tmp_path / "store", 2)
    assert load_changes(spark, store, source).sequence == 0
    assert len(rejected(store)) == 1


def test_the_subscriptions_of_a_database(
    spark: SparkSession, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_load, "LARGE_COUNT", 40)
    changes = ChangeStore(database_url)
    database = Database(database_url)
    subscriptions = SubscriptionStore(database)
    for number in range(60):
        filter = f"x < {number % 10} OR y = 'é{number}\\ \"'"
        delivery = {"webhook": f"https://h.example/{number}"}
        if number % 3 == 0:
            delivery["schedule"] = "every hour"
        one = Subscription(f"ä {number}", filter, number % 10, f"o{number % 7}", delivery)
        if number % 5 == 0:
            one = replace(one, location=(4.9, 52.4), radius_m=500.0)
        subscriptions.create(Saved(one, filter))
    subscriptions.adjust("ä 1", is_paused=True)
    for id, column, text in (("ä 3", "filter", '{"op": 1}'), ("ä 4", "delivery", "{")):
        query = statement(f"UPDATE subscriptions SET {column} = :text WHERE id = :id RETURNING id")
        values = {"id": id, "text": text}
        database.change(lambda direct, q=query, v=values: direct.all(q, v))
    subscriptions.delete("ä 2")
    assert is_large(changes)

    plain, store = (SnapshotStore(tmp_path / name, 4) for name in ("plain", "store"))
    plain.apply({}, 0)
    expected = Follower(plain, ChangeStore(database_url)).refresh()
    (store.path / ".first-load-left").mkdir()
    loaded = load_changes(spark, store, changes)
    assert (loaded.number, loaded.sequence) == (1, 62) == (1, expected.sequence)
    assert matched(loaded) == matched(expected)
    assert len(matched(loaded)[0]) > 20
    assert len(rejected(store)) == len(rejected(plain)) == 2
    written = [file.read_bytes() for file in store.path.rglob("*") if file.is_file()]
    assert not any(b"h.example" in held for held in written)
    assert not [*store.path.glob(".first-load-*")]

    subscriptions.create(Saved(Subscription("new", "x = 1"), "x = 1"))
    assert Follower(store, changes).refresh().sequence == 63
    database.close()
