"""Notifications through Spark: due times, digests, caps, once only, across restarts and replays."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tamis.delivery import LEDGER_SCHEMA, notification_id, settings_text
from tamis.errors import PipelineError
from tamis.spark.clock import ClockGuard
from tamis.spark.ledger import LedgerStore
from tamis.spark.notifier import notify_stream, stop_between_batches
from tamis.spark.outbox import ParquetOutbox
from tests.integration.match_log import SPARK_SCHEMA, MatchLog, match, read_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

HOUR = timedelta(hours=1)


class Notifier:
    """A match log, an outbox, and the query between them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.log = MatchLog(folder / "log")
        self.outbox = ParquetOutbox(folder / "outbox")
        self.checkpoint = folder / "checkpoint"

    def start(self, interval: timedelta | None, retention: timedelta = HOUR) -> StreamingQuery:
        matches = read_log(self.spark, self.log.path)
        return notify_stream(
            matches, self.outbox, checkpoint=self.checkpoint, retention=retention, interval=interval
        ).query

    def run(self, *rows: dict[str, Any], retention: timedelta = HOUR) -> list[dict[str, Any]]:
        """Take up the rows, publish what is due, end; what the outbox got by that."""
        n_before = self.outbox.read().num_rows
        if rows:
            self.log.append(list(rows))
        query = self.start(None, retention)
        assert query.awaitTermination(200)
        return self.outbox.read().to_pylist()[n_before:]

    def told(self) -> dict[str, list[list[str]]]:
        """The events of each notification, by subscription."""
        found: dict[str, list[list[str]]] = {}
        for one in self.outbox.read().to_pylist():
            events = [held["event_id"] for held in one["matches"]]
            found.setdefault(one["subscription_id"], []).append(events)
        return found


@pytest.fixture
def notifier(spark: SparkSession, tmp_path: Path) -> Notifier:
    return Notifier(spark, tmp_path)


