"""Outboxes: where notifications wait for a sender, each there once whatever is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.delivery.notification import NOTIFICATION_SCHEMA
from tamis.errors import PipelineError
from tamis.spark.layers import sync

__all__ = ["OUTBOX_ORDER", "Outbox", "ParquetOutbox", "name_checkpoint", "read_folder"]

OUTBOX_ORDER = ("priority", "due", "subscription_id", "part")
"""The order of the notifications of one micro-batch: the highest priority first."""


class Outbox(Protocol):
    """What the notifier asks of an outbox.

    A micro-batch is written aside first, as Parquet files in a folder, and published from there.
    """

    schema: pa.Schema
    """The columns it wants: NOTIFICATION_SCHEMA, where ``matches`` may be JSON text instead."""

    def prepare(self, checkpoint: Path) -> Path:
        """Get ready for a notifier with that checkpoint; the folder for what is written aside.

        Raises PipelineError if the outbox cannot go with the checkpoint.
        """

    def publish(self, batch: int, folder: Path) -> None:
        """Take over the notifications in the Parquet files of ``folder``, all or none.

        The same micro-batch may be published again, and then changes nothing.
        """


class ParquetOutbox:
    """A folder with one sub-folder ``batch=N`` of Parquet files for each micro-batch that told.

    A sub-folder appears whole, by one rename, and never changes. In each of its files the
    notifications of the highest priority come first.

    The numbers are those of the notifier's checkpoint, so that an outbox belongs to one checkpoint.
    """

    schema = NOTIFICATION_SCHEMA

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.path.mkdir(parents=True, exist_ok=True)

    def prepare(self, checkpoint: Path) -> Path:
        """Check that the outbox belongs to the checkpoint, or make it belong to it if it is new."""
        known, own = checkpoint / "outbox", self.path / "_checkpoint"
        if not known.exists() and not own.exists():
            name_checkpoint(checkpoint)
        is_new = not own.exists() and not any(self.path.glob("batch=*"))
        if known.exists() and is_new:
            own.write_text(known.read_text())
        if not known.exists() or not own.exists() or known.read_text() != own.read_text():
            raise PipelineError(
                f"the outbox {self.path} was filled from another checkpoint than {checkpoint}, and "
                "their micro-batches have the same numbers; use that checkpoint, or a new outbox"
            )
        # In the outbox, so that publishing is a rename; readers pass over a name with _.
        return self.path / "_aside"

    def publish(self, batch: int, folder: Path) -> None:
        """Rename ``folder`` to ``batch=N``, unless that is there already."""
        published = self.path / f"batch={batch}"
        if published.exists():
            return
        # On disk before Spark says that the micro-batch is done, also if the power fails.
        for path in (*folder.glob("*.parquet"), folder):
            sync(path)
        folder.rename(published)
        sync(self.path)

    def read(self) -> pa.Table:
        """All notifications: earlier micro-batches first, in each the highest priority first."""
        folders = sorted(self.path.glob("batch=*"), key=lambda path: int(path.name[6:]))
        tables = [read_folder(folder, NOTIFICATION_SCHEMA) for folder in folders]
        return pa.concat_tables([NOTIFICATION_SCHEMA.empty_table(), *tables])


def name_checkpoint(checkpoint: Path) -> str:
    """Give a notifier's checkpoint a name unlike any other's, where it has none; returns its name.

    It is kept in the checkpoint, and so stays the same wherever that goes.
    """
    known = checkpoint / "outbox"
    if not known.exists():
        checkpoint.mkdir(parents=True, exist_ok=True)
        aside = checkpoint / "outbox.aside"
        aside.write_text(uuid4().hex)
        sync(aside)  # what is told depends on it, also after the power failed
        aside.replace(known)
        sync(checkpoint)
    return known.read_text()


def read_folder(folder: Path, schema: pa.Schema) -> pa.Table:
    """The notifications in the Parquet files of one folder, in the order of an outbox."""
    files = sorted(folder.glob("*.parquet"))
    tables = [pq.ParquetFile(path).read().select(schema.names).cast(schema) for path in files]
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in OUTBOX_ORDER])
