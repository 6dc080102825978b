"""The secrets that sign what is sent to the webhooks of an owner."""

from __future__ import annotations

from sqlalchemy import select, update

from tamis.storage.database import Database
from tamis.storage.direct import direct_of
from tamis.storage.owners import count_in, new_webhook_secret
from tamis.storage.tables import owners

__all__ = ["renew_webhook_secret", "webhook_secret"]


def webhook_secret(database: Database, owner: str) -> str:
    """The secret of an owner, who is made if there is none yet."""
    query = select(owners.c.webhook_secret).where(owners.c.owner == owner)
    with database.reading() as connection:
        found: str | None = connection.execute(query).scalar_one_or_none()
    if found is not None:
        return found
    with database.writing() as connection:
        count_in(direct_of(connection), owner, 0)
        made: str = connection.execute(query).scalar_one()
    return made


def renew_webhook_secret(database: Database, owner: str) -> str:
    """Give an owner another secret; what was signed with the old one no longer counts."""
    secret = new_webhook_secret()
    with database.writing() as connection:
        count_in(direct_of(connection), owner, 0)
        connection.execute(
            update(owners).where(owners.c.owner == owner).values(webhook_secret=secret)
        )
    return secret
