"""Indexing: the subscriptions of a database into an index, at first all, then what changes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Row

from tamis.errors import TamisError, UnfinishedChange
from tamis.index import Index
from tamis.model import Subscription
from tamis.service.logs import log
from tamis.storage import ChangeLog, LoggedChange, SubscriptionStore
from tamis.storage.saved import subscription_of

__all__ = ["Built", "apply_changes", "caught_up", "index_all", "set_aside"]

_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Built:
    """An index, and the sequence of the last change that is in it for sure."""

    index: Index
    sequence: int


def index_all(
    store: SubscriptionStore, is_stopped: Callable[[], bool] = lambda: False
) -> Built | None:
    """The index of all subscriptions that are not paused; None if stopped.

    One that cannot be indexed is left out, with a warning.
    """
    sequence, rows = store.snapshot()
    index = Index()
    while chunk := list(islice(rows, _AT_ONCE)):
        if is_stopped():
            rows.close()
            return None
        _add_all(index, _subscriptions_of(chunk))
        set_aside()
    return Built(index, sequence)


def caught_up(built: Built, changes: ChangeLog) -> Built:
    """The same index with all that has changed since."""
    index, sequence = built.index, built.sequence
    while found := changes.after(sequence, _AT_ONCE):
        apply_changes(index, found)
        sequence = found[-1].sequence
    return Built(index, sequence)


def apply_changes(index: Index, found: Sequence[LoggedChange]) -> None:
    """Make an index what changes say; those that are in it already change nothing."""
    new = [one for one in found if one.row is not None and one.id not in index]
    _add_all(index, _subscriptions_of([one.row for one in new]))
    known = {one.id for one in new}
    for one in found:
        if one.id not in known:
            _apply(index, one)


def set_aside() -> None:
    """Spare what there is from being looked through for garbage again and again.

    Nearly all of it stays as long as the service. A full collection of it takes a tenth of a second
    to begin with and seconds with a million subscriptions, and nobody is answered meanwhile; of
    what came since the last time it takes milliseconds.
    """
    gc.collect()
    gc.freeze()


def _apply(index: Index, change: LoggedChange) -> None:
    """Change one that is in the index, or take it away."""
    for held in _subscriptions_of([change.row]):
        try:
            index.update(held)
            return
        except UnfinishedChange:
            raise  # this index takes no changes any more
        except TamisError as error:
            _warn(change.id, error)
    if change.id in index:
        index.remove(change.id)


def _subscriptions_of(rows: Iterable[Row[Any] | None]) -> Iterator[Subscription]:
    """The subscriptions of those that can be read; where they are told is nothing to an index."""
    for row in rows:
        if row is None:
            continue
        try:
            yield subscription_of(row, with_delivery=False)
        except TamisError as error:
            _warn(row.id, error)


def _warn(id: str, error: TamisError) -> None:
    log.warning("a subscription cannot be indexed", id=id, problem=str(error))


def _add_all(index: Index, subscriptions: Iterable[Subscription]) -> None:
    chunk = list(subscriptions)
    try:
        index.add_many(chunk)
    except UnfinishedChange:
        raise
    except TamisError:  # one of them: the others count
        for one in chunk:
            try:
                index.add(one)
            except TamisError as error:
                _warn(one.id, error)
