"""The settings of a pipeline: what is read, and what is said of mistakes before Spark starts."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from tamis.cli.run import _line
from tamis.errors import InvalidSettings, MissingExtra, PipelineError
from tamis.spark.columns_ddl import names_of
from tamis.spark.pipeline import Pipeline, Status
from tamis.spark.settings import PipelineSettings, read_settings

WHOLE = """
name = "ads"
state = "state"
[events]
path = "in"
format = "csv"
schema = "id string, price double, posted timestamp, lon double, lat double"
[events.columns]
time = "posted"
points = { place = ["lon", "lat"] }
[subscriptions]
path = "searches"
[matching]
mode = "sharded"
interval = "250 ms"
[notifications]
outbox = "outbox"
[spark]
"spark.master" = "local[2]"
"spark.ui.enabled" = true
"""


def read(tmp_path: Path, text: str, *changes: str) -> PipelineSettings:
    file = tmp_path / "pipeline.toml"
    file.write_text(text)
    return read_settings(file, changes)


def test_a_whole_file(tmp_path: Path) -> None:
    settings = read(tmp_path, WHOLE)
    assert settings.events.path == tmp_path / "in"
    assert settings.events.columns.points == {"place": ("lon", "lat")}
    assert settings.matching.interval == timedelta(milliseconds=250)
    assert settings.notifications.outbox == str(tmp_path / "outbox")
    assert settings.spark == {"spark.master": "local[2]", "spark.ui.enabled": True}


def test_changes_win_over_the_file(tmp_path: Path) -> None:
    settings = read(
        tmp_path, WHOLE, "matching.mode=replicated", "matching.tokens=4", "metrics_port=9100",
        "spark.sql.shuffle.partitions=2", "notifications.outbox=sqlite:///x.db",
    )  # fmt: skip
    assert (settings.matching.mode, settings.matching.tokens) == ("replicated", 4)
    assert settings.metrics_port == 9100
    assert settings.spark["spark.sql.shuffle.partitions"] == 2
    assert settings.notifications.outbox == f"sqlite:///{tmp_path}/x.db"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('mode = "sharded"', 'mode = "both"', "matching.mode: input should be 'auto'"),
        ('mode = "sharded"', "token = 4", "matching.token: there is no such setting; did you mean"),
        ('"250 ms"', '"soon"', "matching.interval: expected a length of time"),
        ('"250 ms"', '"0 s"', "matching.interval: expected a length of time"),
        ('path = "in"', "", "events: source 'files' needs 'path'"),
        ('path = "in"', 'source = "kafka"', "events: source 'kafka' needs 'servers'"),
        (
            'path = "in"',
            'source = "kafka"\nservers = "a"\ntopic = "t"\nkeep = "7 d"',
            "events: 'keep' is for files",
        ),
        (
            'path = "in"\nformat = "csv"',
            'source = "kafka"\nservers = "a"\ntopic = "t"',
            "events: 'columns' are those of files",
        ),
        ('"id string,', '"id string, ID int,', "events.schema: the column 'ID' is there twice"),
        ('outbox = "outbox"', "", "notifications.outbox: is missing"),
        (
            "[notifications]",
            '[matches]\ntopic = "m"\n[notifications]',
            "matches.servers: is missing",
        ),
        (
            "[notifications]",
            "[matches]\ntopics = 1\n[notifications]",
            "matches.topics: there is no",
        ),
        ('state = "state"', "", "state: is missing"),
        ("[events]", "[events", "is not TOML"),
        ('"id string,', '3 #"', "events.schema: input should be a"),
        ('"id string,', '"nonsense !!,', "events.schema: 'nonsense !!' is no column; expected a"),
        ('"id string,', '"id strin,', "'strin' of the column 'id' is no type of Spark; did you"),
        ('"id string,', '"id string, id int,', "events.schema: the column 'id' is there twice"),
        (
            "[events.columns]",
            '[events.columns]\nid = "ad"',
            "does not have columns.id 'ad'; it has",
        ),
        ('"lat"]', '"latitude"]', "does not have columns.points.place 'latitude'"),
        ("[events.columns]", '[events.columns]\njson = ["body"]', "columns.json 'body'"),
        ('format = "csv"', "files_per_batch = 2147483648", "events.files_per_batch: input should"),
        ('mode = "sharded"', "tokens = true", "matching.tokens: input should be a valid integer"),
        (
            "[notifications]",
            '[notifications]\nretention = "500 ms"',
            "expected a length of time of 1",
        ),
        (
            "[notifications]",
            '[notifications]\nretention = "999999999 d"',
            "notifications.retention: expected a length of time of 36500 d at most ('999999999 d'",
        ),
        ('"outbox"', '"foo://x"', "notifications.outbox: expected a folder, sqlite:///path or"),
        ('"outbox"', '"sqlite:///:memory:"', "notifications.outbox: expected a folder, sqlite"),
        ('path = "in"', 'path = ""', "events.path: expected a path, not an empty text"),
        ('state = "state"', 'state = ""', "state: expected a path, not an empty text"),
        ('"outbox"', '""', "notifications.outbox: expected a folder"),
        (
            'path = "searches"',
            'source = "jdbc"\nurl = "postgresql://a/b"\ntable = "t"',
            "subscriptions: source 'jdbc' needs a 'url' that begins with jdbc:",
        ),
        (
            'path = "searches"',
            'source = "store"\nurl = "tamis.db"',
            "subscriptions: source 'store' needs a 'url' that is sqlite:///path",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert before in WHOLE
    with pytest.raises(InvalidSettings) as raised:
        read(tmp_path, WHOLE.replace(before, after, 1))
    assert said in str(raised.value)


def test_many_mistakes_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings) as raised:
        read(
            tmp_path, WHOLE, "matching.tokens=true", "notifications.outbox=foo://zoe:secret@db/x",
            "events.columns.id=ad", 'notifications.retention="500 ms"',
        )  # fmt: skip
    said = str(raised.value)
    assert all(name in said for name in ("tokens", "outbox", "columns.id", "retention"))
    assert "secret" not in said


@pytest.mark.parametrize(
    ("section", "key"),
    [("spark", "spark.ui.enabled"), ("events.options", "kafka.security.protocol")],
)
def test_names_that_must_stand_in_quotes(tmp_path: Path, section: str, key: str) -> None:
    text = WHOLE.partition("[spark]")[0] + f'[{section}]\n{key} = "geheim"\n'
    with pytest.raises(InvalidSettings) as raised:
        read(tmp_path, text)
    said = str(raised.value)
    assert f"  {section}: without quotes a dot begins a section" in said
    assert f'put the name in quotes: "{key}" = …' in said
    assert len(said.splitlines()) == 2
    assert "geheim" not in said


@pytest.mark.parametrize(
    "change",
    [
        'notifications.outbox=["postgresql://zoe:geheim@db/x"]',
        'spark.ssl.keyPassword=["geheim"]',
        'spark.hadoop.fs.s3a.access.key=["geheim"]',
        'events.options={"kafka.sasl.jaas.config"=["geheim"]}',
    ],
)
def test_secrets_are_not_told_whatever_they_stand_in(tmp_path: Path, change: str) -> None:
    with pytest.raises(InvalidSettings, match="input should be") as raised:
        read(tmp_path, WHOLE, change)
    assert "geheim" not in str(raised.value)
    with pytest.raises(InvalidSettings, match=r"\(\[4\] was given\)"):
        read(tmp_path, WHOLE, "matching.tokens=[4]")


def test_columns_may_be_fields_of_json(tmp_path: Path) -> None:
    whole = WHOLE.replace('"id string,', '"body string,')
    assert read(tmp_path, whole, 'events.columns.json=["body"]').events.columns_ddl
    lines = WHOLE.replace('"id string,', '"ad string,').replace('"csv"', '"jsonl"')
    assert read(tmp_path, lines).events.columns.id == "id"  # lines have no columns


@pytest.mark.parametrize(
    ("ddl", "names"),
    [
        ("id string", ["id"]),
        ("id STRING NOT NULL COMMENT 'a, b', n int", ["id", "n"]),
        ("`a, ``b``` decimal(10, 2), c: bigint", ["a, `b`", "c"]),
        ("car struct<mark: string, tags: map<string, int>>, d double", ["car", "d"]),
        ("größe double", ["größe"]),
    ],
)
def test_names_of_columns(ddl: str, names: list[str]) -> None:
    assert names_of(ddl) == names


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeff" + WHOLE).name == "ads"


def test_a_database_in_a_file_is_taken_from_the_folder_of_the_settings(tmp_path: Path) -> None:
    store = WHOLE.replace('path = "searches"', 'source = "store"\nurl = "sqlite:///a/x.db"')
    assert read(tmp_path, store).subscriptions.url == f"sqlite:///{tmp_path}/a/x.db"
    absolute = read(tmp_path, WHOLE, "notifications.outbox=sqlite:////srv/x.db")
    assert absolute.notifications.outbox == "sqlite:////srv/x.db"
    server = read(tmp_path, WHOLE, "notifications.outbox=postgresql://zoe@db/x")
    assert server.notifications.outbox == "postgresql://zoe@db/x"


@pytest.mark.parametrize("change", ["mode", "=x", "name.first=x"])
def test_changes_that_are_none(tmp_path: Path, change: str) -> None:
    with pytest.raises(InvalidSettings, match="--set"):
        read(tmp_path, WHOLE, change)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"pipeline\.toml: No such file"):
        read_settings(tmp_path / "pipeline.toml")


def test_folders_are_looked_at_before_spark_starts(tmp_path: Path) -> None:
    pipeline = Pipeline(read(tmp_path, WHOLE))
    with pytest.raises(PipelineError, match=r"events\.path: there is no folder"):
        pipeline.check()
    (tmp_path / "in").mkdir()
    with pytest.raises(PipelineError, match=r"subscriptions\.path: there is no folder"):
        pipeline.check()
    (tmp_path / "searches").mkdir()
    pipeline.check()
    assert (tmp_path / "state").is_dir()


@pytest.mark.parametrize(
    ("outbox", "said"),
    [
        ("taken", r"taken is a file; expected a folder"),
        ("taken/outbox", r"taken/outbox cannot be made"),
        ("sqlite:///none/x.db", r"there is no folder .*/none for the database"),
        ("sqlite:///in", r"/in is a folder; expected a file"),
    ],
)
def test_the_outbox_is_looked_at_before_spark_starts(
    tmp_path: Path, outbox: str, said: str
) -> None:
    for name in ("in", "searches"):
        (tmp_path / name).mkdir()
    (tmp_path / "taken").touch()
    with pytest.raises(PipelineError, match=rf"notifications\.outbox: .*{said}"):
        Pipeline(read(tmp_path, WHOLE, f"notifications.outbox={outbox}")).check()


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        ("state", "in"),
        ("state", "link/state"),
        ("notifications.outbox", "in"),
        ("notifications.outbox", "sqlite:///in/x.db"),
        ("subscriptions.path", "in"),
    ],
)
def test_nothing_else_stands_in_the_folder_of_events(
    tmp_path: Path, setting: str, place: str
) -> None:
    for name in ("in", "searches"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("in")
    with pytest.raises(PipelineError, match=rf"^{setting}: .* is in the folder of events, .*/in,"):
        Pipeline(read(tmp_path, WHOLE, f"{setting}={place}")).check()
    Pipeline(read(tmp_path, WHOLE, f"events.path={tmp_path}/in", "state=in2")).check()


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    pipeline = Pipeline(read(tmp_path, WHOLE, "notifications.outbox=taken", "state=taken/state"))
    with pytest.raises(PipelineError) as raised:
        pipeline.check()
    names = [line.partition(":")[0] for line in str(raised.value).splitlines()]
    assert names == ["events.path", "subscriptions.path", "state", "notifications.outbox"]


def test_columns_that_nobody_says(tmp_path: Path) -> None:
    for name in ("in", "searches", "state"):
        (tmp_path / name).mkdir()
    pipeline = Pipeline(read(tmp_path, re.sub("schema = .*", "", WHOLE)))
    with pytest.raises(PipelineError, match=r"events\.schema: there is no csv file"):
        pipeline.check()
    (tmp_path / "state" / "columns.json").write_text('{"schema": "`id` string"}')
    pipeline.check()


def test_the_status_line() -> None:
    now = Status(3, 1_500, 20, 1, 7, match_seconds=0.4, notify_seconds=1.0, waiting_files=2)
    line = _line(now, Status(events=500), 2.0).plain
    assert "1,500 events (500/s)" in line
    assert "index 3" in line
    assert "lag 1.4 s, 2 files wait" in line
    assert "1 dead letters" in line
    assert "wait" not in _line(Status(), Status(), 1.0).plain


def test_subscriptions_to_begin_with_are_looked_at_before_spark_starts(tmp_path: Path) -> None:
    for name in ("in", "searches"):
        (tmp_path / name).mkdir()
    pipeline = Pipeline(read(tmp_path, WHOLE, "subscriptions.initial=first"))
    with pytest.raises(PipelineError, match=r"subscriptions\.initial: there is no"):
        pipeline.check()
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "1.parquet").write_bytes(b"PAR1 half")
    with pytest.raises(PipelineError, match=r"1\.parquet cannot be read"):
        pipeline.check()
    (tmp_path / "first" / "1.parquet").unlink()
    with pytest.raises(PipelineError, match=r"there is no Parquet file \(\*\.parquet\) in"):
        pipeline.check()


def test_the_connector_is_asked_for_where_kafka_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.spark.kafka.jar_folder", lambda name: tmp_path / name)
    topic = 'matches={servers="localhost:1", topic="m"}'
    pipeline = Pipeline(read(tmp_path, WHOLE, topic))
    with pytest.raises(MissingExtra, match="make kafka"):
        pipeline.connect()
