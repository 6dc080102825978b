"""Damaged input, a full disk, files of a newer version: a clear error or a dead letter.

After the trouble is out of the way the pipeline goes on, and all is told, once.
"""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.errors import InvalidSubscription, PipelineError, SnapshotError, TamisError
from tamis.spark import MatchLog, layers
from tamis.spark.pins import Pin, Pins
from tamis.spark.pipeline import Pipeline
from tamis.spark.settings import read_settings
from tamis.spark.sources import learned_columns

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
            (folder / name).mkdir(parents=True)
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
    lines = {row["_corrupt_record"] for _, row in case.dead()}
    assert lines == {"b,dear", "c,2,3", "d"}  # as they stand
    assert all("does not fit the columns" in reason for reason, _ in case.dead())
    other = case.put("4.csv", "price,id\n1,e\n")
    with pytest.raises(PipelineError, match=r"4\.csv"):
        case.run()
    other.write_text("id,price\ne,1\n")
    case.run()
    assert case.told() == ["a", "e"]


def test_ids_of_csv_are_texts_as_they_stand(spark: SparkSession, tmp_path: Path) -> None:
    """Also where nobody says so: as numbers 007 and 7 would be one event."""
    case = Case(tmp_path, "csv")
    case.put("1.csv", "id,price\n007,1\n7,2\n")
    case.run("events.schema=")
    case.put("2.csv", "id,price\nA7,3\n")
    case.run("events.schema=")
    assert case.told() == ["007", "7", "A7"]
    assert case.dead() == []


def test_columns_of_csv_have_any_names(spark: SparkSession, tmp_path: Path) -> None:
    """Also those under which faulty lines, and what is wrong with them, stand otherwise."""
    case = Case(tmp_path, "csv")
    case.save({"sequence": 2, "id": "cheap", "filter": "_error = 'boom' AND _corrupt_record = 1"})
    case.put("1.csv", "id,price,_error,_corrupt_record\na,1,boom,1\nb,dear,boom,1\nc,1,,1\n")
    case.run("events.schema=id string, price double, _error string, _corrupt_record int")
    assert case.told() == ["a"]
    assert [row["__corrupt_record"] for _, row in case.dead()] == ["b,dear,boom,1"]


def test_quotes_and_bytes_in_csv(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "csv")
    case.put("1.csv", 'id,price\n"c""d",1\n"x\ny",2\n"z, z",3\n')
    case.put("2.csv", b"id,price\n\xff,1\n\xfe,1\ng,1\n")
    case.put("3.csv", 'id,price\nh,1\n"open,2\ni,3\n')
    case.run()
    assert case.told() == ['c"d', "g", "h", "x\ny", "z, z"]
    reasons = sorted(reason[:20] for reason, _ in case.dead())
    assert reasons == ["the line does not fi", *["the line holds bytes"] * 2]
    assert '"open,2\ni,3' in {row["_corrupt_record"] for _, row in case.dead()}


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


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_folders_whose_names_are_patterns(spark: SparkSession, tmp_path: Path, format: str) -> None:
    """All is read, and once: also where a micro-batch has several files, and several matches."""
    case = Case(tmp_path / "g[1] {x,y}*", format)
    initial = case.folder / "initial.parquet"
    pq.write_table(pa.table({"id": ["first"], "filter": ["price < 3"]}), initial)
    for number in (1, 2):
        held = {
            "jsonl": f'{{"id": "{number}", "price": {number}}}\n',
            "csv": f"id,price\n{number},{number}\n",
            "parquet": prices(**{str(number): float(number)}),
        }
        case.put(f"{number}.{format}", held[format])
    # The columns are learned from the files.
    case.run("subscriptions.initial=initial.parquet", "events.schema=")
    if format == "jsonl":
        case.run("events.schema=")
    assert case.told() == ["1", "1", "2", "2"]
    log = MatchLog(case.folder / "state" / "matcher" / "matches")
    assert log.read(spark).count() == 4
    assert log.read_dead(spark).count() == 0


def test_files_whose_names_are_patterns(spark: SparkSession, tmp_path: Path) -> None:
    """They are named, and read once when they have other names."""
    case = Case(tmp_path, "jsonl")
    names = ("*.jsonl", "2026-01-01T10:00:00.jsonl")  # the others: tests/unit/test_file_names.py
    for number, name in enumerate(names):
        bad = case.put(name, f'{{"id": "bad{number}", "price": 1}}\n')
        case.put(f"good{number}.jsonl", f'{{"id": "good{number}", "price": 1}}\n')
        for _ in range(2 - number):
            with pytest.raises(PipelineError, match=re.escape(str(bad))):
                case.run()
        bad.rename(bad.with_name(f"renamed{number}.jsonl"))
        case.run()
    bad = case.put("alone?.jsonl", '{"id": "alone", "price": 1}\n')
    with pytest.raises(PipelineError, match="give them other names"):
        case.run()
    bad.unlink()
    case.run()
    assert case.told() == [f"{kind}{n}" for kind in ("bad", "good") for n in range(2)]


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


