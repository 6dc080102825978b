"""Changes of subscriptions in the database of the service."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.delivery import told_to_pipeline
from tamis.errors import TamisError
from tamis.spark.changes import Change
from tamis.spark.database import open_database

if TYPE_CHECKING:
    from tamis.storage import LoggedChange

__all__ = ["ChangeStore"]


class ChangeStore:
    """The change log of a database; ``url`` is that of :class:`~tamis.storage.Database`.

    Of the delivery settings the pipeline gets only those it reads: addresses stay in the
    database.
    """

    def __init__(self, url: str) -> None:
        database = open_database(url)
        from tamis.storage import ChangeLog

        self._log = ChangeLog(database)

    def after(self, sequence: int) -> list[Change]:
        """The changes after a sequence."""
        return [_change_of(one) for one in self._log.after(sequence)]

    def count(self) -> int:
        """How many subscriptions there are."""
        from tamis.storage import SubscriptionStore

        return SubscriptionStore(self._log.database).count()

    def write(self, file: Path) -> None:
        """Write all subscriptions as lines of changes, each with the last sequence there is.

        For a first load: their filters are not read here, but where the lines are.
        """
        from tamis.storage import SubscriptionStore

        sequence, rows = SubscriptionStore(self._log.database).snapshot()
        with file.open("w") as out:
            out.writelines(_line_of(row, sequence) for row in rows)


def _line_of(row: Any, sequence: int) -> str:
    held = {
        "sequence": sequence, "id": row.id, "priority": row.priority, "owner": row.owner,
        "delivery": _told(row.delivery),
    }  # fmt: skip
    if row.lon is not None:
        held |= {"location": [row.lon, row.lat], "radius_m": row.radius_m, "area": row.area}
    return f'{json.dumps(held)[:-1]}, "filter": {row.filter}}}\n'


@lru_cache(maxsize=4_096)
def _told(delivery: str) -> dict[str, Any] | str:
    """What the pipeline reads of the settings in a row; many have the same."""
    try:
        return told_to_pipeline(json.loads(delivery))
    except (TypeError, ValueError):
        return delivery  # for whoever reads the line to tell what is wrong


def _change_of(logged: LoggedChange) -> Change:
    from tamis.storage.saved import subscription_of

    place = f"sequence {logged.sequence}"
    if logged.row is None:
        return Change(logged.sequence, logged.id, None, "", place)
    try:
        held = subscription_of(logged.row)
        plain = replace(held, delivery=told_to_pipeline(held.delivery))
    except (TamisError, TypeError, ValueError) as error:
        text = logged.row.filter
        return Change(logged.sequence, logged.id, None, str(error) or repr(error), place, text)
    return Change(logged.sequence, logged.id, plain, "", place)
