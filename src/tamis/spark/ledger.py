"""The ledger of rate caps on disk: one small Arrow file for each micro-batch that changed it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc

from tamis.delivery.caps import empty_ledger
from tamis.spark.layers import sync

__all__ = ["LedgerStore"]


class LedgerStore:
    """Keeps the ledger of the last micro-batch and of the one before it, which a replay needs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: tuple[int, pa.Table] | None = None

    def before(self, batch: int) -> pa.Table:
        """The ledger as the micro-batches before this one left it."""
        newest = max((number for number in self._numbers() if number < batch), default=None)
        if newest is None:
            return empty_ledger()
        if self._held is None or self._held[0] != newest:
            self._held = newest, ipc.open_file(self._path(newest).read_bytes()).read_all()
        return self._held[1]

    def write(self, batch: int, ledger: pa.Table) -> None:
        """Write what a micro-batch left, atomically; writing it again changes nothing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        older = sorted(number for number in self._numbers() if number < batch)
        aside = self._folder / f"{batch}.aside"
        with ipc.new_file(str(aside), ledger.schema) as file:
            file.write_table(ledger)
        sync(aside)
        aside.replace(self._path(batch))
        sync(self._folder)
        for number in older[:-1]:
            self._path(number).unlink()

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("*.arrow")]

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch}.arrow"
