"""Pins: which version of the subscriptions a batch is matched with, and when.

One file a batch beside the checkpoint, written once and before the batch is matched, so that a
batch that is replayed is matched with the version and the time it had.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tamis.errors import PipelineError
from tamis.spark.snapshots import read_json, write_json


class Pin(NamedTuple):
    """The version of a batch, and the time all its matches are said to be made at."""

    batch: int
    version: int
    matched_at: np.datetime64


class Pins:
    """A directory of pins."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def get(self, batch: int) -> Pin | None:
        """The pin of a batch, if it has one."""
        held = read_json(self._file(batch))
        if held is None:
            return None
        try:
            moment = np.datetime64(held["matched_at_us"], "us")
            return Pin(batch, int(held["version"]), moment)
        except (KeyError, TypeError, ValueError) as error:
            raise PipelineError(f"the pin {self._file(batch)} is damaged: {error!r}") from None

    def put(self, pin: Pin) -> Pin:
        """Pin a batch; where it is pinned already, that pin stays and is returned."""
        micros = int(pin.matched_at.astype("M8[us]").astype(np.int64))
        made = {"version": pin.version, "matched_at_us": micros}
        try:
            write_json(self._file(pin.batch), made, is_new=True)
        except FileExistsError:
            held = self.get(pin.batch)
            assert held is not None
            return held
        return pin

    def oldest_version(self) -> int | None:
        """The oldest version any pin names."""
        versions = [pin.version for batch in self._batches() if (pin := self.get(batch))]
        return min(versions, default=None)

    def drop_before(self, batch: int) -> None:
        """Forget the pins of batches that are never replayed again."""
        for old in self._batches():
            if old < batch:
                self._file(old).unlink(missing_ok=True)

    def _batches(self) -> list[int]:
        return sorted(int(file.stem) for file in self.path.glob("*.json") if file.stem.isdigit())

    def _file(self, batch: int) -> Path:
        return self.path / f"{batch}.json"
