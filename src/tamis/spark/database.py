"""An outbox in a database: the table of notifications that the service's sender reads."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.delivery.notification import NOTIFICATION_SCHEMA
from tamis.errors import MissingExtra
from tamis.spark.outbox import OUTBOX_ORDER, name_checkpoint, read_folder

if TYPE_CHECKING:
    from tamis.storage import Database

__all__ = ["DatabaseOutbox", "open_database"]

_JSON_SCHEMA = NOTIFICATION_SCHEMA.set(
    NOTIFICATION_SCHEMA.get_field_index("matches"), pa.field("matches", pa.string(), nullable=False)
)
_COLUMNS = (*NOTIFICATION_SCHEMA.names, "batch")


class DatabaseOutbox:
    """A table ``notifications``; ``url`` is ``sqlite:///path`` or ``postgresql://user@host/name``.

    The columns are those of :data:`~tamis.delivery.NOTIFICATION_SCHEMA`, the number of the
    micro-batch and, as ``number``, the order they became visible in. ``due`` is a text like
    ``2026-01-01T09:00:00.000000Z``, which sorts as the times do; ``matches`` is a JSON text. A
    micro-batch is one transaction, and a notification whose id is there already is passed over. So
    that several pipelines may tell the same subscription, ids depend on the checkpoint, too.
    """

    schema = _JSON_SCHEMA

    def __init__(self, url: str) -> None:
        self.database = open_database(url)
        self._checkpoint = ""

    def prepare(self, checkpoint: Path) -> Path:
        """Every checkpoint will do; what is written aside stays in it."""
        is_of_before = (checkpoint / "offsets").exists() and not (checkpoint / "outbox").exists()
        self._checkpoint = "" if is_of_before else name_checkpoint(checkpoint)
        return checkpoint / "aside"

    def publish(self, batch: int, folder: Path) -> None:
        """Insert the notifications of a micro-batch, those of the highest priority first."""
        table = read_folder(folder, _JSON_SCHEMA)
        at = table.schema.get_field_index("due")
        texts = table["due"].cast(pa.timestamp("us")).cast(pa.string())
        table = table.set_column(at, "due", _as_iso(texts))
        rows = [{**row, "id": self._id(row["id"]), "batch": batch} for row in table.to_pylist()]
        if rows:
            from tamis.storage.outbox import add_notifications

            add_notifications(self.database, rows)

    def _id(self, id: str) -> str:
        """The id of a notification among those of other checkpoints.

        What an unnamed checkpoint of before has told keeps its id: it may be told again.
        """
        if not self._checkpoint:
            return id
        return sha256(f"{self._checkpoint}/{id}".encode()).hexdigest()[: len(id)]

    def read(self) -> list[dict[str, Any]]:
        """All notifications: earlier micro-batches first, in each the highest priority first."""
        from sqlalchemy import select

        from tamis.storage.tables import notifications

        query = select(*(notifications.c[name] for name in _COLUMNS))
        ordered = query.order_by(*(notifications.c[name] for name in ("batch", *OUTBOX_ORDER)))
        with self.database.reading() as connection:
            return [dict(row._mapping) for row in connection.execute(ordered)]


def open_database(url: str) -> Database:
    """A database with our tables; no connection is kept between transactions."""
    try:
        from tamis.storage import Database
    except ImportError as error:
        raise MissingExtra(
            f"a database needs SQLAlchemy and Alembic ({error}). Install them: "
            "pip install 'tamis[spark]'"
        ) from error
    database = Database(url, keep=False)
    database.migrate()
    return database


def _as_iso(texts: pa.ChunkedArray) -> pa.Array:
    return pa.array([text.replace(" ", "T") + "Z" for text in texts.to_pylist()], pa.string())
