"""Files of events: old ones go once they were read, and one pipeline at a time has the state."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tamis.spark import event_files
from tamis.spark.event_files import EventFiles
from tamis.spark.state_folder import StateFolder
from tests.unit.test_passed_files import Checkpoint

DAY = 86_400


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "_EVERY_S", 0.0)


class Folder:
    """A folder of events, and the checkpoint of the query that reads it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "events"
        self.path.mkdir()
        self.checkpoint = Checkpoint(folder / "spark")

    def put(self, name: str, age_days: float) -> None:
        (self.path / name).write_text("{}")
        at = time.time() - age_days * DAY
        os.utime(self.path / name, (at, at))

    def read(self, *names: str) -> None:
        """A micro-batch that reads these files, and one after it."""
        offset = self.checkpoint.n_batches
        entries = [
            {
                "path": (self.path / name).as_uri(),
                "timestamp": (self.path / name).stat().st_mtime_ns // 1_000_000,
                "batchId": offset,
            }
            for name in names
        ]
        self.checkpoint.write(f"sources/1/{offset}", *map(json.dumps, entries))
        self.checkpoint.batch(offset)
        self.checkpoint.write(f"sources/1/{offset + 1}")
        self.checkpoint.batch(offset + 1)

    @property
    def names(self) -> set[str]:
        return {path.name for path in self.path.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_only_what_was_read_and_is_old_is_removed(folder: Folder) -> None:
    files = EventFiles(folder.path, folder.checkpoint.folder, timedelta(days=7))
    for name, age_days in (("read, old 100%", 8), ("read", 6), ("unread", 400)):
        folder.put(name, age_days)
    files.tidy()
    assert (len(folder.names), files.read_until) == (3, 0.0)
    folder.read("read, old 100%", "read")
    files.tidy()
    assert folder.names == {"read", "unread"}
    assert files.read_until == pytest.approx(time.time() - 6 * DAY, abs=60)
    folder.put("late", 9)
    folder.read("late", "unread")
    (folder.path / "late").unlink()  # somebody else took it away
    files.tidy()
    assert folder.names == {"read"}


def test_a_pipeline_that_is_started_again_removes_what_it_read_before(folder: Folder) -> None:
    for name, age_days in (("gone", 9), ("old", 8), ("unread", 8)):
        folder.put(name, age_days)
    folder.read("gone", "old")
    (folder.path / "gone").unlink()
    keeping = EventFiles(folder.path, folder.checkpoint.folder, None)
    keeping.tidy()
    assert folder.names == {"old", "unread"}
    assert keeping.read_until > 0
    EventFiles(folder.path, folder.checkpoint.folder, timedelta(days=7)).tidy()
    assert folder.names == {"unread"}


def test_a_new_file_under_an_old_name_is_told_about_and_stays(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark does not read it: a name that it has seen is no new file."""
    keep = timedelta(days=7)
    files = EventFiles(folder.path, folder.checkpoint.folder, keep)
    for name in ("a", "b", "c", "d"):
        folder.put(name, 8)
    folder.read("a", "b", "c")
    folder.put("b", 9)  # in its place, before it was removed
    files.tidy()
    assert folder.names == {"b", "d"}
    assert f"{folder.path / 'b'} has the name of a file that was read" in caplog.text
    caplog.clear()
    folder.put("c", 8.5)  # and after that: moved in, it may be older than the first
    for _ in range(2):
        files.tidy()
    assert folder.names == {"b", "c", "d"}
    assert caplog.text.count("has the name of a file that was read") == 1
    assert str(folder.path / "c") in caplog.text
    caplog.clear()
    EventFiles(folder.path, folder.checkpoint.folder, keep).tidy()  # a new start
    assert folder.names == {"b", "c", "d"}
    assert caplog.text.count("has the name of a file that was read") == 2
    assert str(folder.path / "d") not in caplog.text


def test_what_will_never_be_read_is_told_once_also_where_nothing_is_removed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_files, "_LOOK_EVERY_S", 0.0)
    for name in ("a", "b"):
        folder.put(name, 2)
    folder.read("a", "b")
    files = EventFiles(folder.path, folder.checkpoint.folder, None)
    files.tidy()
    assert not caplog.text
    folder.put("a", 1)
    folder.put("é", 1)
    (folder.path / os.fsdecode(b"\xff.jsonl")).touch()
    for _ in range(2):
        files.tidy()
    assert caplog.text.count("has the name of a file that was read") == 1
    assert str(folder.path / "a") in caplog.text
    assert caplog.text.count("its name is not UTF-8") == 1
    folder.put("a", 0.5)
    files.tidy()
    assert caplog.text.count("has the name of a file that was read") == 2


def test_only_so_many_names_are_remembered(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_files, "_N_REMEMBERED", 1)
    files = EventFiles(folder.path, folder.checkpoint.folder, timedelta(days=7))
    folder.put("first", 9)
    folder.put("last", 8)
    folder.read("first", "last")
    files.tidy()
    assert folder.names == set()
    folder.put("first", 9)
    folder.put("last", 9)
    files.tidy()
    assert folder.names == {"first", "last"}
    assert str(folder.path / "last") in caplog.text
    assert str(folder.path / "first") not in caplog.text


def test_a_checkpoint_that_cannot_be_read_removes_nothing(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.put("old", 9)
    folder.read("old")
    (folder.checkpoint.folder / "offsets" / "0").write_text("v2\n{}\n-")
    EventFiles(folder.path, folder.checkpoint.folder, timedelta(days=7)).tidy()
    assert folder.names == {"old"}
    assert "'v2'" in caplog.text


def test_one_pipeline_at_a_time_has_the_state(tmp_path: Path) -> None:
    first, second = StateFolder(tmp_path / "state"), StateFolder(tmp_path / "state")
    assert first.claim()
    assert first.claim()
    assert not second.claim()
    first.release()
    assert second.claim()
    second.write_status({"events": 3})
    held = json.loads((tmp_path / "state" / "status.json").read_text())
    assert (held["events"], held["time"][:2]) == (3, "20")
    second.release()
