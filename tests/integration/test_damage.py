"""Damaged input, a full disk, files of a newer version: a clear error or a dead letter.

After the trouble is out of the way the pipeline goes on, and all is told, once.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.errors import InvalidSubscription, PipelineError, SnapshotError, TamisError
from tamis.spark import layers
from tamis.spark.pipeline import Pipeline
from tamis.spark.settings import read_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SETTINGS = """
state = "state"
[events]
path = "events"
format = "{format}"
schema = "id string, price double"
[subscriptions]
path = "searches"
[matching]
tokens = 2
[notifications]
outbox = "outbox"
"""


class Case:
    """The folders of a pipeline that runs once, again and again, in the session of the tests."""

    def __init__(self, folder: Path, format: str) -> None:
        self.folder = folder
        for name in ("events", "searches"):
            (folder / name).mkdir()
        (folder / "pipeline.toml").write_text(SETTINGS.format(format=format))
        self.save({"sequence": 1, "id": "cheap", "filter": "price < 10"})

    def save(self, *changes: dict[str, Any]) -> None:
        with (self.folder / "searches" / "1.jsonl").open("a") as file:
            file.writelines(json.dumps(change) + "\n" for change in changes)

    def put(self, name: str, content: str | bytes | pa.Table) -> Path:
        file = self.folder / "events" / name
        if isinstance(content, pa.Table):
            pq.write_table(content, file)
        else:
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def run(self, *changes: str) -> None:
        # Not stopped at the end, which would stop the session of all tests.
        Pipeline(read_settings(self.folder / "pipeline.toml", changes)).run_once()

    def told(self) -> list[str]:
        """The events that were told, each as often as it was."""
        found = []
        for file in (self.folder / "outbox").glob("batch=*/*.parquet"):
            for matches in pq.ParquetFile(file).read(["matches"])["matches"].to_pylist():
                found += [held["event_id"] for held in matches]
        return sorted(found)

    def dead(self) -> list[tuple[str, dict[str, Any]]]:
        files = (self.folder / "state" / "matcher" / "matches").glob("batch=*/dead-*.parquet")
        rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
        return [(row["reason"], json.loads(row["row"])) for row in rows]


def prices(**price_of: Any) -> pa.Table:
    return pa.table({"id": list(price_of), "price": list(price_of.values())})


def test_lines_of_json(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "jsonl")
    case.put("1.jsonl", '{"id": "a", "price": 1}\n{"id": "b", "pri')  # cut off
    case.put("2.jsonl", b"")
    case.put("3.jsonl", b"\x00\xff\xfe\x80 garbage\n\n" + b'{"id": "c", "price": 2}\n')
    case.put("4.jsonl", '{"id": "d", "price": "two", "new": [1]}\n{"id": "e", "price": [3, 99]}\n')
    case.run()
    assert case.told() == ["a", "c", "e"]  # a price that is a text is not below 10
    lines = sorted(row["value"] for _, row in case.dead())
    assert len(lines) == 2
    assert lines[1] == '{"id": "b", "pri'  # as it stands
    assert lines[0] == "\x00\\xff\\xfe\\x80 garbage"  # what is no UTF-8 can still be told
    reasons = sorted(reason for reason, _ in case.dead())
    assert "codec can't decode" in reasons[0]
    assert "is not JSON" in reasons[1]


def test_lines_of_csv(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "csv")
    case.put("1.csv", "id,price\na,1\nb,dear\nc,2,3\nd\n")
    case.put("2.csv", "")
    case.put("3.csv", "id,price\n")
    case.run()
    assert case.told() == ["a"]
    assert len(case.dead()) == 3
    assert {row["id"] for _, row in case.dead()} == {"b", "c", "d"}
    assert all("does not fit the columns" in reason for reason, _ in case.dead())
    other = case.put("4.csv", "price,id\n1,e\n")
    with pytest.raises(PipelineError, match=r"4\.csv"):
        case.run()
    other.write_text("id,price\ne,1\n")
    case.run()
    assert case.told() == ["a", "e"]


def test_tables_that_are_none(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "parquet")
    whole = case.put("1.parquet", prices(a=1.0, b=20.0))
    content = whole.read_bytes()
    case.put("empty.parquet", b"")  # is passed over, as Spark does
    for number, bad in enumerate([content[: len(content) // 2], b"garbage" * 50]):
        file = case.put(f"bad{number}.parquet", bad)
        case.put(f"good{number}.parquet", prices(**{f"g{number}": 1.0}))
        with pytest.raises(PipelineError, match=rf"bad{number}\.parquet"):
            case.run()
        file.unlink()
        case.run()
    assert case.told() == ["a", "g0", "g1"]


def test_tables_with_other_columns(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "parquet")
    case.put("1.parquet", prices(a=1.0).append_column("new", pa.array(["x"])))
    case.put("2.parquet", pa.table({"id": ["b"]}))
    case.put("3.parquet", pa.table({"price": [1.0]}))
    case.run()
    assert case.told() == ["a"]
    assert [reason for reason, _ in case.dead()] == ["the event has no id"]
    file = case.put("4.parquet", prices(c="cheap"))
    case.put("5.parquet", prices(d=2.0))
    with pytest.raises(PipelineError, match=r"4\.parquet"):
        case.run()
    pq.write_table(prices(c=3.0), file)
    case.run()
    assert case.told() == ["a", "c", "d"]


def test_a_table_of_subscriptions_that_is_half_written(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "jsonl")
    case.put("1.jsonl", '{"id": "a", "price": 15}\n')
    table = pa.table({"id": ["first"], "filter": ["price < 20"]})
    initial = tmp_path / "initial.parquet"
    pq.write_table(table, initial)
    content = initial.read_bytes()
    initial.write_bytes(content[: len(content) // 2])
    with pytest.raises(TamisError, match=r"initial\.parquet"):
        case.run("subscriptions.initial=initial.parquet")
    pq.write_table(table.rename_columns(["id", "query"]), initial)
    with pytest.raises(InvalidSubscription, match="no column 'filter'"):
        case.run("subscriptions.initial=initial.parquet")
    pq.write_table(table.set_column(1, "filter", pa.array(["price <"])), initial)
    with pytest.raises(InvalidSubscription, match="'first'"):
        case.run("subscriptions.initial=initial.parquet")
    initial.write_bytes(content)
    half = case.folder / "searches" / "2.parquet"
    half.write_bytes(content[: len(content) // 2])  # waits until it is whole
    case.run("subscriptions.initial=initial.parquet")
    assert case.told() == ["a"]


def test_a_full_disk(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(tmp_path, "jsonl")
    case.put("1.jsonl", '{"id": "a", "price": 1}\n')
    case.run()
    monkeypatch.setattr("tamis.spark.follower._WAITS_S", (0.0,))
    case.save({"sequence": 2, "id": "dear", "filter": "price > 10"})
    case.put("2.jsonl", '{"id": "b", "price": 50}\n')
    with monkeypatch.context() as patched:

        def sync(path: Path) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr(layers, "sync", sync)
        with pytest.raises(PipelineError, match="No space left on device"):
            case.run()
    assert case.told() == ["a"]
    case.run()
    assert case.told() == ["a", "b"]


def test_snapshots_of_a_newer_version(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "jsonl")
    case.put("1.jsonl", '{"id": "a", "price": 1}\n')
    case.run()
    store = case.folder / "state" / "matcher" / "snapshots" / "store.json"
    held = store.read_text()
    store.write_text(json.dumps({**json.loads(held), "format": 99}))
    case.put("2.jsonl", '{"id": "b", "price": 2}\n')
    with pytest.raises(SnapshotError, match=r"format 99.*upgrade Tamis"):
        case.run()
    store.write_text(held)
    case.run()
    assert case.told() == ["a", "b"]
