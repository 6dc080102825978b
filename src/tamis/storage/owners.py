"""The owners of subscriptions: how many each has, and what signs their webhooks."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from tamis.errors import LimitReached, quoted
from tamis.storage.direct import Direct, statement
from tamis.storage.statements import upsert
from tamis.storage.tables import moment, owners

_COUNT = statement(
    "INSERT INTO owners (owner, webhook_secret, n_subscriptions, created_at) "
    "VALUES (:owner, :webhook_secret, :n_subscriptions, :created_at) ON CONFLICT (owner) DO UPDATE "
    "SET n_subscriptions = owners.n_subscriptions + excluded.n_subscriptions "
    "RETURNING n_subscriptions"
)
_COUNT_OFF = statement(
    "UPDATE owners SET n_subscriptions = n_subscriptions - 1 WHERE owner = :owner"
)


def count_in(direct: Direct, owner: str, change: int, most: int | None = None) -> None:
    """Add to the number of an owner's subscriptions; the owner is made if there is none."""
    values = _counted(owner, change)
    if most is None:
        direct.later(_COUNT, values)
        return
    ((counted,),) = direct.all(_COUNT, values)
    if counted > most:
        raise LimitReached(
            f"this would be subscription {counted:,} of owner {quoted(owner)}, who may have "
            f"{most:,}; delete some first"
        )


def count_off(direct: Direct, owner: str) -> None:
    """Take one from the number of an owner's subscriptions."""
    direct.later(_COUNT_OFF, {"owner": owner})


def count_in_many(connection: Connection, changes: Mapping[str, int]) -> None:
    """``count_in`` for many owners, who may have as many as they like."""
    # In order, so that two who do this at once cannot wait for each other.
    rows = [_counted(owner, change) for owner, change in sorted(changes.items()) if change]
    if not rows:
        return
    made = upsert(connection, owners)
    counted = owners.c.n_subscriptions + made.excluded.n_subscriptions
    connection.execute(
        made.on_conflict_do_update(index_elements=["owner"], set_={"n_subscriptions": counted}),
        rows,
    )


def new_webhook_secret() -> str:
    """A secret in the spelling of the Standard Webhooks specification."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _counted(owner: str, change: int) -> dict[str, Any]:
    return {
        "owner": owner,
        "webhook_secret": new_webhook_secret(),
        "n_subscriptions": change,
        "created_at": moment(),
    }
