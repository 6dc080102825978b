"""When a notifier may leave out micro-batches."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.errors import SnapshotError
from tamis.spark.rest import Rest

NOW_S = 1_790_000_000


class Notifier:
    """The checkpoint of a query, the match log that it reads, and a clock that is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint, self.log = folder / "notifier", folder / "log"
        for path in (self.checkpoint / "offsets", self.checkpoint / "sources" / "1", self.log):
            path.mkdir(parents=True)
        self.clock_s, self.n_batches, self.n_files = float(NOW_S), 0, 0

    def now(self) -> float:
        """The time, which goes on by a second whenever somebody looks."""
        self.clock_s += 1.0
        return self.clock_s

    def match(self, *due_s: float) -> None:
        """A batch of matches in the log, which the next micro-batch takes up."""
        folder = self.log / f"batch={self.n_files}"
        folder.mkdir()
        file = folder / "matches-1.parquet"
        due = [datetime.fromtimestamp(one, UTC) for one in due_s]
        pq.write_table(pa.table({"due": pa.array(due, pa.timestamp("us", "UTC"))}), file)
        entry = {"path": f"file://{file}", "timestamp": 1, "batchId": self.n_files}
        self._write(f"sources/1/{self.n_files}", json.dumps(entry))
        self.n_files += 1

    def batch(self, watermark_s: float) -> int:
        """A micro-batch that reads what there is, at this time."""
        times = {
            "batchTimestampMs": int(self.clock_s * 1000),
            "batchWatermarkMs": int(watermark_s * 1000),
        }
        held = "-" if not self.n_files else json.dumps({"logOffset": self.n_files - 1})
        self._write(f"offsets/{self.n_batches}", json.dumps(times), "0", held)
        self.n_batches += 1
        return self.n_batches - 1

    def _write(self, name: str, *lines: str) -> None:
        (self.checkpoint / name).write_text("\n".join(["v1", *lines]))


@pytest.fixture
def notifier(tmp_path: Path) -> Notifier:
    return Notifier(tmp_path)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.spark.rest._LOOK_EVERY_S", 0.0)


def begun(notifier: Notifier) -> Rest:
    """A rest after the first micro-batches, when what came before the start has been told."""
    rest = Rest(notifier.checkpoint, notifier.log, notifier.now)
    for _ in range(2):
        rest.take(notifier.batch(notifier.clock_s))
    return rest


def rested_s(notifier: Notifier, rest: Rest, batch: int) -> float:
    before = notifier.clock_s
    rest.take(batch)
    assert rest.seconds_in(batch) <= notifier.clock_s - before
    return notifier.clock_s - before


def test_it_ends_after_a_while(notifier: Notifier) -> None:
    rest = begun(notifier)
    assert 10 <= rested_s(notifier, rest, notifier.batch(notifier.clock_s)) <= 13


def test_there_is_none_while_something_waits_that_is_due(notifier: Notifier) -> None:
    rest = begun(notifier)
    notifier.match(notifier.clock_s - 100)
    watermark = notifier.clock_s - 1
    assert rested_s(notifier, rest, notifier.batch(watermark)) <= 3  # taken up, not told
    assert rested_s(notifier, rest, notifier.batch(watermark)) <= 3
    assert rested_s(notifier, rest, notifier.batch(notifier.clock_s)) >= 10  # told


def test_it_ends_when_something_is_due(notifier: Notifier) -> None:
    rest = begun(notifier)
    due_s = notifier.clock_s + 6
    notifier.match(due_s, due_s, due_s + 1_000)
    rest.take(notifier.batch(notifier.clock_s))
    assert rested_s(notifier, rest, notifier.batch(notifier.clock_s)) < 10
    assert notifier.clock_s >= due_s
    assert rested_s(notifier, rest, notifier.batch(due_s - 1)) <= 3  # the watermark is behind
    assert rested_s(notifier, rest, notifier.batch(due_s + 1)) >= 10


