"""The live index: all subscriptions of the database in memory, followed as they change."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from tamis.errors import StorageUnavailable, TamisError
from tamis.index import Index
from tamis.index.first_use import use_kernels
from tamis.kernels.loading import load_kernels
from tamis.model import Event, Subscription
from tamis.service.logs import log
from tamis.storage import ChangeLog, Database, LoggedChange, SubscriptionStore
from tamis.storage.subscriptions import subscription_of

__all__ = ["LiveIndex"]

_AT_ONCE = 5_000
_CHANGES_AT_ONCE = 1_000  # the index is locked, for those who ask it about one, while it adds them
_LOOK_EVERY_S = 0.25  # also how long the end may have to wait
_PAUSE_S = 0.1  # so that many changes are read at once; who matches looks for them anyway
_REST = 9  # so many times as long as it worked it rests, while an import needs the processor
_AGAIN_S = 0.5  # after the database was away

_is_warm = False  # whether the kernels are there


class LiveIndex:
    """An index of all subscriptions that are not paused; a thread keeps it up to date."""

    def __init__(self, database: Database) -> None:
        self._store, self._log = SubscriptionStore(database), ChangeLog(database)
        self._index = Index()
        self._sequence = -1
        self._lock = threading.Lock()  # of those who change the index
        self._n_imports = 0
        self._n_added = 0  # since they were set aside
        self._ready = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live-index", daemon=True)

    def start(self) -> None:
        """Begin to load."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join()

    @property
    def is_ready(self) -> bool:
        """Whether all subscriptions are loaded."""
        return self._ready.is_set()

    @property
    def sequence(self) -> int:
        """The last change that is in the index; -1 before it is loaded."""
        return self._sequence

    @property
    def index(self) -> Index:
        """The index itself, for those who only read it."""
        return self._index

    def __len__(self) -> int:
        return len(self._index)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While an import runs: most of what it saves is added later, many at once.

        Whoever matches meanwhile still sees all that was saved before. To be entered and left in
        one thread, that of all imports.
        """
        self._n_imports += 1
        try:
            yield
        finally:
            self._n_imports -= 1

    def match(self, event: Event, owner: str | None = None) -> list[str]:
        """The ids of those who would be told, highest priority first; of one owner if given."""
        if not self.is_ready:
            raise StorageUnavailable("the subscriptions are still being loaded; try again")
        self._catch_up()
        ids = self._index.match(event)
        return ids if owner is None else [id for id in ids if self._owner(id) == owner]

    def _owner(self, id: str) -> str | None:
        try:
            return self._index[id].owner
        except KeyError:  # taken away meanwhile
            return None

    def _catch_up(self) -> None:
        """See what was saved before; where the database is away, what is known must do."""
        try:
            last = self._log.last()
            while self._sequence < last:
                self._apply_some()
        except StorageUnavailable as error:
            log.warning("live index", problem=str(error))

    # -- the thread

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                if not self.is_ready:
                    self._load()
                self._follow()
            except StorageUnavailable as error:
                log.warning("live index", problem=str(error))
                self._stopped.wait(_AGAIN_S)

    def _warm_up(self) -> None:
        """Have the kernels loaded or compiled before anybody waits for them, once in a process."""
        global _is_warm
        if _is_warm:
            return
        load_kernels()
        for _ in use_kernels():
            if self._stopped.is_set():
                return
        _is_warm = True

    def _load(self) -> None:
        self._warm_up()
        sequence, held = self._store.snapshot()
        index = Index()
        while chunk := list(islice(held, _AT_ONCE)):
            if self._stopped.is_set():
                held.close()  # type: ignore[attr-defined]
                return
            _add_all(index, chunk)
            _set_aside()
        _set_aside()
        self._index, self._sequence = index, sequence
        self._ready.set()

    def _follow(self) -> None:
        with self._log.watching() as watch:
            while not self._stopped.is_set():
                if watch.wait(self._sequence, _LOOK_EVERY_S) > self._sequence:
                    since = time.monotonic()
                    is_behind = self._apply_some()
                    took = time.monotonic() - since
                    rest = _REST * took if self._n_imports else 0.0
                    self._stopped.wait(rest if is_behind else max(rest, _PAUSE_S))

    def _apply_some(self) -> bool:
        """Apply the next changes; whether there may be more."""
        with self._lock:
            before = self._sequence
            found = self._log.after(before, _CHANGES_AT_ONCE)
            if not found:  # another thread was here first
                return False
            new = [one for one in found if one.row is not None and one.id not in self._index]
            _add_all(self._index, _subscriptions_of(new))
            known = {one.id for one in new}
            for one in found:
                if one.id not in known:
                    self._apply(one)
            self._sequence = found[-1].sequence
            self._n_added += len(found)
            if self._n_added >= _CHANGES_AT_ONCE:
                self._n_added = 0
                _set_aside()
            return self._sequence - before >= _CHANGES_AT_ONCE

    def _apply(self, change: LoggedChange) -> None:
        """Change one that is in the index, or take it away."""
        for held in _subscriptions_of([change]):
            try:
                self._index.update(held)
                return
            except TamisError as error:
                _warn(change.id, error)
        if change.id in self._index:
            self._index.remove(change.id)


def _set_aside() -> None:
    """Spare what there is from being looked through for garbage again and again.

    Nearly all of it stays as long as the service. A full collection of it takes a tenth of a second
    to begin with and seconds with a million subscriptions, and nobody is answered meanwhile; of
    what came since the last time it takes milliseconds.
    """
    gc.collect()
    gc.freeze()


def _subscriptions_of(changes: Iterable[LoggedChange]) -> Iterator[Subscription]:
    """The subscriptions of those that can be read."""
    for change in changes:
        try:
            if change.row is not None:
                yield subscription_of(change.row)
        except TamisError as error:
            _warn(change.id, error)


def _warn(id: str, error: TamisError) -> None:
    log.warning("a subscription cannot be indexed", id=id, problem=str(error))


def _add_all(index: Index, subscriptions: Iterable[Subscription]) -> None:
    chunk = list(subscriptions)
    try:
        index.add_many(chunk)
    except TamisError:  # one of them: the others count
        for one in chunk:
            try:
                index.add(one)
            except TamisError as error:
                _warn(one.id, error)
