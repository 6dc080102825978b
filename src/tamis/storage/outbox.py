"""The outbox: notifications on their way from the pipeline to the sender."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, select, text, update

from tamis.errors import InvalidDelivery
from tamis.storage.database import Database
from tamis.storage.statements import upsert
from tamis.storage.tables import counters, deliveries, moment, notifications, subscriptions

_ADDING = 0x74616D69  # the lock of those who add, in PostgreSQL
_FANNED_OUT = counters.c.name == "fanned_out"


class Target(NamedTuple):
    """Where a notification goes: by which transport, to which address.

    ``destination`` names what fails together: two addresses on one host have the same.
    """

    transport: str
    address: str
    destination: str


TargetsOf = Callable[[Mapping[str, Any]], Sequence[Target]]
"""Reads the targets from delivery settings; raises InvalidDelivery where it cannot."""


def add_notifications(database: Database, rows: Sequence[dict[str, Any]]) -> None:
    """Write notifications down in one transaction; those that are there already are passed over.

    Numbers become visible in their order, so who has seen one has seen all before it.
    """
    with database.writing() as connection:
        if not database.is_sqlite:  # where numbers are drawn before they are committed
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_ADDING})"))
        statement = upsert(connection, notifications).on_conflict_do_nothing(index_elements=["id"])
        connection.execute(statement, rows)


def fan_out(
    database: Database,
    targets_of: TargetsOf,
    *,
    now: datetime,
    max_age: timedelta,
    most: int = 1_000,
) -> int:
    """Make deliveries of new notifications, at most so many, and say of how many.

    The settings are those the subscription has now. One that is gone or paused is told nothing;
    that is written down as a delivery that was skipped.
    """
    with database.reading() as connection:
        if not _waiting(connection):
            return 0
    with database.writing() as connection:
        last = connection.execute(
            select(counters.c.last).where(_FANNED_OUT).with_for_update()
        ).scalar_one()
        query = _with_settings().where(notifications.c.number > last)
        found = connection.execute(query.order_by(notifications.c.number).limit(most)).all()
        if found:
            made = [row for one in found for row in _rows(one, targets_of, now, max_age)]
            add_deliveries(connection, made)
            connection.execute(update(counters).where(_FANNED_OUT).values(last=found[-1].number))
    return len(found)


def fan_out_again(
    connection: Connection, id: str, targets_of: TargetsOf, now: datetime, max_age: timedelta
) -> bool:
    """Make the deliveries of a notification that it would have today; whether it exists."""
    row = connection.execute(_with_settings().where(notifications.c.id == id)).first()
    if row is not None:
        add_deliveries(connection, _rows(row, targets_of, now, max_age))
    return row is not None


def add_deliveries(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Write deliveries down; those that are there already are passed over."""
    if rows:
        key = ["notification_id", "transport", "address"]
        connection.execute(
            upsert(connection, deliveries).on_conflict_do_nothing(index_elements=key), rows
        )


def _waiting(connection: Connection) -> bool:
    last = select(counters.c.last).where(_FANNED_OUT).scalar_subquery()
    newest = select(func.max(notifications.c.number)).scalar_subquery()
    return bool(connection.execute(select(func.coalesce(newest, 0) > last)).scalar_one())


def _with_settings() -> Any:
    told = notifications.c
    current = subscriptions.c
    return select(
        told.number, told.id, told.owner, told.priority,
        current.delivery, current.is_paused, current.owner.label("current_owner"),
    ).select_from(
        notifications.outerjoin(subscriptions, told.subscription_id == current.id)
    )  # fmt: skip


def _rows(
    row: Row[Any], targets_of: TargetsOf, now: datetime, max_age: timedelta
) -> list[dict[str, Any]]:
    state, problem, targets = _judge(row, targets_of)
    at = moment(now)
    return [
        {
            "notification_id": row.id,
            "transport": target.transport,
            "address": target.address,
            "destination": target.destination,
            "owner": row.owner,
            "priority": row.priority,
            "state": state,
            "attempts": 0,
            "next_at": at,
            "expires_at": moment(now + max_age),
            "problem": problem,
            "created_at": at,
            "updated_at": at,
        }
        for target in targets
    ]


def _judge(row: Row[Any], targets_of: TargetsOf) -> tuple[str, str | None, Sequence[Target]]:
    """The state its deliveries begin in, why, and where they go."""
    problem = why_not_told(row)
    if problem is not None:
        return "skipped", problem, [_NOWHERE]
    try:
        return "waiting", None, targets_of(json.loads(row.delivery))
    except InvalidDelivery as error:
        return "dead", str(error), [_NOWHERE]


def why_not_told(row: Row[Any]) -> str | None:
    """Why the subscription of a notification is told nothing; None if it is.

    ``row`` has the notification's ``owner``, and the subscription's ``is_paused`` and
    ``current_owner``, which are None where it is gone.
    """
    if row.is_paused is None or row.current_owner != row.owner:
        return "the subscription was deleted"
    return "the subscription is paused" if row.is_paused else None


_NOWHERE = Target("none", "", "")
