"""Changes of subscriptions in the database of the service."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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


def _change_of(logged: LoggedChange) -> Change:
    from tamis.storage.subscriptions import subscription_of

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