def wait_for(condition: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def n_dropped(query: StreamingQuery) -> int:
    """How many rows the stateful operators took for late."""
    return sum(
        operator.numRowsDroppedByWatermark
        for progress in query.recentProgress
        for operator in progress.stateOperators
    )


def test_the_clock(notifier: Notifier) -> None:
    """Dues near, past and far: each when it is due, also when nothing arrives, also restarted."""
    query = notifier.start(timedelta(milliseconds=200))
    now = datetime.now(UTC)
    far = now + timedelta(days=3650)
    notifier.log.append(
        [
            match("e1", "at once", now), match("e2", "at once", now), match("e1", "at once", now),
            match("e1", "late", now - timedelta(days=400)), match("e1", "far", far),
        ]
    )  # fmt: skip
    wait_for(lambda: len(notifier.told()) >= 2, query)
    assert notifier.told() == {"at once": [["e1", "e2"]], "late": [["e1"]]}

    # Due times ten years ahead have been seen; rows of now are still taken up, e1 is not repeated.
    soon = datetime.now(UTC) + timedelta(seconds=15)
    notifier.log.append([match("e1", "soon", soon), match("e1", "at once", soon)])
    notifier.log.append([match("e2", "late", now), match("e2", "soon", soon)])
    wait_for(lambda: len(notifier.told()["late"]) == 2, query)
    assert notifier.told() == {"at once": [["e1", "e2"]], "late": [["e1"], ["e2"]]}
    assert n_dropped(query) == 0
    stop_between_batches(query)

    # What waits is in the checkpoint; nothing more arrives, and it comes when it is due.
    query = notifier.start(timedelta(milliseconds=200))
    wait_for(lambda: "soon" in notifier.told(), query)
    assert datetime.now(UTC) >= soon
    rows = notifier.outbox.read().to_pylist()
    assert [one["due"] for one in rows if one["subscription_id"] == "soon"] == [soon]
    assert notifier.told()["soon"] == [["e1", "e2"]]
    stop_between_batches(query)
    assert "far" not in notifier.told()
    assert n_dropped(query) == 0


def test_a_pair_is_told_again_only_after_the_retention(notifier: Notifier) -> None:
    short = timedelta(seconds=1)
    now = datetime.now(UTC)
    assert len(notifier.run(match("e1", "s1", now), retention=short)) == 1
    assert notifier.run(match("e1", "s1", now), retention=HOUR) == []  # kept by its first due time
    time.sleep(1.5)
    notifier.run(retention=short)  # moves the clock on, so that the pair is forgotten
    assert len(notifier.run(match("e1", "s1", now), retention=short)) == 1


def test_caps_and_replay(notifier: Notifier) -> None:
    """Parts of a digest, a cap over several runs, and the last micro-batch once more."""
    now = datetime.now(UTC)
    cap = settings_text({"max_digest": 2, "rate_cap": f"2 per {days_of_a_quiet_window()} days"})
    capped = [match(f"e{n}", "capped", now, schedule=cap, priority=9) for n in range(7)]
    notifier.run(*capped, match("e1", "free", now, priority=1))
    rows = notifier.outbox.read().to_pylist()
    assert [(one["subscription_id"], one["part"], one["parts"], one["total"]) for one in rows] == [
        ("free", 1, 1, 1), ("capped", 1, 4, 7), ("capped", 2, 4, 7),
    ]  # fmt: skip
    assert notifier.told()["capped"] == [["e0", "e1"], ["e2", "e3"]]
    assert held_in_ledger(notifier) == {"capped": 3}

    assert notifier.run(match("e9", "capped", now, schedule=cap)) == []
    assert held_in_ledger(notifier) == {"capped": 4}

    # Spark believes that the last micro-batch was not finished, and runs it again.
    before = notifier.outbox.read()
    commits = notifier.checkpoint / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink()
    assert notifier.run() == []
    assert notifier.outbox.read().equals(before)
    assert held_in_ledger(notifier) == {"capped": 4}

    # An old ledger: the window of the cap is over, and so is the one after it.
    tell_ledger_of_an_old_window(notifier.checkpoint)
    (notice,) = notifier.run()
    assert (notice["subscription_id"], notice["part"], notice["parts"]) == ("quiet", 0, 0)
    assert (notice["held_back"], notice["matches"]) == (7, [])
    assert notice["id"] == notification_id("quiet", 120_000_000 - 1_000, 0)
    assert notifier.run() == []


def days_of_a_quiet_window() -> int:
    """A length in days such that no window of that length starts or ends about now."""
    now = time.time()
    return max((29, 31), key=lambda days: min(now % (days * 86_400), -now % (days * 86_400)))


def held_in_ledger(notifier: Notifier) -> dict[str, int]:
    table = LedgerStore(notifier.checkpoint / "caps").before(2**40)
    return dict(zip(table["subscription_id"].to_pylist(), table["held"].to_pylist(), strict=True))


def tell_ledger_of_an_old_window(checkpoint: Path) -> None:
    old = {"subscription_id": "quiet", "owner": "o", "priority": 3, "delivery": "{}",
           "window_us": 0, "period_us": 60_000_000, "told": 1, "held": 7}  # fmt: skip
    store = LedgerStore(checkpoint / "caps")
    last = max(int(path.stem) for path in (checkpoint / "caps").glob("*.arrow"))
    store.write(last, pa.Table.from_pylist([old], LEDGER_SCHEMA))


def test_what_cannot_be_notified_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    outbox = ParquetOutbox(tmp_path / "outbox")
    with pytest.raises(PipelineError, match="no column 'subscription_id'"):
        notify_stream(spark.range(1).toDF("event_id"), outbox, checkpoint=tmp_path / "c")
    with pytest.raises(PipelineError, match="are not a stream"):
        notify_stream(spark.createDataFrame([], SPARK_SCHEMA), outbox, checkpoint=tmp_path / "c")


def test_a_clock_that_was_set_back_stops_the_start(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    ahead_ms = int(time.time() * 1000) + 3_600_000
    (offsets / "7").write_text(f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{ahead_ms}}}\n{{}}')
    (offsets / "6").write_text("v1\n")
    with pytest.raises(PipelineError, match=r"is 3[56]\d\d s behind the notifier's last"):
        ClockGuard(tmp_path).wait()
    (offsets / "7").write_text("v9\n{}\n")
    with pytest.raises(PipelineError, match="this Tamis reads 'v1'"):
        ClockGuard(tmp_path)


def test_a_clock_that_is_set_back_a_little_holds_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("tamis.spark.clock.time.time", lambda: clock[0])
    monkeypatch.setattr(
        "tamis.spark.clock.time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    )
    guard = ClockGuard(tmp_path)
    assert [guard.wait(), guard.wait()] == [1000.0, 1000.0]
    clock[0] = 990.0
    assert guard.wait() == 1000.0
    clock[0] = 1001.0
    assert guard.wait() == 1001.0
    clock[0] = 900.0
    with pytest.raises(PipelineError, match="is 101 s behind"):
        guard.wait()
