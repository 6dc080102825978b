"""Answers kept for those who ask twice: what was answered to a request with an Idempotency-Key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, delete, select, update

from tamis.errors import TokenReused, quoted
from tamis.storage.database import Database
from tamis.storage.statements import upsert
from tamis.storage.tables import idempotency, moment

KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Token:
    """The Idempotency-Key of a request: whose it is, and a hash of what was asked for."""

    key_prefix: str
    token: str
    request: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered; without a status nothing was yet."""

    status: int | None
    text: str | None
    asked_at: str


def claim(connection: Connection, token: Token) -> Answer | None:
    """None for the first who asks, who then has to ``keep`` an answer; else what there is.

    In PostgreSQL, one who asks while the transaction of the first is open waits for its end.
    """
    statement = upsert(connection, idempotency).values(
        key_prefix=token.key_prefix, token=token.token, request=token.request, created_at=moment()
    )
    first = statement.on_conflict_do_nothing(index_elements=["key_prefix", "token"])
    row = None
    while row is None:
        if connection.execute(first.returning(idempotency.c.token)).first() is not None:
            return None
        # Whoever was first may just have forgotten it: then this one may be.
        row = connection.execute(select(idempotency).where(_is(token))).one_or_none()
    if row.request != token.request:
        raise TokenReused(
            f"the Idempotency-Key {quoted(token.token)} came with another request before; "
            "use a new one for each request"
        )
    return Answer(row.status, row.answer, row.created_at)


def keep(connection: Connection, token: Token, status: int, text: str) -> None:
    """Keep the answer for those who ask again."""
    answered = update(idempotency).where(_is(token)).values(status=status, answer=text)
    connection.execute(answered)


def forget(connection: Connection, token: Token) -> None:
    """Let the next who asks be the first."""
    connection.execute(delete(idempotency).where(_is(token)))


def forget_old(database: Database, now: datetime | None = None) -> int:
    """Remove the answers that were kept for a day; returns how many."""
    before = moment((now or datetime.now(UTC)) - KEPT)
    with database.writing() as connection:
        return connection.execute(
            delete(idempotency).where(idempotency.c.created_at < before)
        ).rowcount


def _is(token: Token) -> ColumnElement[bool]:
    return and_(idempotency.c.key_prefix == token.key_prefix, idempotency.c.token == token.token)
