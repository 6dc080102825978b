"""An outbox in a database: one table, in SQLite or PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.delivery.notification import NOTIFICATION_SCHEMA
from tamis.errors import MissingExtra, PipelineError
from tamis.spark.outbox import OUTBOX_ORDER, read_folder

__all__ = ["DatabaseOutbox"]

_JSON_SCHEMA = NOTIFICATION_SCHEMA.set(
    NOTIFICATION_SCHEMA.get_field_index("matches"), pa.field("matches", pa.string(), nullable=False)
)
_CREATE = """
CREATE TABLE IF NOT EXISTS notifications (
    id TEXT PRIMARY KEY,
    subscription_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    priority SMALLINT NOT NULL,
    due TEXT NOT NULL,
    part INTEGER NOT NULL,
    parts INTEGER NOT NULL,
    total INTEGER NOT NULL,
    n_matches INTEGER NOT NULL,
    held_back BIGINT NOT NULL,
    delivery TEXT NOT NULL,
    matches TEXT NOT NULL,
    batch BIGINT NOT NULL
)
"""
_COLUMNS = (*NOTIFICATION_SCHEMA.names, "batch")


class DatabaseOutbox:
    """A table ``notifications``; ``url`` is ``sqlite:///path`` or ``postgresql://user@host/name``.

    The columns are those of :data:`~tamis.delivery.NOTIFICATION_SCHEMA` and the number of the
    micro-batch. ``due`` is a text like ``2026-01-01T09:00:00.000000Z``, which sorts as the times
    do; ``matches`` is a JSON text. A micro-batch is one transaction, and a notification whose id
    is there already is passed over.
    """

    schema = _JSON_SCHEMA

    def __init__(self, url: str) -> None:
        self.url = url
        self._mark = "?" if url.startswith("sqlite:///") else "%s"
        with self._transaction() as cursor:
            cursor.execute(_CREATE)

    def prepare(self, checkpoint: Path) -> Path:
        """Every checkpoint will do; what is written aside stays in it."""
        return checkpoint / "aside"

    def publish(self, batch: int, folder: Path) -> None:
        """Insert the notifications of a micro-batch, those of the highest priority first."""
        table = read_folder(folder, _JSON_SCHEMA)
        at = table.schema.get_field_index("due")
        texts = table["due"].cast(pa.timestamp("us")).cast(pa.string())
        table = table.set_column(at, "due", _as_iso(texts))
        columns = [column.to_pylist() for column in table.columns]
        marks = ", ".join([self._mark] * len(_COLUMNS))
        statement = (
            f"INSERT INTO notifications ({', '.join(_COLUMNS)}) VALUES ({marks}) "
            "ON CONFLICT (id) DO NOTHING"
        )
        with self._transaction() as cursor:
            cursor.executemany(statement, zip(*columns, [batch] * table.num_rows, strict=True))

    def read(self) -> list[dict[str, Any]]:
        """All notifications: earlier micro-batches first, in each the highest priority first."""
        order = ", ".join(("batch", *OUTBOX_ORDER))
        with self._transaction() as cursor:
            cursor.execute(f"SELECT {', '.join(_COLUMNS)} FROM notifications ORDER BY {order}")
            return [dict(zip(_COLUMNS, row, strict=True)) for row in cursor.fetchall()]

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """A cursor whose changes are committed at the end, or none of them if something fails."""
        connection = self._connect()
        try:
            yield connection.cursor()
            connection.commit()
        finally:
            connection.close()

    def _connect(self) -> Any:
        if self.url.startswith("sqlite:///"):
            return sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=60)
        if not self.url.startswith("postgresql://"):
            raise PipelineError(
                f"the outbox {self.url!r} is not known; expected sqlite:///path or "
                "postgresql://user@host/name"
            )
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtra(
                f"PostgreSQL needs psycopg ({error}). Install it: pip install 'tamis[service]'"
            ) from error
        return psycopg.connect(self.url)


def _as_iso(texts: pa.ChunkedArray) -> pa.Array:
    return pa.array([text.replace(" ", "T") + "Z" for text in texts.to_pylist()], pa.string())
