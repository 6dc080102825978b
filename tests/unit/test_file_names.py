"""Names of files that Spark cannot read as it should: refused, and forgotten at the next start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.errors import PipelineError
from tamis.spark.file_names import check_names, forget_refused
from tamis.spark.passed import files_of_batch
from tests.unit.test_passed_files import Checkpoint


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("*.jsonl", "*.jsonl"),
        ("a%3Fc.jsonl", "a?c.jsonl"),
        ("%5Bx%5D.jsonl", "[x].jsonl"),
        ("%7Ba,b%7D.jsonl", "{a,b}.jsonl"),
        ("a%5Cb.jsonl", "a\\b.jsonl"),
        ("10:00.jsonl", "10:00.jsonl"),
    ],
)
def test_a_batch_with_such_a_name_is_refused(checkpoint: Checkpoint, name: str, shown: str) -> None:
    checkpoint.found(0, "plain (1), 100%25.jsonl")
    checkpoint.batch(0)
    checkpoint.found(1, "b.jsonl", name)
    checkpoint.batch(1)
    check_names(checkpoint.folder, 0)
    with pytest.raises(PipelineError, match="other names") as caught:
        check_names(checkpoint.folder, 1)
    assert f"/x/batch=1/{shown};" in str(caught.value)
    assert "b.jsonl" not in str(caught.value).replace(shown, "")


def test_what_was_refused_is_forgotten(checkpoint: Checkpoint) -> None:
    """But not what was read, when it was still allowed."""
    forget_refused(checkpoint.folder / "new")
    first = checkpoint.found(0, "read[1]", "a")
    checkpoint.batch(0)
    second = checkpoint.found(1, "b", "refused[1]")
    checkpoint.batch(1)
    (checkpoint.folder / "commits" / "1").unlink()
    checkpoint.found(2, "*")  # found, and then the query was ended
    (checkpoint.folder / "sources" / "1" / ".1.crc").touch()
    forget_refused(checkpoint.folder)
    check_names(checkpoint.folder, 1)
    assert list(files_of_batch(checkpoint.folder, 1)) == ["file:///x/batch=1/b"]
    logs = checkpoint.folder / "sources" / "1"
    assert (logs / "0").read_text() == f"v1\n{first}"
    assert (logs / "2").read_text() == "v1"
    assert not (logs / ".1.crc").exists()
    checkpoint.write("sources/1/1.compact", first, second)
    (logs / "1").unlink()
    forget_refused(checkpoint.folder)
    kept = [json.loads(line)["path"] for line in (logs / "1.compact").read_text().split("\n")[1:]]
    assert [path.rpartition("/")[2] for path in kept] == ["read[1]", "a", "b"]


@pytest.mark.parametrize("line", ['{"ads":{"0":0}}', "1795000000000", "", "no JSON \xff", "[1]"])
@pytest.mark.parametrize("version", ["v1", "\0v1"])
def test_logs_of_other_sources_are_left_alone(
    checkpoint: Checkpoint, version: str, line: str
) -> None:
    """Of Kafka and of the beat of a stream that keeps events; neither tells of files."""
    log = checkpoint.folder / "sources" / "0" / "0"
    log.parent.mkdir(parents=True)
    log.write_bytes(f"{version}\n{line}".encode("latin-1"))
    forget_refused(checkpoint.folder)
    assert log.read_bytes() == f"{version}\n{line}".encode("latin-1")


def test_logs_that_cannot_be_read_stop_nothing(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint.batch(0)  # whose log is missing
    check_names(checkpoint.folder, 0)
    assert "not checked" in caplog.text
