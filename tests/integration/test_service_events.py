"""Events published and matched over HTTP; notifications listed, replayed and followed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select, update

from tamis.service.recent import RecentEvents
from tamis.storage.outbox import add_notifications
from tamis.storage.tables import deliveries, moment
from tests.integration.service_server import Service, running_service, serving


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Service]:
    with running_service(tmp_path / "data", database_url) as running:
        yield running


@pytest.fixture
def admin(service: Service) -> Iterator[httpx.Client]:
    with service.client() as client:
        yield client


def logged(service: Service, n_events: int) -> list[dict[str, Any]]:
    """The lines of the event log that the pipeline sees, when there are so many."""
    until = time.monotonic() + 30
    while True:
        files = sorted(service.settings.events.glob("[!.]*.jsonl"))
        lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
        if len(lines) >= n_events:
            return lines
        assert time.monotonic() < until
        time.sleep(0.02)


def test_events_in_every_form_are_in_the_log(admin: httpx.Client, service: Service) -> None:
    one = admin.post("/v1/events", json={"price": 3})
    assert one.status_code == 202
    lines = b'{"id": "l1", "price": 4}\n\n{"id": "l2", "price": 5}'
    many = admin.post("/v1/events", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert many.json() == {"n_events": 2, "ids": ["l1", "l2"]}
    cloud = {
        "specversion": "1.0", "id": "c1", "source": "/shop", "type": "offer",
        "data": {"price": 6}, "time": "2026-01-01T09:00:00Z",
    }  # fmt: skip
    kind = {"Content-Type": "application/cloudevents+json"}
    admin.post("/v1/events", content=json.dumps(cloud).encode(), headers=kind)
    kind = {"Content-Type": "application/cloudevents-batch+json; charset=utf-8"}
    batch = json.dumps([{**cloud, "id": "c2"}, {**cloud, "id": "c3"}]).encode()
    admin.post("/v1/events", content=batch, headers=kind)
    found = {line["@id"]: line for line in logged(service, 6)}
    assert sorted(found) == sorted(["l1", "l2", "c1", "c2", "c3", *one.json()["ids"]])
    assert (found["c1"]["price"], found["c1"]["ce.type"]) == (6, "offer")
    assert found["c1"]["@time"] == "2026-01-01T09:00:00Z"
    assert json.loads(found["l1"]["@payload"]) == {"price": 4}


BAD: list[tuple[bytes, str, int]] = [
    (b"{", "application/json", 422),
    (b"[]", "application/json", 422),
    (b"\xff", "application/json", 422),
    (b"[" * 100_000, "application/json", 422),
    (b'{"a": ' * 2_000 + b"1" + b"}" * 2_000, "application/json", 422),
    (b'{"price": 1, "price": 2}', "application/json", 422),
    (b'{"price": NaN}', "application/json", 422),
    ('{"price": 1}'.encode("utf-16"), "application/json", 422),
    (b'{"price": -Infinity}', "application/json", 422),
    (b'{"x": 1}\n{"price": [1, Infinity]}', "application/x-ndjson", 422),
    (b'{"@id": 1}', "application/json", 422),
    (b'{"id": "a\\u0000", "x": 1}', "application/json", 422),
    (b'{"x": 1}\n{', "application/x-ndjson", 422),
    (b'{"specversion": "1.0"}', "application/cloudevents+json", 422),
    (b'{"id": "e1", "price": 1}', "application/cloudevents+json", 422),
    (b"7", "application/cloudevents+json", 422),
    (b'[{"id": "e1", "price": 1}]', "application/cloudevents-batch+json", 422),
    (b'[{"price": NaN}]', "application/cloudevents-batch+json", 400),
    (b"\xff", "application/cloudevents-batch+json", 400),
    (b"{}", "application/cloudevents-batch+json", 400),
    (b'["{}"]', "application/cloudevents-batch+json", 422),
    (b'[{"specversion": "1.0"}]', "application/cloudevents-batch+json", 422),
    (b"x", "text/plain", 400),
]


@pytest.mark.parametrize(("body", "kind", "status"), BAD)
def test_events_that_cannot_be_read(tmp_path: Path, body: bytes, kind: str, status: int) -> None:
    with running_service(tmp_path / "data") as service, service.client() as admin:
        answer = admin.post("/v1/events", content=body, headers={"Content-Type": kind})
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
    assert list(service.settings.events.iterdir()) == []


CONTEXT = {"ce-specversion": "1.0", "ce-id": "b1", "ce-source": "/shop", "ce-type": "offer"}


def test_a_cloud_event_in_headers_is_that_in_json(admin: httpx.Client, service: Service) -> None:
    headers = {**CONTEXT, "ce-time": "2026-01-01T09:00:00Z", "ce-city": "K%C3%B6ln"}
    told = admin.post("/v1/events", json={"price": 6}, headers=headers)
    assert (told.status_code, told.json()["ids"]) == (202, ["b1"])
    cloud = {
        "specversion": "1.0", "id": "b1", "source": "/shop", "type": "offer",
        "time": "2026-01-01T09:00:00Z", "city": "Köln", "data": {"price": 6},
    }  # fmt: skip
    kind = {"Content-Type": "application/cloudevents+json", "ce-id": "not this one"}
    admin.post("/v1/events", content=json.dumps(cloud).encode(), headers=kind)
    first, second = logged(service, 2)
    assert (first, first["ce.city"], first["price"]) == (second, "Köln", 6)
    bare = admin.post("/v1/events", headers={**CONTEXT, "ce-id": "b2"})
    assert bare.json() == {"n_events": 1, "ids": ["b2"]}


def test_another_context_is_another_request(admin: httpx.Client) -> None:
    once = {"Idempotency-Key": "k1", **CONTEXT}
    assert admin.post("/v1/events", json={"price": 3}, headers=once).json()["ids"] == ["b1"]
    assert admin.post("/v1/events", json={"price": 3}, headers=once).json()["ids"] == ["b1"]
    other = admin.post("/v1/events", json={"price": 3}, headers={**once, "ce-id": "b2"})
    assert (other.status_code, other.json()["type"]) == (422, "urn:tamis:error:token-reused")


def test_the_same_events_again_are_published_once(admin: httpx.Client, service: Service) -> None:
    once = {"Idempotency-Key": "k1"}
    first = admin.post("/v1/events", json={"price": 3}, headers=once)
    again = admin.post("/v1/events", json={"price": 3}, headers=once)
    assert (again.status_code, again.json()) == (202, first.json())
    other = admin.post("/v1/events", json={"price": 4}, headers=once)
    assert (other.status_code, other.json()["type"]) == (422, "urn:tamis:error:token-reused")
    failed = admin.post("/v1/events", content=b"{", headers={"Idempotency-Key": "k2"})
    assert failed.status_code == 422
    admin.post("/v1/events", json={"price": 5}, headers={"Idempotency-Key": "k3"})
    assert [line["price"] for line in logged(service, 2)] == [3, 5]


def test_twins_that_fail_at_the_same_time_are_told_so(service: Service) -> None:
    key = service.key("shop", "publisher")

    def publish(thread: int) -> set[int]:
        with service.client(key) as client:
            once = {"Idempotency-Key": "one"}
            answers = [client.post("/v1/events", content=b"{", headers=once) for _ in range(15)]
            return {answer.status_code for answer in answers}

    with ThreadPoolExecutor(8) as threads:
        assert set().union(*threads.map(publish, range(8))) <= {409, 422}


def test_publishers_at_the_same_time_lose_nothing(service: Service) -> None:
    n_threads, n_each = 6, 20
    key = service.key("shop", "publisher")

    def publish(thread: int) -> None:
        with service.client(key) as client:
            for number in range(n_each):
                event = {"id": f"{thread}-{number}", "x": number}
                assert client.post("/v1/events", json=event).status_code == 202

    threads = [threading.Thread(target=publish, args=(n,)) for n in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [line["@id"] for line in logged(service, n_threads * n_each)]
    assert sorted(found) == sorted(f"{t}-{n}" for t in range(n_threads) for n in range(n_each))


def test_who_would_be_told_and_why(admin: httpx.Client, service: Service) -> None:
    service.wait_until_ready()
    with service.client(service.key("zoe")) as zoe:
        zoe.put("/v1/subscriptions/s1", json={"filter": "price < 10", "priority": 7})
        admin.put("/v1/subscriptions/s2", json={"filter": "price < 20", "priority": 1})
        event = {"event": {"id": "e1", "price": 5}}
        assert zoe.post("/v1/match", json=event).json() == {"n_matches": 1, "ids": ["s1"]}
        assert admin.post("/v1/match", json=event).json()["ids"] == ["s2", "s1"]
        assert admin.post("/v1/match", json={**event, "limit": 1}).json() == {
            "n_matches": 2, "ids": ["s2"],
        }  # fmt: skip
        zoe.patch("/v1/subscriptions/s1", json={"is_paused": True})
        assert zoe.post("/v1/match", json=event).json()["ids"] == []
        zoe.patch("/v1/subscriptions/s1", json={"is_paused": False, "filter": "price > 10"})
        assert zoe.post("/v1/match", json=event).json()["ids"] == []
        zoe.patch("/v1/subscriptions/s1", json={"filter": "price = 5"})
        assert zoe.post("/v1/match", json=event).json()["ids"] == ["s1"]
        why = zoe.post("/v1/explain", json={"id": "s1", **event}).json()
        assert why["held"]
        why = zoe.post("/v1/explain", json={"filter": "x = 1 AND price = 5", **event}).json()
        assert not why["held"]
        assert why["text"] == "✗ not all of 2 hold\n  ✗ no attribute 'x'\n  ✓ price = 5 is = 5"
        assert [part["held"] for part in why["tree"]["parts"]] == [False, True]
        assert zoe.post("/v1/explain", json={"id": "s2", **event}).status_code == 404
        assert zoe.post("/v1/explain", json=event).status_code == 422
        zoe.delete("/v1/subscriptions/s1")
        assert zoe.post("/v1/match", json=event).json()["ids"] == []


def test_a_filter_is_tried_on_the_recent_events(
    tmp_path: Path, admin: httpx.Client, service: Service
) -> None:
    lines = b"".join(b'{"id": "e%d", "price": %d}\n' % (n, n) for n in range(200))
    admin.post("/v1/events", content=lines, headers={"Content-Type": "application/x-ndjson"})
    narrow = admin.post("/v1/preview", json={"filter": "price >= 190", "n_examples": 2}).json()
    assert (narrow["n_events"], narrow["n_matches"], narrow["too_broad"]) == (200, 10, False)
    assert [one["id"] for one in narrow["examples"]] == ["e199", "e198"]
    broad = admin.post("/v1/preview", json={"filter": "price_from=100", "spelling": "query"}).json()
    assert (broad["n_matches"], broad["too_broad"], broad["share"]) == (100, True, 0.5)
    assert "50% of the last 200 events" in broad["warning"]
    few = admin.post("/v1/preview", json={"filter": "price >= 0", "n_events": 10}).json()
    assert (few["n_events"], few["n_matches"], few["too_broad"]) == (10, 10, False)
    bad = admin.post("/v1/preview", json={"filter": "price >"})
    assert (bad.status_code, bad.json()["column"]) == (422, 7)
    # A service that starts knows what is in the log.
    with serving(service.settings) as url:
        again = httpx.post(
            url + "/v1/preview", json={"filter": "price >= 190"},
            headers={"Authorization": f"Bearer {service.admin}"},
        )  # fmt: skip
    assert (again.json()["n_events"], again.json()["n_matches"]) == (200, 10)


# -- notifications


def tell(service: Service, number: int, owner: str = "zoe") -> str:
    id = f"{number:032x}"
    row = {
        "id": id, "subscription_id": f"s{number % 2}", "owner": owner, "priority": 5,
        "due": "2026-01-01T09:00:00.000000Z", "part": 1, "parts": 1, "total": 1, "n_matches": 1,
        "held_back": 0, "delivery": "", "matches": json.dumps([{"event_id": f"e{number}"}]),
        "batch": 0,
    }  # fmt: skip
    add_notifications(service.database, [row])
    return id


def test_previews_leave_threads_to_others(
    admin: httpx.Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, slow = threading.Event(), RecentEvents.preview

    def wait(*given: Any) -> Any:
        assert go_on.wait(60)
        return slow(*given)

    monkeypatch.setattr(RecentEvents, "preview", wait)
    asked = {"filter": "price >= 0"}
    with ThreadPoolExecutor(40) as threads, service.client() as other:
        waiting = [threads.submit(other.post, "/v1/preview", json=asked) for _ in range(40)]
        try:
            assert admin.post("/v1/events", json={"price": 3}).status_code == 202
            assert not any(one.done() for one in waiting)
        finally:
            go_on.set()
        assert {one.result(60).status_code for one in waiting} == {200}


def test_notifications_are_listed_and_read_by_their_owner(service: Service) -> None:
    for number in range(5):
        tell(service, number)
    tell(service, 9, "max")
    with service.client(service.key("zoe")) as zoe, service.client(service.key("eve")) as eve:
        first = zoe.get("/v1/notifications", params={"limit": 3}).json()
        assert [one["matches"][0]["event_id"] for one in first["items"]] == ["e4", "e3", "e2"]
        rest = zoe.get("/v1/notifications", params={"limit": 3, "before": first["next"]}).json()
        assert [one["matches"][0]["event_id"] for one in rest["items"]] == ["e1", "e0"]
        assert rest["next"] is None
        of_s1 = zoe.get("/v1/notifications", params={"subscription_id": "s1"}).json()["items"]
        assert [one["subscription_id"] for one in of_s1] == ["s1", "s1"]
        id = first["items"][0]["id"]
        assert zoe.get(f"/v1/notifications/{id}").json() == {**first["items"][0], "deliveries": []}
        assert eve.get(f"/v1/notifications/{id}").status_code == 404
        assert eve.post(f"/v1/notifications/{id}/replay").status_code == 404
        assert eve.get("/v1/notifications").json() == {"items": [], "next": None}


def test_a_replay_lets_deliveries_begin_anew(service: Service) -> None:
    id, now = tell(service, 1), moment()
    rows = [
        {
            "notification_id": id, "transport": transport, "destination": "x.example",
            "address": "x", "expires_at": now,
            "owner": "zoe", "priority": 5, "state": state, "attempts": 3, "next_at": now,
            "problem": "away", "created_at": now, "updated_at": now,
        }
        for transport, state in (("webhook", "dead"), ("mail", "sent"), ("apprise", "waiting"))
    ]  # fmt: skip
    with service.database.writing() as connection:
        connection.execute(insert(deliveries), rows)
        connection.execute(
            update(deliveries).where(deliveries.c.transport == "apprise").values(attempts=1)
        )
    with service.client(service.key("zoe")) as zoe:
        assert len(zoe.get(f"/v1/notifications/{id}").json()["deliveries"]) == 3
        answer = zoe.post(f"/v1/notifications/{id}/replay")
        assert (answer.status_code, answer.json()) == (202, {"n_deliveries": 3})
    with service.database.reading() as connection:
        query = select(deliveries).where(deliveries.c.address == "x")
        found = connection.execute(query.order_by(deliveries.c.transport)).all()
    assert [(row.state, row.attempts) for row in found] == [
        ("waiting", 1), ("waiting", 0), ("waiting", 0),
    ]  # fmt: skip


def followed(client: httpx.Client, n_wanted: int, after: str | None = None) -> list[dict[str, Any]]:
    headers = {} if after is None else {"Last-Event-ID": after}
    found: list[dict[str, Any]] = []
    with client.stream("GET", "/v1/notifications/stream", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line.removeprefix("data: ")))
                if len(found) == n_wanted:
                    return found
    raise AssertionError("the stream ended")


def test_a_feed_is_live_and_goes_on_where_it_was(service: Service) -> None:
    for number in range(3):
        tell(service, number)
    tell(service, 100, "max")
    with service.client(service.key("zoe")) as zoe:
        first = followed(zoe, 2, "0")
        assert [one["matches"][0]["event_id"] for one in first] == ["e0", "e1"]
        later = threading.Timer(0.5, lambda: (tell(service, 101, "max"), tell(service, 7)))
        later.start()
        rest = followed(zoe, 2, str(first[-1]["number"]))
        later.join()
        assert [one["matches"][0]["event_id"] for one in rest] == ["e2", "e7"]
        # Without a number, only what is new.
        later = threading.Timer(1.0, lambda: tell(service, 8))
        later.start()
        (fresh,) = followed(zoe, 1)
        later.join()
        assert fresh["matches"][0]["event_id"] == "e8"
        for number in ("x", "-1", "", str(2**63), "9" * 5_000):
            bad = zoe.get("/v1/notifications/stream", headers={"Last-Event-ID": number})
            assert (number[:20], bad.status_code) == (number[:20], 400)


def test_a_stream_ends_when_its_key_is_revoked(service: Service) -> None:
    key = service.key("zoe")
    prefix = key.split("_")[1]
    tell(service, 0)
    with (
        service.client(key) as zoe,
        zoe.stream("GET", "/v1/notifications/stream", headers={"Last-Event-ID": "0"}) as response,
        service.client() as admin,
    ):
        lines = response.iter_lines()
        assert "e0" in next(line for line in lines if line.startswith("data: {"))
        assert admin.delete(f"/v1/keys/{prefix}").status_code == 200
        tell(service, 1)
        assert not any(line.startswith("data: {") for line in lines)
