"""Senders at work: beside something else, from the command line, with a database that goes away."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tamis.errors import StorageUnavailable
from tamis.service.sending import Sender, start_sender
from tamis.service.sending.message import Message
from tamis.service.sending.outcomes import Outcome
from tamis.storage import Database
from tamis.storage.deliveries import Leases
from tests.integration.postgresql import PostgreSQL, running_postgresql
from tests.integration.receiver import Answer, receiving
from tests.integration.sending import notify, settings, states, subscribe


def wait_for(is_so: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_sender_in_a_thread(database: Database) -> None:
    with receiving() as server:
        subscribe(database, "s1", {"webhook": server.url})
        sender = start_sender(database, settings())
        try:
            ids = notify(database, "s1", 3)
            wait_for(lambda: len(server.received) == 3)
            ids += notify(database, "s1", 2, first=3)
            wait_for(lambda: len(server.received) == 5)
            assert sender.is_running()
        finally:
            sender.stop()
        assert not sender.is_running()
        assert states(database) == dict.fromkeys(ids, "sent")


def test_what_is_under_way_is_finished_when_it_is_stopped(database: Database) -> None:
    with receiving() as server:
        server.answer = lambda request: Answer(delay_s=0.5)
        subscribe(database, "s1", {"webhook": server.url})
        ids = notify(database, "s1", 4)
        sender = start_sender(database, settings(per_destination=2))
        wait_for(lambda: len(server.received) == 2)
        sender.stop()
        assert len(server.received) == 2
        found = states(database)
        assert {id for id in ids if found[id] == "sent"} == set(server.ids)
        assert sorted(found.values()) == ["sent", "sent", "waiting", "waiting"]


def test_what_takes_too_long_to_stop_is_given_back(database: Database) -> None:
    with receiving() as server:
        server.answer = lambda request: Answer(delay_s=5)
        subscribe(database, "s1", {"webhook": server.url})
        (id,) = notify(database, "s1")
        sender = start_sender(database, settings(stop_within="100 ms"))
        wait_for(lambda: len(server.received) == 1)
        sender.stop()
        assert states(database) == {id: "waiting"}


def test_a_lease_is_renewed_while_a_server_is_slow(database: Database) -> None:
    with receiving() as server:
        server.answer = lambda request: Answer(delay_s=5)
        subscribe(database, "s1", {"webhook": server.url})
        (id,) = notify(database, "s1")
        senders = [start_sender(database, settings(lease="4 s")) for _ in range(2)]
        wait_for(lambda: states(database) == {id: "sent"})
        for sender in senders:
            sender.stop()
        assert server.ids == [id]


class Endless:
    """A transport that never ends by itself."""

    def __init__(self) -> None:
        self.n_begun = self.n_cancelled = 0

    async def send(self, message: Message, at: datetime) -> Outcome:
        self.n_begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        raise AssertionError

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("how", ["fails", "hangs", "is lost"])
def test_a_lease_that_cannot_be_renewed_ends_the_attempt_in_time(
    database: Database, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    subscribe(database, "s1", {"webhook": "https://example.org"})
    (id,) = notify(database, "s1")
    over = threading.Event()

    def renew(leases: Leases, numbers: list[int], until: datetime) -> set[int]:
        if how == "fails":
            raise StorageUnavailable("away")
        if how == "hangs":
            over.wait(20)
        return set()

    monkeypatch.setattr(Leases, "renew", renew)
    transport = Endless()

    async def run() -> None:
        sender = Sender(database, settings(lease="3 s", stop_within="0 s"), {"webhook": transport})
        running = asyncio.create_task(sender.run())
        async with asyncio.timeout(20):
            while not transport.n_cancelled:
                await asyncio.sleep(0.01)
        # Whoever takes it next has to wait for the end of the lease: it was not given back.
        assert states(database) == {id: "sending"}
        over.set()
        sender.stop()
        await running

    asyncio.run(run())
    assert (transport.n_begun, transport.n_cancelled) == (1, 1)


def test_a_database_that_goes_away_and_comes_back() -> None:
    with running_postgresql() as postgresql, receiving() as server:
        database = Database(postgresql.new_database())
        database.migrate()
        server.answer = lambda request: Answer(delay_s=0.05)
        subscribe(database, "s1", {"webhook": server.url})
        ids = notify(database, "s1", 100)
        sender = start_sender(database, settings(lease="3 s", per_destination=4))
        wait_for(lambda: len(server.received) >= 10)
        _restart(postgresql)
        wait_for(lambda: sorted(states(database).values()) == ["sent"] * 100)
        sender.stop()
        database.close()
        assert set(server.ids) == set(ids)


def _restart(postgresql: PostgreSQL) -> None:
    postgresql.stop()
    time.sleep(1)
    postgresql.start()


def tamis(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from tamis.cli import main; main()", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_tamis_send(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tamis.db"
    file = tmp_path / "sender.toml"
    file.write_text('[webhook]\nallow_networks = ["127.0.0.0/8"]\n')
    options = ["send", "--database", url, "--settings", str(file)]
    database = Database(url)
    database.migrate()
    with receiving() as server:
        subscribe(database, "s1", {"webhook": server.url})
        notify(database, "s1", 2)
        out, _ = tamis(*options, "--once").communicate(timeout=60)
        assert json.loads(out) == {"sent": 2, "waiting": 0, "dead": 0}
        running = tamis(*options)
        notify(database, "s1", 1, first=2)
        wait_for(lambda: len(server.received) == 3)
        running.send_signal(signal.SIGTERM)
        out, _ = running.communicate(timeout=60)
        assert (running.returncode, json.loads(out)["sent"]) == (0, 3)
    database.close()


def test_tamis_send_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "sender.toml"
    file.write_text("leese = 3\n")
    wrong = tamis("send", "--database", f"sqlite:///{tmp_path}/t.db", "--settings", str(file))
    _, told = wrong.communicate(timeout=60)
    assert wrong.returncode == 2
    assert "leese: there is no such setting; did you mean 'lease'?" in told
