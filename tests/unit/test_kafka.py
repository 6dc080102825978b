"""Kafka without a broker: fetching the jars, finding them, and messages read as events."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from scripts import kafka_jars
from tamis import Event, Point, Range
from tamis.errors import MissingExtra
from tamis.spark import kafka
from tamis.values import as_attributes

ARRIVAL = datetime(2026, 1, 1, tzinfo=UTC)
MVN = """\
#!/bin/sh
echo run >> {runs}
for argument do
    case $argument in -DoutputDirectory=*) folder=${{argument#*=}} ;; esac
done
{then}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the jars go, in place of the virtual environment."""
    for module in (kafka, kafka_jars):
        monkeypatch.setattr(module, "jar_folder", lambda name: tmp_path / "jars" / name)
    return tmp_path / "jars"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A file with a line for every time Maven ran."""
    path = tmp_path / "runs"
    path.touch()
    return path


def put_mvn_on_path(runs: Path, then: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = runs.parent / "bin"
    programs.mkdir()
    (programs / "mvn").write_text(MVN.format(runs=runs, then=then))
    (programs / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")


def test_jars_are_fetched_once(folder: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_mvn_on_path(runs, 'mkdir "$folder" && touch "$folder/a.jar"', monkeypatch)
    assert kafka_jars.fetch("connector", []) is True
    assert kafka_jars.fetch("connector", []) is False
    assert len(runs.read_text().splitlines()) == 1
    assert kafka_jars.fetch("connector", ["-Dconnector.version=1"]) is True
    assert len(runs.read_text().splitlines()) == 2
    assert kafka.connector_settings() == {"spark.jars": str(folder / "connector" / "a.jar")}
    assert [path.name for path in folder.iterdir()] == ["connector"]


def test_what_maven_cannot_resolve_is_said(
    folder: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = r"[INFO] busy\n\033[0m[ERROR] no such jar\n[ERROR] Re-run Maven\n"
    lines = f"printf '{output}'; exit 1"
    put_mvn_on_path(runs, lines, monkeypatch)
    with pytest.raises(kafka_jars.JarError) as caught:
        kafka_jars.fetch("broker", [])
    assert "cannot resolve broker.xml:\nno such jar\nIt needs Maven" in str(caught.value)
    assert list(folder.iterdir()) == []


def test_without_maven_it_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("sys.argv", ["kafka_jars.py"])
    assert kafka_jars.main() == 1
    assert "apt-get install maven" in capsys.readouterr().err


def test_without_jars_the_error_names_the_command(folder: Path) -> None:
    with pytest.raises(MissingExtra, match="make kafka"):
        kafka.connector_settings()


def test_poms_leave_the_registry_to_maven() -> None:
    for pom in kafka_jars.POMS.iterdir():
        assert "<repositor" not in pom.read_text()
        assert "<url>" not in pom.read_text()


def read(*values: bytes | None, arrival_us: int | None = None) -> list[dict[str, object]]:
    """What read_kafka makes of messages."""
    arrival = ARRIVAL if arrival_us is None else arrival_us
    count = len(values)
    batch = pa.RecordBatch.from_pydict(
        {
            "key": ["k"] * count,
            "value": pa.array(values, pa.binary()),
            "topic": ["ads"] * count,
            "partition": pa.array([1] * count, pa.int32()),
            "offset": list(range(count)),
            "timestamp": pa.array([arrival] * count, pa.timestamp("us", tz="UTC")),
        }
    )
    (made,) = kafka._read_events(iter([batch]))
    return made.to_pylist()


def test_all_of_an_event_is_read() -> None:
    attributes = {
        "tag": ["a", "é"], "n": 2**53 + 1, "far": float("inf"),
        "size": Range(1, 2, "[)"), "built": datetime(2020, 5, 1, tzinfo=UTC),
    }  # fmt: skip
    time = datetime(2025, 6, 1, 12, tzinfo=UTC)
    until = time + timedelta(days=1)
    event = Event("e1", attributes, b"\x00x", time=time, until=until, location=Point(13.4, 52.5))
    cloud = event.to_cloudevent(source="s", type="t")
    rows = read(*(json.dumps(form).encode() for form in (event.to_json(), cloud)))
    context = {"ce.source": ("s",), "ce.type": ("t",)}
    for row, more in zip(rows, ({}, context), strict=True):
        assert (row["id"], row["time"], row["payload"]) == ("e1", time, b"\x00x")
        assert (row["until"], row["error"]) == (until, None)
        held = as_attributes(json.loads(str(row["attributes"])))
        assert held == {**event.attributes, **more}


def test_an_event_without_id_and_time_has_those_of_its_message() -> None:
    (row,) = read(b'{"price": 3}')
    assert (row["id"], row["time"], row["payload"]) == ("ads/1/0", ARRIVAL, None)


def test_a_time_of_a_message_beyond_the_calendar_is_none() -> None:
    """A producer says it, maybe in microseconds: it must not stop a stream."""
    own, none = read(
        b'{"id": "e", "attributes": {}, "time": "2026-01-01T00:00:00Z"}', b'{"price": 3}',
        arrival_us=1_790_000_000_000_000_000,
    )  # fmt: skip
    assert (own["time"], own["error"]) == (datetime(2026, 1, 1, tzinfo=UTC), None)
    assert (none["id"], none["time"], none["error"]) == ("ads/1/1", None, None)


@pytest.mark.parametrize("value", [None, b"", b"{", b"\xff", b"7", b'{"specversion": "1.0"}'])
def test_what_is_no_event_is_kept_with_the_reason(value: bytes | None) -> None:
    good, bad = read(b'{"id": "e"}', value)
    assert good["id"] == "e"
    assert bad["id"] is bad["attributes"] is None
    assert bad["error"]
    assert (bad["key"], bad["value"], bad["topic"]) == ("k", value, "ads")
    assert (bad["partition"], bad["offset"]) == (1, 1)
