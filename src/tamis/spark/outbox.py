"""Outboxes: where notifications wait for a sender, each there once whatever is replayed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from tamis.delivery.notification import NOTIFICATION_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Outbox", "ParquetOutbox"]


class Outbox(Protocol):
    """What the notifier asks of an outbox.

    A micro-batch is written aside first, to a folder inside ``aside``, and published from there.
    """

    @property
    def aside(self) -> Path:
        """Where micro-batches are written before they are published."""

    def publish(self, batch: int, folder: Path) -> None:
        """Take over the notifications in the Parquet files of ``folder``, all or none.

        The same micro-batch may be published again, and then changes nothing.
        """


class ParquetOutbox:
    """A folder with one sub-folder ``batch=N`` of Parquet files for each micro-batch that told.

    A sub-folder appears whole, by one rename, and never changes. Its files hold the notifications
    with the highest priority first.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.path.mkdir(parents=True, exist_ok=True)

    @property
    def aside(self) -> Path:
        """In the same folder, so that publishing is a rename; readers pass over a name with _."""
        return self.path / "_aside"

    def publish(self, batch: int, folder: Path) -> None:
        """Rename ``folder`` to ``batch=N``, unless that is there already."""
        published = self.path / f"batch={batch}"
        if published.exists():
            return
        folder.rename(published)

    def read(self) -> pa.Table:
        """All notifications, those of earlier micro-batches and of higher priority first."""
        folders = sorted(self.path.glob("batch=*"), key=lambda path: int(path.name[6:]))
        tables = [_sorted(read_folder(folder)) for folder in folders]
        return pa.concat_tables([NOTIFICATION_SCHEMA.empty_table(), *tables])


def read_folder(folder: Path) -> pa.Table:
    """The notifications in the Parquet files of one folder."""
    files = sorted(str(path) for path in folder.glob("*.parquet"))
    return ds.dataset(files, schema=NOTIFICATION_SCHEMA, format="parquet").to_table()


def _sorted(table: pa.Table) -> pa.Table:
    order = ("priority", "due", "subscription_id", "part")
    return table.sort_by([(name, "ascending") for name in order])
