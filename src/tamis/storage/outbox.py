"""The outbox: notifications on their way from the pipeline to the sender."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.storage.database import Database
from tamis.storage.statements import upsert
from tamis.storage.tables import notifications


def add_notifications(database: Database, rows: Sequence[dict[str, Any]]) -> None:
    """Write notifications down in one transaction; those that are there already are passed over."""
    with database.writing() as connection:
        statement = upsert(connection, notifications).on_conflict_do_nothing(index_elements=["id"])
        connection.execute(statement, rows)
