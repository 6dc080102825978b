"""The delivery log: what became of notifications, and replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, func, select, tuple_, update

from tamis.storage.database import Database
from tamis.storage.outbox import TargetsOf, fan_out_again
from tamis.storage.tables import attempts, deliveries, moment, notifications

_HAS_ADDRESS = deliveries.c.address != ""  # the others never had one to go to
_AT_ONCE = 5_000  # rows a transaction: others write meanwhile


@dataclass(frozen=True, slots=True)
class Listed:
    """A delivery in a list; ``number`` and ``last_time`` are its place there."""

    number: int
    notification_id: str
    subscription_id: str
    transport: str
    destination: str
    attempts: int
    last_error: str | None
    last_time: str


def list_deliveries(
    database: Database, state: str, *, before: tuple[str, int] | None = None, most: int = 100
) -> list[Listed]:
    """Deliveries in a state, the last changed first; those before a time and a number."""
    held = deliveries.c
    query = (
        select(deliveries, notifications.c.subscription_id)
        .join(notifications, notifications.c.id == held.notification_id)
        .where(held.state == state)
        .order_by(held.updated_at.desc(), held.number.desc())
        .limit(most)
    )
    if before is not None:
        query = query.where(tuple_(held.updated_at, held.number) < tuple_(*before))
    with database.reading() as connection:
        return [
            Listed(
                row.number, row.notification_id, row.subscription_id, row.transport,
                row.destination, row.attempts, row.problem, row.updated_at,
            )
            for row in connection.execute(query)
        ]  # fmt: skip


def read_deliveries(
    database: Database, notification_id: str
) -> list[tuple[Row[Any], list[Row[Any]]]]:
    """The deliveries of a notification, each with its attempts, the first ones first."""
    mine = deliveries.c.notification_id == notification_id
    with database.reading() as connection:
        found = connection.execute(select(deliveries).where(mine).order_by(deliveries.c.number))
        tried = connection.execute(
            select(attempts)
            .where(attempts.c.notification_id == notification_id)
            .order_by(attempts.c.number)
        ).all()
        return [(row, [one for one in tried if one.delivery == row.number]) for row in found]


def replay(
    database: Database, id: str, targets_of: TargetsOf, *, now: datetime, max_age: timedelta
) -> int:
    """Send a notification again, to where its subscription says now; how many deliveries wait.

    What is being sent at this moment is left alone. A notification that is not there has none.
    """
    with database.writing() as connection:
        fan_out_again(connection, id, targets_of, now, max_age)
        ended = deliveries.c.state.in_(("sent", "dead", "skipped"))
        _wait_again(connection, now, max_age, deliveries.c.notification_id == id, ended)
        waiting = select(func.count()).where(
            deliveries.c.notification_id == id, deliveries.c.state == "waiting"
        )
        return int(connection.execute(waiting).scalar_one())


def replay_dead(
    database: Database,
    *,
    now: datetime,
    max_age: timedelta,
    owner: str | None = None,
    destination: str | None = None,
    ids: Sequence[str] | None = None,
) -> int:
    """Try dead deliveries again: all, of an owner, to a destination, of notifications; how many.

    They are taken some thousand at a time. What dies again meanwhile is left.
    """
    held = deliveries.c
    which = [held.state == "dead", held.updated_at <= moment(now)]
    if owner is not None:
        which.append(held.owner == owner)
    if destination is not None:
        which.append(held.destination == destination)
    if ids is not None:
        which.append(held.notification_id.in_(ids))
    some = select(held.number).where(_HAS_ADDRESS, *which).limit(_AT_ONCE)
    n_replayed = 0
    while True:
        with database.writing() as connection:
            changed = _wait_again(connection, now, max_age, held.number.in_(some))
        n_replayed += changed
        if not changed:
            return n_replayed


def _wait_again(connection: Connection, now: datetime, max_age: timedelta, *which: Any) -> int:
    at = moment(now)
    waiting = {
        "state": "waiting",
        "attempts": 0,
        "next_at": at,
        "expires_at": moment(now + max_age),
        "problem": None,
        "updated_at": at,
    }
    changed = connection.execute(update(deliveries).where(_HAS_ADDRESS, *which).values(waiting))
    return changed.rowcount
