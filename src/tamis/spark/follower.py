"""Follower: turns changes of subscriptions into versions, and keeps what it cannot read."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable

from tamis.errors import SnapshotError, TamisError
from tamis.model import Subscription
from tamis.spark.changes import Change, ChangeSource
from tamis.spark.snapshots import SnapshotStore, problem_of, write_json
from tamis.spark.versions import Version

_logger = logging.getLogger(__name__)

_WAITS_S = (0.2, 1.0, 3.0)


class Follower:
    """Brings a store up to date with a source of changes.

    A change that cannot be read is kept in the folder ``rejected`` of the store, with the
    reason; the subscription stays as it was before.
    """

    def __init__(self, store: SnapshotStore, source: ChangeSource | None) -> None:
        self.store, self.source = store, source

    def refresh(self) -> Version:
        """The version with every change that is committed now."""
        version = self.store.latest()
        if version is None:
            raise SnapshotError(f"the snapshots at {self.store.path} hold no version")
        if self.source is None:
            return version
        changes = self.source.after(version.sequence)
        sequence = max((change.sequence for change in changes), default=0)
        reject(self.store, (change for change in changes if change.problem))
        if sequence <= version.sequence:
            return version
        try:
            return self._apply(latest_of(changes), sequence)
        except SnapshotError:
            raise
        except (TamisError, ValueError):
            # Looked for only now: to try each of them takes as long as to index them all.
            checked = checked_changes(changes)
            if checked == changes:
                raise
        reject(self.store, (change for change in checked if change.problem))
        return self._apply(latest_of(checked), sequence)

    def _apply(self, changes: dict[str, Subscription | None], sequence: int) -> Version:
        """Write a version; a disk that is full for a moment must not stop the stream."""
        for wait_s in _WAITS_S:
            try:
                return self.store.apply(changes, sequence)
            except SnapshotError as error:
                _logger.warning("trying again in %s s: %s", wait_s, error)
                time.sleep(wait_s)
        return self.store.apply(changes, sequence)


def checked_changes(changes: Iterable[Change]) -> list[Change]:
    """The same changes, with the problem of each that can be read and cannot be indexed."""
    return [
        change if change.subscription is None
        else change._replace(problem=problem_of(change.subscription))
        for change in changes
    ]  # fmt: skip


def latest_of(changes: Iterable[Change]) -> dict[str, Subscription | None]:
    """What the last change says of each id; those with a problem say nothing."""
    return {change.id: change.subscription for change in changes if not change.problem}


def reject(store: SnapshotStore, changes: Iterable[Change]) -> None:
    """Keep changes that cannot be read, with the reason, in the folder ``rejected`` of a store."""
    for change in changes:
        # The same change is found again after a restart, and gets the same name.
        name = hashlib.sha256(_as_bytes(f"{change.place}\n{change.text}")).hexdigest()[:24]
        path = store.path / "rejected" / f"{name}.json"
        if path.exists():
            continue
        _logger.warning("a change is rejected (%s): %s", change.place, change.problem)
        kept = {"place": change.place, "reason": change.problem, "change": change.text}
        write_json(path, kept)


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # what was written may be no text at all
