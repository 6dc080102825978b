"""Logs of Spark's sources: shortened by what is gone, and by nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tamis.spark import source_logs
from tamis.spark.source_logs import SourceLogs


class Checkpoint:
    """What Spark writes for a query with one source, which has found files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder / "checkpoint", folder / "some files"
        self.files.mkdir()
        for name in ("offsets", "commits", "sources/0"):
            (self.folder / name).mkdir(parents=True)

    def read_until(self, offset: int) -> None:
        for batch, reached in ((6, offset), (7, offset + 1)):
            text = f'v1\n{{}}\n{{"logOffset":{reached}}}'
            (self.folder / "offsets" / str(batch)).write_text(text)
            (self.folder / "commits" / str(batch)).write_text("v1\n{}")

    def log(self, number: int, *names: str) -> Path:
        """A log that repeats all; the n-th name was found in batch n."""
        lines = [
            json.dumps({"path": f"file://{quote(str(self.files / name))}", "batchId": batch})
            for batch, name in enumerate(names)
        ]
        log = self.folder / "sources" / "0" / f"{number}.compact"
        log.write_text("\n".join(["v1", *lines]))
        log.with_name(f".{log.name}.crc").write_bytes(b"of what was there")
        return log

    def logs(self) -> SourceLogs:
        return SourceLogs({self.folder: self.files})

    def names_in(self, log: Path) -> list[str]:
        version, *lines = log.read_text().splitlines()
        assert version == "v1"
        return [json.loads(line)["path"].rpartition("/")[2] for line in lines]


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    monkeypatch.setattr(source_logs, "_SHORT", 0)
    return Checkpoint(tmp_path)


def test_what_is_gone_is_left_out(checkpoint: Checkpoint) -> None:
    for name in ("b", "d é.json"):
        (checkpoint.files / name).touch()
    checkpoint.read_until(3)
    older = checkpoint.log(9, "a", "b")
    log = checkpoint.log(19, "a", "b", "c", "d é.json", "e", "f")
    checkpoint.logs().tidy()
    # The query may still look for what came after batch 3.
    assert checkpoint.names_in(log) == ["b", quote("d é.json"), "e", "f"]
    assert checkpoint.names_in(older) == ["a", "b"]
    assert sorted(path.name for path in log.parent.iterdir()) == [
        ".9.compact.crc", "19.compact", "9.compact",
    ]  # fmt: skip


@pytest.mark.parametrize("is_there", [True, False])
def test_where_the_folder_is_empty_or_gone_nothing_is_left_out(
    checkpoint: Checkpoint, is_there: bool
) -> None:
    """As before a disk is mounted: what was read would be read again."""
    checkpoint.read_until(3)
    log = checkpoint.log(9, "a", "b")
    if not is_there:
        checkpoint.files.rmdir()
    checkpoint.logs().tidy()
    assert checkpoint.names_in(log) == ["a", "b"]


def test_nothing_is_written_where_nothing_is_gone(checkpoint: Checkpoint) -> None:
    (checkpoint.files / "a").touch()
    checkpoint.read_until(1)
    log = checkpoint.log(9, "a")
    before = log.stat()
    checkpoint.logs().tidy()
    assert log.stat() == before
    assert log.with_name(".9.compact.crc").exists()


def test_short_logs_are_left_alone_and_long_ones_until_they_double(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_logs, "_EVERY_S", 0.0)
    checkpoint.read_until(9)
    kept = [f"kept {number}" for number in range(4)]
    for name in kept:
        (checkpoint.files / name).touch()
    logs = checkpoint.logs()
    monkeypatch.setattr(source_logs, "_SHORT", 1 << 20)
    log = checkpoint.log(9, *kept, "gone")
    logs.tidy()
    assert len(checkpoint.names_in(log)) == 5
    monkeypatch.setattr(source_logs, "_SHORT", 10)
    logs.tidy()
    assert len(checkpoint.names_in(log)) == 4
    log = checkpoint.log(19, *kept, "gone", "too")
    logs.tidy()
    assert len(checkpoint.names_in(log)) == 6
    log = checkpoint.log(29, *kept, *(f"gone {number}" for number in range(6)))
    logs.tidy()
    assert len(checkpoint.names_in(log)) == 4


def test_what_cannot_be_read_is_left(
    checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    SourceLogs({checkpoint.folder / "never started": checkpoint.files}).tidy()
    checkpoint.logs().tidy()
    checkpoint.read_until(3)
    checkpoint.logs().tidy()
    log = checkpoint.log(9, "a")
    log.write_text("v2\nwho knows")
    checkpoint.logs().tidy()
    assert log.read_text() == "v2\nwho knows"
    assert "not shortened" in caplog.text