def test_the_next_start_knows_what_waits(notifier: Notifier) -> None:
    rest = begun(notifier)
    due_s = notifier.clock_s + 8
    notifier.match(due_s)
    rest.take(notifier.batch(notifier.clock_s))
    again = Rest(notifier.checkpoint, notifier.log, notifier.now)
    again.take(notifier.batch(notifier.clock_s))
    assert rested_s(notifier, again, notifier.batch(notifier.clock_s)) < 10
    assert due_s <= notifier.clock_s < due_s + 3


def test_it_ends_when_matches_come(notifier: Notifier) -> None:
    rest = begun(notifier)
    batch = notifier.batch(notifier.clock_s)
    notifier.match(notifier.clock_s)  # while the micro-batch is done
    assert rested_s(notifier, rest, batch) <= 3
    rest.wake()
    assert rested_s(notifier, rest, notifier.batch(notifier.clock_s + 1)) <= 3


def test_there_is_none_where_a_cap_holds_something_back(notifier: Notifier) -> None:
    rest = begun(notifier)
    notifier.match(notifier.clock_s + 5)
    before = notifier.clock_s
    rest.take(notifier.batch(before), may_last=False)
    assert notifier.clock_s - before <= 3
    before = notifier.clock_s
    rest.take(notifier.batch(before))  # what came meanwhile was noted
    assert notifier.clock_s - before <= 8


def test_there_is_none_where_it_is_not_known_what_waits(
    notifier: Notifier, caplog: pytest.LogCaptureFixture
) -> None:
    rest = begun(notifier)
    notifier.match(notifier.clock_s)
    batch = notifier.batch(notifier.clock_s)
    for file in notifier.log.glob("*/*"):
        file.write_bytes(b"no table")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert rested_s(notifier, rest, batch) <= 3
    assert caplog.text.count("takes no rest") == 1
    waiting = notifier.checkpoint / "waiting.json"
    assert not waiting.exists()
    waiting.write_text('{"due_s": [true, null]}')
    damaged = begun(notifier)
    assert rested_s(notifier, damaged, notifier.batch(notifier.clock_s)) <= 3


def test_there_is_none_while_something_may_wait_that_nobody_noted(notifier: Notifier) -> None:
    """A state of an older version, or of one that had trouble."""
    notifier.batch(notifier.clock_s)
    rest = begun(notifier)
    assert rested_s(notifier, rest, notifier.batch(notifier.clock_s)) <= 3
    notifier.clock_s += 5 * 86_400
    again = begun(notifier)
    assert rested_s(notifier, again, notifier.batch(notifier.clock_s)) <= 3
    notifier.clock_s += 4 * 86_400
    assert rested_s(notifier, again, notifier.batch(notifier.clock_s)) >= 10


def test_there_is_none_where_it_cannot_be_noted(
    notifier: Notifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = begun(notifier)

    def write_json(path: Path, held: object) -> None:
        raise SnapshotError("the disk is full")

    monkeypatch.setattr("tamis.spark.rest.write_json", write_json)
    notifier.match(notifier.clock_s + 100)
    for _ in range(2):
        assert rested_s(notifier, rest, notifier.batch(notifier.clock_s)) <= 3
    monkeypatch.undo()
    assert rested_s(notifier, begun(notifier), notifier.batch(notifier.clock_s)) <= 3


def test_a_run_that_ends_by_itself_notes_what_waits(notifier: Notifier) -> None:
    once = Rest(notifier.checkpoint, notifier.log, notifier.now)
    once.wake()
    due_s = notifier.clock_s + 20
    notifier.match(due_s)
    assert rested_s(notifier, once, notifier.batch(notifier.clock_s)) <= 3
    assert int(due_s) in json.loads((notifier.checkpoint / "waiting.json").read_text())["due_s"]


def test_it_ends_although_the_clock_is_set_back(
    notifier: Notifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = begun(notifier)
    monkeypatch.setattr("tamis.spark.rest._LONGEST_S", 0.2)
    batch = notifier.batch(notifier.clock_s)
    monkeypatch.setattr(rest, "_now", lambda: NOW_S - 3_600.0)
    rest.take(batch)
    assert rest.seconds_in(batch) == 0.0
