"""What the tests of the sender share: notifications to send, and a clock that can be set."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from tamis import Subscription
from tamis.delivery import notification_id
from tamis.service.sending import Sender, SenderSettings
from tamis.service.sending.transports.webhook import WebhookTransport
from tamis.storage import Database, Saved, SubscriptionStore
from tamis.storage.outbox import add_notifications
from tamis.storage.tables import attempts, deliveries, moment
from tests.integration.receiver import Answer, receiving

CERTIFICATES = ssl.create_default_context()  # reading them takes long
LOOPBACK = {"webhook": {"allow_networks": ["127.0.0.0/8"]}}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


def subscribe(
    database: Database, id: str, delivery: dict[str, Any], *, owner: str = "zoe", priority: int = 5
) -> None:
    filter = "price < 3300 AND brand = 'Škoda'"
    given = Subscription(id, filter, priority, owner, delivery)
    SubscriptionStore(database).create(Saved(given, filter))


def notify(
    database: Database,
    subscription: str,
    n: int = 1,
    *,
    owner: str = "zoe",
    priority: int = 5,
    first: int = 0,
    batch: int = 1,
    matches: list[dict[str, Any]] | None = None,
    **changed: Any,
) -> list[str]:
    """Put notifications into the outbox as the pipeline does; their ids."""
    told = [a_match()] if matches is None else matches
    rows = [
        {
            "id": notification_id(subscription, number, 1),
            "subscription_id": subscription,
            "owner": owner,
            "priority": priority,
            "due": moment(),
            "part": 1,
            "parts": 1,
            "total": len(told),
            "n_matches": len(told),
            "held_back": 0,
            "delivery": "",
            "matches": json.dumps(told),
            "batch": batch,
            **changed,
        }
        for number in range(first, first + n)
    ]
    add_notifications(database, rows)
    return [row["id"] for row in rows]


def a_match(payload: bytes = b'{"price": 3200}', id: str = "e1") -> dict[str, Any]:
    return {
        "priority": 5,
        "event_time": "2026-01-01T09:00:00.000000Z",
        "event_id": id,
        "matched_at": "2026-01-01T09:00:00.500000Z",
        "payload": base64.b64encode(payload).decode(),
    }


def settings(**changed: Any) -> SenderSettings:
    return SenderSettings.model_validate({**LOOPBACK, **changed})


def send_due(
    database: Database, given: SenderSettings, clock: Clock, transports: Any = None
) -> int:
    """Send what is due, by a sender of its own; how many were tried."""

    async def run() -> int:
        made = transports or {"webhook": WebhookTransport(given, certificates=CERTIFICATES)}
        sender = Sender(database, given, made, clock=clock)
        try:
            return await sender.send_due()
        finally:
            await sender.close()

    return asyncio.run(run())


def give_up(database: Database, n: int, *, clock: Clock | None = None) -> list[str]:
    """So many notifications of subscription s1 that nobody wants; their ids."""
    with receiving() as receiver:
        receiver.answer = lambda request: Answer(410)
        subscribe(database, "s1", {"webhook": f"{receiver.url}/hook?token=geheim"})
        ids = notify(database, "s1", n)
        send_due(database, settings(), clock or Clock())
    return ids


def states(database: Database) -> dict[str, str]:
    """The states of deliveries by the ids of their notifications."""
    with database.reading() as connection:
        rows = connection.execute(select(deliveries.c.notification_id, deliveries.c.state)).all()
    return {row.notification_id: row.state for row in rows}


def rows_of(database: Database, table: Any) -> list[Any]:
    with database.reading() as connection:
        return list(connection.execute(select(table).order_by(table.c.number)))


def outcomes(database: Database) -> list[tuple[str, int | None]]:
    """What came of the attempts, in their order."""
    return [(row.outcome, row.status) for row in rows_of(database, attempts)]
