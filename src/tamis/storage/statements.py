"""Statements that SQLite and PostgreSQL share and standard SQL does not have."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def upsert(connection: Connection, table: Table) -> Any:
    """An INSERT that can deal with a row that is there already: ``on_conflict_do_…``."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table)
