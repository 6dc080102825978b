"""Statements that SQLite and PostgreSQL share and standard SQL does not have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sqlalchemy import Connection, Table


def upsert(connection: Connection, table: Table) -> Any:
    """An INSERT that can deal with a row that is there already: ``on_conflict_do_…``."""
    # The dialect of the connection is there already; the other one takes long to import.
    return import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert(table)
