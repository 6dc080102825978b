"""``kill -9`` of the notifier's driver and its Java: nothing is lost, nothing told twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tamis.delivery import settings_text
from tamis.spark.ledger import LedgerStore
from tamis.spark.notifier import stop_between_batches
from tests.integration.match_log import MatchLog, match
from tests.integration.notifier_job import MOMENTS, open_outbox, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

JOB = Path(__file__).with_name("notifier_job.py")
ROOT = Path(__file__).parents[2]
CAP = settings_text({"max_digest": 3, "rate_cap": "2 per minute"})
PATIENCE_S = 300  # starting Java several times takes long on a busy machine
Told = list[dict[str, Any]]


class Trial:
    """A notifier that is killed again and again while matches keep coming."""

    def __init__(self, folder: Path, kind: str, seed: int) -> None:
        self.folder, self.kind = folder, kind
        self.random = random.Random(seed)
        self.log = MatchLog(folder / "log")
        self.rows: list[dict[str, Any]] = []
        self.outbox = open_outbox(kind, folder)

    def feed(self, n_rows: int = 60) -> None:
        """Append matches: many due at once, some soon, some capped, one in five a repetition."""
        now = datetime.now(UTC)
        made = []
        for _ in range(n_rows):
            event, number = f"e{len(self.rows) + len(made)}", self.random.randrange(40)
            wait = timedelta(seconds=self.random.choice([0, 0, 2, 5]))
            capped = number < 4
            made.append(
                match(event, f"s{number}", now if capped else now + wait, priority=number % 10,
                      schedule=CAP if capped else "", payload=event.encode())
            )  # fmt: skip
            if self.rows and self.random.random() < 0.2:
                made.append({**self.random.choice(self.rows), "due": now})
        self.log.append(made)
        self.rows += made

    @contextmanager
    def job(self, moment: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """A run of the job, which is gone with its Java at the end."""
        with (self.folder / "complaints").open("ab") as complaints:
            process = subprocess.Popen(
                [sys.executable, JOB, self.folder, self.kind, moment], start_new_session=True,
                stdout=complaints, stderr=complaints, cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def told(self) -> Told:
        if self.kind == "parquet":
            return self.outbox.read().to_pylist()
        held: Told = self.outbox.read()
        return [{**one, "matches": json.loads(one["matches"])} for one in held]

    def n_accounted(self) -> int:
        """How many matches are told or known to be held back."""
        ledger = LedgerStore(self.folder / "checkpoint" / "caps").before(2**40)
        told = sum(one["n_matches"] + one["held_back"] for one in self.told())
        return int(told + sum(ledger["held"].to_pylist()))

    def feed_until_dead(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None:
            assert time.monotonic() < deadline, self.complaint("it was not killed")
            self.feed()
            time.sleep(1)
        assert process.returncode == -signal.SIGKILL, self.complaint("it ended by itself")

    def finish(self, spark: SparkSession) -> None:
        """Go on undisturbed until every pair is accounted for, and a little longer."""
        query = start(spark, self.folder, self.outbox)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while self.n_accounted() < len(self.pairs()):
                assert query.isActive, query.exception()
                assert time.monotonic() < deadline, "something was lost"
                time.sleep(0.3)
            time.sleep(1)
        finally:
            stop_between_batches(query)

    def pairs(self) -> set[tuple[str, str]]:
        return {(row["subscription_id"], row["event_id"]) for row in self.rows}

    def check(self) -> None:
        """The plain reference: every pair once, but for what the caps held back and counted."""
        told = self.told()
        assert len({one["id"] for one in told}) == len(told)
        counted = Counter(
            (one["subscription_id"], held["event_id"]) for one in told for held in one["matches"]
        )
        assert set(counted.values()) == {1}
        capped = {pair for pair in self.pairs() if pair[0] in {"s0", "s1", "s2", "s3"}}
        assert set(counted) - capped == self.pairs() - capped
        assert set(counted) <= self.pairs()
        assert self.n_accounted() == len(self.pairs())
        windows = Counter(
            (one["subscription_id"], minute_of(one)) for one in told if one["delivery"] == CAP
        )
        assert max(windows.values()) == 2
        for one in told:
            assert [held["event_id"] for held in one["matches"]] == in_order(one["matches"])

    def complaint(self, trouble: str) -> str:
        return f"{trouble}\n{(self.folder / 'complaints').read_text()[-4000:]}"


def minute_of(one: dict[str, Any]) -> Any:
    due = one["due"]
    return (datetime.fromisoformat(due) if isinstance(due, str) else due).replace(
        second=0, microsecond=0
    )


def in_order(matches: list[dict[str, Any]]) -> list[str]:
    def key(held: dict[str, Any]) -> tuple[Any, ...]:
        return held["priority"], held["event_time"], held["event_id"]

    return [held["event_id"] for held in sorted(matches, key=key)]


def kill_at_random(trial: Trial) -> None:
    """Kill the job some time after it has begun to publish."""
    before = trial.n_accounted()
    with trial.job() as process:
        trial.feed()
        deadline = time.monotonic() + PATIENCE_S
        while trial.n_accounted() == before:
            assert process.poll() is None, trial.complaint("it ended by itself")
            assert time.monotonic() < deadline, trial.complaint("it published nothing")
            time.sleep(0.1)
        for _ in range(3):
            trial.feed()
            time.sleep(trial.random.random())
        os.killpg(process.pid, signal.SIGKILL)


def test_killed_between_outbox_and_commit(spark: SparkSession, tmp_path: Path) -> None:
    """The worst moment; the others are in the long test, and Java takes its time to start."""
    trial = Trial(tmp_path, "parquet", seed=1)
    with trial.job("after publishing") as process:
        trial.feed_until_dead(process)
    trial.finish(spark)
    trial.check()


@pytest.mark.perf
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["parquet", "sqlite"])
def test_killed_twenty_times(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    trial = Trial(tmp_path, kind, seed=2)
    for round_number in range(20):
        moment = (*MOMENTS, "")[round_number % 4]
        if not moment:
            kill_at_random(trial)
            continue
        with trial.job(moment) as process:
            trial.feed_until_dead(process)
    trial.finish(spark)
    trial.check()
