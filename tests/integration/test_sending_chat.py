"""Chat services by way of Apprise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.service.sending import SenderSettings
from tamis.service.sending.transports.apprise import ChatTransport
from tamis.storage import Database
from tests.integration.receiver import Answer, receiving
from tests.integration.sending import Clock, notify, outcomes, send_due, settings, states, subscribe

# A module of Apprise that nobody needs here imports it.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """One kind will do: what is tested here does not depend on it."""
    made = Database(f"sqlite:///{tmp_path}/tamis.db")
    made.migrate()
    yield made
    made.close()


def send(database: Database, given: SenderSettings, clock: Clock) -> int:
    return send_due(database, given, clock, {"apprise": ChatTransport(given.apprise)})


def test_a_service_is_told(database: Database) -> None:
    clock = Clock()
    with receiving() as server:
        address = f"json://127.0.0.1:{server.port}/chat?rto=9999&cto=9999&redirect=yes"
        subscribe(database, "s1", {"apprise": address})
        (id,) = notify(database, "s1")
        given = settings(apprise={"schemas": ["json"], "timeout": "5 s"})
        server.answer = lambda request: Answer(500)
        send(database, given, clock)
        assert states(database) == {id: "waiting"}
        server.answer = lambda request: Answer(307, {"location": "/elsewhere"})
        clock.move(minutes=1)
        send(database, given, clock)
        assert {one.path for one in server.received} == {"/chat"}  # no redirect was followed
        server.answer = lambda request: Answer(200)
        clock.move(minutes=1)
        send(database, given, clock)
        assert states(database) == {id: "sent"}
        assert [outcome for outcome, _ in outcomes(database)] == ["failed", "failed", "sent"]
        body = json.loads(server.received[-1].body)
        assert body["title"] == "1 match for s1"
        assert '{"price": 3200}' in body["message"]
        assert "price < 3300 AND brand = 'Škoda'" in body["message"]


def test_what_the_settings_do_not_allow_is_not_sent(database: Database) -> None:
    with receiving() as server:
        subscribe(database, "s1", {"apprise": f"json://127.0.0.1:{server.port}/"})
        (id,) = notify(database, "s1")
        send(database, settings(), Clock())
        assert server.received == []
        assert states(database) == {id: "dead"}
