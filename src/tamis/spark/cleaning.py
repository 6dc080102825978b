"""Cleaning the match log: old matches go once every query that reads them has passed them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from tamis.errors import PipelineError
from tamis.spark.match_log import MatchLog
from tamis.spark.passed import PassedFiles

_logger = logging.getLogger(__name__)

_EVERY_S = 10.0


class LogCleaner:
    """Removes from a match log what is older than ``keep`` and all readers have passed.

    ``readers`` are the checkpoints of the queries that read it. One that was never started has
    passed nothing.
    """

    def __init__(self, log: MatchLog, readers: Sequence[Path], keep: timedelta) -> None:
        self._log, self._keep = log, keep
        self._readers = [PassedFiles(reader) for reader in readers]
        self._passed: list[set[str]] = [set() for _ in readers]
        self._next = 0.0

    def clean(self, before: int) -> None:
        """Remove what can go of the batches before one; does nothing if it was done just now."""
        if time.monotonic() < self._next:
            return
        try:
            for reader, passed in zip(self._readers, self._passed, strict=True):
                passed.update(reader.more())
            self._log.clean(self._is_passed, before, self._keep)
            self._forget()
        except (OSError, ValueError, PipelineError) as error:
            # What is not removed costs space; it is no reason to stop.
            _logger.warning("the match log is not cleaned: %s", error)
        self._next = time.monotonic() + _EVERY_S

    def _is_passed(self, name: str) -> bool:
        return all(name in passed for passed in self._passed)

    def _forget(self) -> None:
        there = {file.name for file in self._log.path.glob("batch=*/matches-*.parquet")}
        for passed in self._passed:
            passed &= there
