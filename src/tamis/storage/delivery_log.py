"""The delivery log: what became of notifications, replays, and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from tamis.storage.database import Database
from tamis.storage.outbox import TargetsOf, fan_out_again
from tamis.storage.tables import attempts, circuits, deliveries, moment


@dataclass(frozen=True, slots=True)
class Figures:
    """How deliveries stand: how many in each state, the oldest that is overdue, and outcomes.

    ``outcomes`` counts the attempts that are still kept, by transport and outcome.
    """

    states: Mapping[str, int]
    oldest_waiting_s: float
    outcomes: Mapping[tuple[str, str], int]
    resting_destinations: int


def read_figures(database: Database, now: datetime) -> Figures:
    """The figures of a moment."""
    at = moment(now)
    overdue = select(func.min(deliveries.c.next_at)).where(
        deliveries.c.state == "waiting", deliveries.c.next_at <= at
    )
    resting = select(func.count()).select_from(circuits).where(circuits.c.open_until > at)
    with database.reading() as connection:
        states = connection.execute(_count(deliveries.c.state)).all()
        told = connection.execute(_count(attempts.c.transport, attempts.c.outcome)).all()
        oldest = connection.execute(overdue).scalar_one()
        n_resting = connection.execute(resting).scalar_one()
    waited = timedelta() if oldest is None else now - datetime.fromisoformat(oldest)
    outcomes = {(transport, outcome): count for transport, outcome, count in told}
    by_state = {row[0]: row[1] for row in states}
    return Figures(by_state, waited.total_seconds(), outcomes, n_resting)


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
) -> int:
    """Try dead deliveries again: all, those of an owner, those to a destination; how many."""
    which = [deliveries.c.state == "dead"]
    if owner is not None:
        which.append(deliveries.c.owner == owner)
    if destination is not None:
        which.append(deliveries.c.destination == destination)
    with database.writing() as connection:
        return _wait_again(connection, now, max_age, *which)


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
    has_address = deliveries.c.address != ""  # the others never had one to go to
    changed = connection.execute(update(deliveries).where(has_address, *which).values(waiting))
    return changed.rowcount


def _count(*columns: Any) -> Any:
    return select(*columns, func.count()).group_by(*columns)