def test_an_error_that_is_not_ours(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path, "jsonl")
    case.put("1.jsonl", '{"id": "a", "price": 1}\n')
    with monkeypatch.context() as patched:

        def put(self: Pins, pin: Pin) -> Pin:
            raise UnicodeEncodeError("utf-8", "\udc80", 0, 1, "surrogates not allowed")

        patched.setattr(Pins, "put", put)
        with pytest.raises(PipelineError, match=r"stopped: UnicodeEncodeError: 'utf-8' codec"):
            case.run()
    case.run()
    assert case.told() == ["a"]


def test_a_damaged_log_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "jsonl")
    case.put("1.jsonl", '{"id": "a", "price": 1}\n')
    case.run()
    offsets = case.folder / "state" / "notifier" / "offsets"
    newest = max((file for file in offsets.iterdir() if file.name.isdigit()), key=_number)
    content = newest.read_text()
    newest.write_text("")
    with pytest.raises(PipelineError, match=rf"offsets/{newest.name}, .* is damaged"):
        case.run()
    newest.write_text(content)
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    case.put("2.jsonl", '{"id": "b", "price": 2}\n')
    case.run()
    assert case.told() == ["a", "b"]


def _number(file: Path) -> int:
    return int(file.name)


def test_columns_that_are_learned_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "parquet")
    file = case.folder / "pipeline.toml"
    file.write_text(file.read_text().replace('schema = "id string, price double"\n', ""))
    wrong = case.put("0.parquet", prices(a=1.0).rename_columns(["ad", "price"]))
    with pytest.raises(TamisError, match="no column 'id'"):
        case.run()  # and nothing is kept of it
    wrong.unlink()
    first = case.put("1.parquet", prices(a=1.0))
    case.run()
    first.unlink()
    case.run()  # there is no file to learn from any more
    case.put("2.parquet", prices(b=2.0).append_column("new", pa.array(["x"])))
    case.save({"sequence": 2, "id": "newer", "filter": "new = 'y'"})
    case.run()
    assert case.told() == ["a", "b"]
    case.put("3.parquet", prices(c=20.0).append_column("new", pa.array(["y"])))
    case.run("events.schema=id string, price double, new string")
    assert case.told() == ["a", "b", "c"]


def test_learned_columns_have_any_names(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "parquet")
    car = pa.array([{"top speed": 180, "größe": {"a-b": [1.0]}}])
    case.put("1.parquet", prices(a=1.0).append_column("car", car).append_column("a`b", car))
    events = read_settings(case.folder / "pipeline.toml", ["events.schema="]).events
    read = spark.read.schema(learned_columns(spark, events)).parquet(str(events.path))
    assert read.dtypes == spark.read.parquet(str(events.path)).dtypes
    case.save({"sequence": 2, "id": "cheap", "filter": '"car.top speed" > 150'})
    case.run("events.schema=")
    assert case.told() == ["a"]


def test_a_file_whose_columns_cannot_be_learned_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = Case(tmp_path, "parquet")
    at = pa.array([0], pa.timestamp("ns", "UTC"))
    case.put("1.parquet", prices(a=1.0).append_column("at", at))
    with pytest.raises(PipelineError, match=r"learned from .*1\.parquet: .*NANOS.*; write it with"):
        case.run("events.schema=")


def test_columns_that_only_spark_refuses(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "parquet")
    with pytest.raises(PipelineError, match=r"events\.schema: Spark cannot read 'id string !!'"):
        case.run("events.schema=id string !!")
    with pytest.raises(PipelineError, match=r"^\[DECIMAL.* 38") as refused:
        case.run("events.schema=id string, price decimal(50,2)")
    assert "\n" not in str(refused.value)


def test_a_start_that_fails_leaves_nothing_running(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "jsonl")
    case.run()
    settings = read_settings(tmp_path / "pipeline.toml", ["state=other"])
    with pytest.raises(TamisError, match="outbox"):  # which is of the first, so no notifier starts
        Pipeline(settings).start()
    assert spark.streams.active == []
    next_one = Pipeline(settings)
    assert next_one.claim()
    next_one.stop()


def test_subscriptions_to_begin_with_whose_ids_are_numbers(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = Case(tmp_path, "jsonl")
    pq.write_table(pa.table({"id": [7], "filter": ["price < 3"]}), tmp_path / "first.parquet")
    with pytest.raises(TamisError, match="id"):
        case.run("subscriptions.initial=first.parquet")
    table = pa.table({"id": ["7"], "filter": ["price < 3"]})
    pq.write_table(table, tmp_path / "first.parquet")
    case.put("1.jsonl", '{"id": "a", "price": 1}\n')
    case.run("subscriptions.initial=first.parquet")
    assert case.told() == ["a", "a"]  # of "cheap" and of "7"


def test_the_state_of_another_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(tmp_path, "jsonl")
    case.put("1.jsonl", '{"id": "a", "price": 1}\n')
    case.run()
    (tmp_path / "cars").mkdir()
    with pytest.raises(PipelineError, match=r"state: .* is of a pipeline with events from files"):
        case.run("events.path=cars")
    record = tmp_path / "state" / "pipeline.json"
    record.unlink()  # as in a state of an older version
    case.put("2.jsonl", '{"id": "b", "price": 1}\n')
    case.run("name=cars")
    assert record.exists()
    assert case.told() == ["a", "b"]
