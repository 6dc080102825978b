"""Retention: what was delivered is forgotten after a while, and what is too old is given up."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import and_, delete, exists, func, or_, select, update

from tamis.storage.database import Database
from tamis.storage.tables import attempts, counters, deliveries, moment, notifications


def expire(database: Database, now: datetime, most: int = 1_000) -> int:
    """Give up deliveries that waited too long, at most so many; how many there were."""
    at = moment(now)
    old = select(deliveries.c.number).where(
        deliveries.c.state == "waiting", deliveries.c.expires_at <= at
    )
    with database.writing() as connection:
        numbers = connection.execute(
            old.limit(most).with_for_update(skip_locked=True)
        ).scalars().all()  # fmt: skip
        why = func.coalesce("too old; the last problem: " + deliveries.c.problem, "too old")
        connection.execute(
            update(deliveries)
            .where(deliveries.c.number.in_(numbers))
            .values(state="dead", problem=why, updated_at=at)
        )
    return len(numbers)


def remove_old(
    database: Database, before: datetime, dead_before: datetime, most: int = 1_000
) -> int:
    """Remove what ended before a moment, at most so many of each; how many rows there were.

    Dead deliveries have a moment of their own. Notifications go when their deliveries are gone,
    but never those of the newest micro-batch: the pipeline may repeat it.
    """
    ended = or_(
        and_(deliveries.c.state.in_(("sent", "skipped")), deliveries.c.updated_at < moment(before)),
        and_(deliveries.c.state == "dead", deliveries.c.updated_at < moment(dead_before)),
    )
    oldest = min(before, dead_before)
    newest = select(func.max(notifications.c.batch)).scalar_subquery()
    fanned_out = select(counters.c.last).where(counters.c.name == "fanned_out").scalar_subquery()
    told = and_(
        notifications.c.due < moment(before),
        notifications.c.batch < newest,
        notifications.c.number <= fanned_out,
        ~exists().where(deliveries.c.notification_id == notifications.c.id),
    )
    n_removed = 0
    for table, which in (
        (deliveries, ended),
        (attempts, attempts.c.at < moment(oldest)),
        (notifications, told),
    ):
        some = select(table.c.number).where(which).limit(most)
        with database.writing() as connection:
            n_removed += connection.execute(delete(table).where(table.c.number.in_(some))).rowcount
    return n_removed
