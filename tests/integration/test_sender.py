"""The sender: what is sent, in which order, and what comes of failures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from standardwebhooks import Webhook

from tamis.storage import Database, SubscriptionStore
from tamis.storage.tables import circuits, deliveries, owners
from tests.integration.receiver import Answer, Received, Receiver, receiving
from tests.integration.sending import (
    Clock,
    a_match,
    notify,
    outcomes,
    rows_of,
    send_due,
    settings,
    states,
    subscribe,
)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_webhook_is_told_and_can_check_it(
    database: Database, receiver: Receiver, clock: Clock
) -> None:
    subscribe(database, "s1", {"webhook": f"{receiver.url}/hook?a=b"})
    payloads = [b'{"price": 3200}', b"plain \xc3\xa4", b"\xff\x00", b""]
    (id,) = notify(database, "s1", matches=[a_match(one) for one in payloads], held_back=7)
    assert send_due(database, settings(), clock) == 1
    (request,) = receiver.received
    assert request.path == "/hook?a=b"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    with database.reading() as connection:
        secret = connection.execute(owners.select()).one().webhook_secret
    body = Webhook(secret).verify(request.body, request.headers)
    assert request.id == id
    assert body["type"] == "subscription.matched"
    assert body["data"]["subscription"] == {
        "id": "s1",
        "filter": "price < 3300 AND brand = 'Škoda'",
    }
    assert body["data"]["held_back"] == 7
    told = body["data"]["matches"]
    assert [one.get("payload") for one in told] == [{"price": 3200}, "plain ä", None, None]
    assert told[2]["payload_base64"] == "/wA="
    assert states(database) == {id: "sent"}
    assert outcomes(database) == [("sent", 200)]
