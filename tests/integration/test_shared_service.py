"""Two services for one PostgreSQL database and one folder of events: nothing is lost or doubled."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tamis.client import Client
from tamis.storage import Database, database
from tamis.storage.keys import KeyStore
from tests.integration.postgresql import PostgreSQL
from tests.integration.receiver import Received, receiving
from tests.integration.test_serve import RUN, serve

N_EVENTS = 30  # of each of the four publishers


def test_tables_are_made_by_one_at_a_time(postgresql: PostgreSQL) -> None:
    """Who comes while another makes them waits, and then finds them."""
    url = postgresql.new_database()
    command = [*RUN, "keys", "list", "--database", url]
    with psycopg.connect(url) as another, psycopg.connect(url, autocommit=True) as watching:
        another.execute(f"SELECT pg_advisory_xact_lock({database._MIGRATING})")
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until = time.monotonic() + 60
        while watching.execute(waiting).fetchone() != (3,):
            assert time.monotonic() < until
            time.sleep(0.1)
        another.rollback()
        for one in running:
            _, said = one.communicate(timeout=120)
            assert one.returncode == 0, said


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_two_services_lose_nothing_and_tell_nothing_twice(
    tmp_path: Path, postgresql: PostgreSQL
) -> None:
    """Each with a sender and a pipeline; one pipeline works, and the other takes over."""
    url = postgresql.new_database()
    (tmp_path / "sender.toml").write_text("[webhook]\nallow_networks = ['127.0.0.0/8']\n")
    options = ("--data", str(tmp_path / "data"), "--database", url,
               "--sender", str(tmp_path / "sender.toml"))  # fmt: skip
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    made = Database(url)
    made.migrate()
    _, key = KeyStore(made).create("root", ["admin"])
    made.close()
    with receiving() as receiver, ExitStack() as stack:
        first, one = stack.enter_context(serve(tmp_path / "one", *options))
        second, two = stack.enter_context(serve(tmp_path / "two", *options))
        clients = [stack.enter_context(Client(url, key)) for url in (one, two)]
        clients[0].create("x >= 0", id="s1", delivery={"webhook": receiver.url})
        assert clients[1].match({"x": 1}).ids == ["s1"]
        _publish(clients, "before")
        _wait_until_told(receiver.received, 4 * N_EVENTS)
        first.send_signal(signal.SIGTERM)
        assert first.wait(120) == 0
        _publish(clients[1:] * 2, "after")
        _wait_until_told(receiver.received, 8 * N_EVENTS)
        second.send_signal(signal.SIGTERM)
        assert second.wait(120) == 0
    told = _told(receiver.received)
    assert sorted(told) == sorted(
        f"{when}-{publisher}-{n}"
        for when in ("before", "after") for publisher in range(4) for n in range(N_EVENTS)
    )  # fmt: skip
    assert len(set(receiver.ids)) == len(receiver.ids)
    for name in ("one", "two"):
        assert "Traceback" not in (tmp_path / name / "err").read_text()
    assert "waiting for its end" in (tmp_path / "two" / "err").read_text()


def _publish(clients: list[Client], when: str) -> None:
    """Four publishers at once, two for each of two clients."""

    def publish(publisher: int) -> None:
        for n in range(N_EVENTS):
            clients[publisher % 2].publish({"id": f"{when}-{publisher}-{n}", "x": n})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(publish, range(4)))


def _told(received: list[Received]) -> list[str]:
    """The ids of the events of all requests."""
    return [
        held["event_id"] for one in received for held in json.loads(one.body)["data"]["matches"]
    ]


def _wait_until_told(received: list[Received], n_events: int) -> None:
    until = time.monotonic() + 200
    while len(_told(list(received))) < n_events:
        assert time.monotonic() < until, len(_told(received))
        time.sleep(0.2)
