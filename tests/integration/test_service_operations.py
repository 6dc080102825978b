"""What operators see: how it stands, dead deliveries, metrics; and what they do not see."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from tamis.client import AsyncClient, Client
from tamis.errors import NotAllowed, StorageUnavailable
from tamis.service import operations as operations_module
from tamis.service import turns
from tamis.service.event_log import FileLog
from tamis.service.live_index import LiveIndex
from tamis.service.operations import Operations
from tamis.service.published import new_id
from tamis.service.recent import RecentEvents
from tamis.storage import Database
from tamis.storage.tables import deliveries
from tests.integration.receiver import Answer, receiving
from tests.integration.sending import Clock, give_up, notify, send_due, settings, subscribe
from tests.integration.service_server import Service, running_service


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Service]:
    with running_service(tmp_path / "data", database_url) as running:
        running.wait_until_ready()
        yield running


def operations_of(service: Service, is_there: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """What is told once something is."""
    until = time.monotonic() + 60
    with service.client() as admin:
        while True:
            told: dict[str, Any] = admin.get("/v1/operations").json()
            if is_there(told):
                return told
            assert time.monotonic() < until, told
            time.sleep(0.1)


def test_without_a_pipeline_its_figures_are_not_known(service: Service) -> None:
    told = operations_of(service, lambda held: len(held["history"]) >= 2)
    assert told["events"] == told["matches"] == {"total": None, "per_s": None}
    assert told["lag_s"] is None
    assert told["notifications"] == {"total": 0}
    assert told["deliveries"] == {
        "waiting": 0, "sent": 0, "failed": 0, "dead": 0, "oldest_waiting_s": 0, "destinations": [],
    }  # fmt: skip
    assert told["event_files"] == {"total": 0, "unread": None, "oldest_unread_s": None}
    assert told["history"][-1]["deliveries_per_s"] == 0
    assert told["index"] == {"version": 0, "n_subscriptions": 0}
    assert (told["broadest"], told["costliest"]) == ([], [])


def test_deliveries_are_counted_and_exported(service: Service) -> None:
    with receiving() as receiver:
        subscribe(service.database, "s1", {"webhook": receiver.url})
        notify(service.database, "s1", 4)
        receiver.answer = lambda request: Answer([200, 410, 500, 500][len(receiver.received) - 1])
        given = settings(per_destination=1, ahead=1, circuit_failures=2)
        send_due(service.database, given, Clock())
        told = operations_of(service, lambda held: held["deliveries"]["failed"] == 3)
        held = told["deliveries"]
        assert (held["waiting"], held["sent"], held["dead"]) == (2, 1, 1)
        (destination,) = held["destinations"]
        assert destination == {"destination": receiver.url, "is_open": True, "failures": 2}
    assert told["notifications"] == {"total": 4}
    metrics = httpx.get(service.url + "/metrics").text
    assert 'tamis_delivery_attempts_total{outcome="sent",transport="webhook"} 1.0' in metrics
    assert 'tamis_delivery_attempts_total{outcome="failed",transport="webhook"} 2.0' in metrics
    for line in ("waiting 2.0", "dead 1.0", "resting_destinations 1.0"):
        assert f"tamis_deliveries_{line}\n" in metrics
    assert "tamis_deliveries_oldest_waiting_seconds " in metrics


def test_dead_deliveries_are_listed_without_secrets_and_replayed(service: Service) -> None:
    ids = give_up(service.database, 5)
    with service.database.writing() as connection:
        secret = "webhook 'https://zoe:geheim@example.org/x?geheim' is wrong; slack://geheim/x"
        connection.execute(update(deliveries).values(problem=secret))
    with service.client() as admin, service.client(service.key("zoe")) as zoe:
        page = admin.get("/v1/deliveries", params={"state": "dead", "limit": 3}).json()
        assert len(page["items"]) == 3
        rest = admin.get("/v1/deliveries", params={"limit": 3, "cursor": page["next"]}).json()
        assert rest["next"] is None
        listed = page["items"] + rest["items"]
        assert sorted(one["notification_id"] for one in listed) == sorted(ids)
        assert "geheim" not in json.dumps(listed)
        assert listed[0]["last_error"] == "webhook 'https://example.org/…' is wrong; slack://…"
        assert set(listed[0]) == {
            "notification_id", "subscription_id", "transport", "destination", "attempts",
            "last_error", "last_time",
        }  # fmt: skip
        for method, path, body in (
            ("GET", "/v1/operations", None),
            ("GET", "/v1/deliveries", None),
            ("POST", "/v1/deliveries/replay", {"all": True}),
        ):
            assert zoe.request(method, path, json=body).status_code == 403
        replay = "/v1/deliveries/replay"
        assert admin.post(replay, json={"ids": ids[:2]}).json() == {"replayed": 2}
        assert admin.post(replay, json={"ids": ids[:2]}).json() == {"replayed": 0}
        assert admin.post(replay, json={"all": True}).json() == {"replayed": 3}
        assert admin.get("/v1/deliveries").json() == {"items": [], "next": None}
        assert len(admin.get("/v1/deliveries?state=waiting").json()["items"]) == 5
        for body in ({}, {"all": True, "ids": ids}, {"ids": []}, {"ids": ["\x00"]}):
            assert admin.post(replay, json=body).status_code == 422, body
        assert admin.get("/v1/deliveries", params={"cursor": "x"}).status_code == 400


def test_what_accepts_and_costs_most_is_named(service: Service) -> None:
    with Client(service.url, service.admin) as client:
        client.create("x >= 0", id="all")
        client.create("x = 1", id="one")
        client.create("x = 1 OR x = 2 OR x = 3", id="some")
        client.publish([{"x": x} for x in range(10)])
        client.match({"x": 1})  # has seen what was saved
        until = time.monotonic() + 60
        while not (told := client.operations()).broadest:
            assert time.monotonic() < until
            time.sleep(0.1)
    assert [(one.id, one.share, one.matches) for one in told.broadest] == [
        ("all", 1.0, 10), ("some", 0.3, 3), ("one", 0.1, 1),
    ]  # fmt: skip


def test_the_client_knows_all_of_it(service: Service) -> None:
    ids = give_up(service.database, 3)
    with Client(service.url, service.admin) as client:
        told = client.operations()
        assert told.index.n_subscriptions is not None
        assert told.deliveries.destinations == []
        listed = list(client.deliveries(page_size=2))
        assert sorted(one.notification_id for one in listed) == sorted(ids)
        assert listed[0].last_error == "answered 410 Gone: it wants no more"
        assert client.replay_deliveries(ids[:1]) == 1
    with Client(service.url, service.key("zoe")) as zoe, pytest.raises(NotAllowed):
        zoe.operations()

    async def ask() -> None:
        async with AsyncClient(service.url, service.admin) as client:
            assert (await client.operations()).events.total is None
            assert len([one async for one in client.deliveries(page_size=1)]) == 2
            assert await client.replay_deliveries() == 2

    asyncio.run(ask())


def test_figures_are_not_known_while_the_database_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_REST", 0)
    database = Database(f"sqlite:///{tmp_path}/tamis.db")
    database.migrate()
    operations = Operations(
        database, LiveIndex(database), RecentEvents(10), tmp_path / "pipeline.toml"
    )
    log = FileLog(tmp_path / "events")
    operations._event_log = log
    operations._sample(datetime.now(UTC))
    assert operations.describe()["deliveries"]["waiting"] == 0

    def fail(*_: object) -> None:
        raise StorageUnavailable("away")

    with monkeypatch.context() as away:
        away.setattr(operations_module, "read_figures", fail)
        operations._sample(datetime.now(UTC))
        told = operations.describe()
    assert told["deliveries"]["waiting"] is told["notifications"]["total"] is None
    assert told["history"][-1]["deliveries_per_s"] is None
    operations._sample(datetime.now(UTC))
    assert operations.describe()["deliveries"]["waiting"] == 0
    log.close()
    database.close()


class Pipeline:
    """A pipeline as a service sees it: its settings file and its status."""

    def __init__(self, folder: Path) -> None:
        self.settings = folder / "pipeline.toml"
        self.settings.write_text('state = "state"\n')
        (folder / "state").mkdir()
        self._status = folder / "state" / "status.json"

    def stand(self, at: datetime, events: int, read_until: float) -> None:
        held = {
            "time": at.isoformat(), "events": events, "matches": 2 * events, "match_seconds": 0.25,
            "notify_seconds": 0.5, "read_until": read_until,
        }  # fmt: skip
        self._status.write_text(json.dumps(held))


def test_the_pipeline_is_read_where_it_writes_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_REST", 0)
    database = Database(f"sqlite:///{tmp_path}/tamis.db")
    database.migrate()
    pipeline, log = Pipeline(tmp_path), FileLog(tmp_path / "events")
    operations = Operations(database, LiveIndex(database), RecentEvents(10), pipeline.settings)
    operations._event_log = log
    now = datetime.now(UTC)
    (tmp_path / "events" / f"{new_id()}.jsonl").write_text("{}\n")
    (tmp_path / "events" / "others.jsonl").write_text("{}\n")
    (tmp_path / "events" / ".open-x.jsonl").write_text("")
    pipeline.stand(now, 100, now.timestamp() + 60)
    operations._sample(now)
    told = operations.describe()
    assert (told["events"]["total"], told["matches"]["total"]) == (100, 200)
    assert told["events"]["per_s"] is None
    assert told["event_files"] == {"total": 2, "unread": 0, "oldest_unread_s": 0.0}
    assert told["lag_s"] == 0.75
    later = now + timedelta(seconds=10)
    pipeline.stand(later, 150, now.timestamp() - 60)
    operations._sample(later)
    told = operations.describe()
    assert (told["events"]["per_s"], told["matches"]["per_s"]) == (5.0, 10.0)
    assert told["event_files"]["unread"] == 2
    assert told["lag_s"] == pytest.approx(10, abs=5)
    # It was started anew, and then it died: what it did is not known, how long events wait is.
    pipeline.stand(later, 3, now.timestamp() - 60)
    operations._sample(later)
    assert operations.describe()["events"] == {"total": 3, "per_s": None}
    much_later = later + timedelta(hours=2)
    operations._sample(much_later)
    told = operations.describe()
    assert told["events"] == {"total": None, "per_s": None}
    assert told["lag_s"] == pytest.approx(7_210, abs=5)
    pipeline.settings.write_text("state =")
    operations._sample(much_later)
    told = operations.describe()
    assert (told["lag_s"], told["event_files"]["unread"]) == (None, None)
    assert len(told["history"]) == 5
    log.close()
    database.close()


def test_what_is_not_read_is_told_by_readiness_and_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    Pipeline(data).stand(datetime.now(UTC), 0, 0.0)
    (data / "events").mkdir()
    (data / "events" / "0000000001aaaaaaaaaaaaaaaa.jsonl").write_text('{"@id": "e1"}\n')
    with running_service(data) as service:
        service.wait_until_ready()
        operations_of(service, lambda held: held["event_files"]["unread"] == 1)
        told = httpx.get(service.url + "/readyz").json()
        assert (told["ready"], told["unread_event_files"]) == (True, 1)
        assert told["oldest_unread_s"] > 1e9
        assert "tamis_event_files_unread 1.0\n" in httpx.get(service.url + "/metrics").text
        assert list((data / "events").glob("0*.jsonl"))
    said = capsys.readouterr()
    assert "the pipeline does not read them" in said.out + said.err
