"""The inbox: notifications as their owners read them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, func, select

from tamis.errors import UnknownNotification, quoted
from tamis.storage.database import Database
from tamis.storage.tables import deliveries, notifications

_MOST_NEW = 1_000


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification; ``number`` is the order they became visible in."""

    number: int
    id: str
    subscription_id: str
    owner: str
    priority: int
    due: str
    part: int
    parts: int
    total: int
    n_matches: int
    held_back: int
    matches: list[Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """How far a notification got on one transport."""

    transport: str
    destination: str
    state: str
    attempts: int
    next_at: str
    problem: str | None
    updated_at: str


class Inbox:
    """The notifications in a database; with an ``owner``, as if there were none of others."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def before(
        self,
        number: int | None,
        owner: str | None = None,
        *,
        subscription_id: str | None = None,
        most: int = 100,
    ) -> list[Notification]:
        """The notifications before a number, the newest first."""
        query = select(notifications).order_by(notifications.c.number.desc()).limit(most)
        if number is not None:
            query = query.where(notifications.c.number < number)
        if owner is not None:
            query = query.where(notifications.c.owner == owner)
        if subscription_id is not None:
            query = query.where(notifications.c.subscription_id == subscription_id)
        with self.database.reading() as connection:
            return [_notification(row) for row in connection.execute(query)]

    def after(self, number: int, owner: str | None = None, most: int = 100) -> list[Notification]:
        """The notifications after a number, the oldest first."""
        query = select(notifications).where(notifications.c.number > number)
        if owner is not None:
            query = query.where(notifications.c.owner == owner)
        ordered = query.order_by(notifications.c.number).limit(most)
        with self.database.reading() as connection:
            return [_notification(row) for row in connection.execute(ordered)]

    def get(self, id: str, owner: str | None = None) -> tuple[Notification, list[Delivery]]:
        """A notification, and how far it got."""
        with self.database.reading() as connection:
            row = connection.execute(select(notifications).where(notifications.c.id == id)).first()
            if row is None or owner not in (None, row.owner):
                raise UnknownNotification(f"there is no notification {quoted(id)}")
            query = select(deliveries).where(deliveries.c.notification_id == id)
            found = connection.execute(query.order_by(deliveries.c.transport)).all()
        return _notification(row), [_delivery(one) for one in found]

    def last(self) -> int:
        """The number of the last notification; 0 if there is none."""
        with self.database.reading() as connection:
            return connection.execute(select(func.max(notifications.c.number))).scalar() or 0

    def owners_after(self, number: int) -> dict[str, int]:
        """The owners of the notifications after a number, each with the number of their last."""
        fresh = (
            select(notifications.c.number, notifications.c.owner)
            .where(notifications.c.number > number)
            .order_by(notifications.c.number)
            .limit(_MOST_NEW)
        )
        with self.database.reading() as connection:
            return {owner: last for last, owner in connection.execute(fresh)}


def _notification(row: Row[Any]) -> Notification:
    return Notification(
        row.number, row.id, row.subscription_id, row.owner, row.priority, row.due, row.part,
        row.parts, row.total, row.n_matches, row.held_back, json.loads(row.matches),
    )  # fmt: skip


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        row.transport, row.destination, row.state, row.attempts, row.next_at, row.problem,
        row.updated_at,
    )  # fmt: skip
