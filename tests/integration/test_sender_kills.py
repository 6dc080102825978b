"""Several senders on one database, killed while they send: nothing is lost, nothing is sent twice
at the same time."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tamis.service.sending import SenderSettings
from tamis.storage import Database
from tests.integration.receiver import Answer, Received, receiving
from tests.integration.sending import notify, settings, states, subscribe

JOB = Path(__file__).with_name("sender_job.py")
N = 300
PATIENCE_S = 60


@contextmanager
def senders(url: str, given: SenderSettings, n: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Some senders, of which at most those that are still there are stopped at the end."""
    running = [start(url, given) for _ in range(n)]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
        yield running
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.communicate(timeout=30)


def start(url: str, given: SenderSettings) -> subprocess.Popen[str]:
    command = [sys.executable, str(JOB), url, given.model_dump_json()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_until_sent(database: Database, n: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while Counter(states(database).values())["sent"] < n:
        assert time.monotonic() < until, Counter(states(database).values())
        time.sleep(0.05)


def assert_never_at_the_same_time(received: list[Received]) -> None:
    by_id = defaultdict(list)
    for one in received:
        by_id[one.id].append(one)
    for copies in by_id.values():
        copies.sort(key=lambda one: one.begun)
        for before, after in pairwise(copies):
            assert before.ended <= after.begun


def test_two_senders_share_the_work(database: Database, database_url: str) -> None:
    with receiving() as server:
        server.answer = lambda request: Answer(delay_s=0.01)
        subscribe(database, "s1", {"webhook": server.url})
        with senders(database_url, settings(concurrency=8, ahead=1), 2) as running:
            ids = notify(database, "s1", N)
            wait_until_sent(database, N)
            assert [process.poll() for process in running] == [None, None]
        assert sorted(server.ids) == sorted(ids)  # once each
        assert [process.returncode for process in running] == [0, 0]


@pytest.mark.timeout(180)
def test_senders_are_killed_under_load(database: Database, database_url: str) -> None:
    chance = random.Random(7)
    with receiving() as server:
        server.answer = lambda request: Answer(delay_s=chance.uniform(0.0, 0.05))
        subscribe(database, "s1", {"webhook": server.url})
        given = settings(lease="2 s", concurrency=16, per_destination=16)
        ids = notify(database, "s1", N)
        with senders(database_url, given, 2) as running:
            n_wanted = 50
            for number in range(3):
                until = time.monotonic() + PATIENCE_S
                while len(server.received) < n_wanted:
                    assert time.monotonic() < until
                    time.sleep(0.005)
                victim = running.pop(0)
                victim.kill()
                victim.communicate()
                n_wanted = len(server.received) + 50  # of those that come now, at the latest
                ids += notify(database, "s1", N // 3, first=N + number * N)
                running.append(start(database_url, given))
            wait_until_sent(database, len(ids))
        assert set(server.ids) == set(ids)
        assert len(server.received) < len(ids) + 3 * given.concurrency * given.ahead
        assert_never_at_the_same_time([one for one in server.received if one.ended])
