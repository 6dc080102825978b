"""The live index: all subscriptions of the database in memory, followed as they change."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import islice

from tamis.errors import StorageUnavailable, TamisError
from tamis.index import Index
from tamis.kernels.loading import load_kernels
from tamis.model import Event, Subscription
from tamis.service.logs import log
from tamis.storage import ChangeLog, Database, LoggedChange, SubscriptionStore
from tamis.storage.subscriptions import subscription_of

__all__ = ["LiveIndex"]

_AT_ONCE = 5_000
_LOOK_EVERY_S = 0.25  # also how long the end may have to wait
_PAUSE_S = 0.1  # so that many changes are read at once; who matches looks for them anyway
_AGAIN_S = 0.5  # after the database was away


class LiveIndex:
    """An index of all subscriptions that are not paused; a thread keeps it up to date."""

    def __init__(self, database: Database) -> None:
        self._store, self._log = SubscriptionStore(database), ChangeLog(database)
        self._index = Index()
        self._sequence = -1
        self._lock = threading.Lock()  # of those who change the index
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
            self._apply_new()
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

    def _load(self) -> None:
        sequence, held = self._store.snapshot()
        index = Index()
        while chunk := list(islice(held, _AT_ONCE)):
            if self._stopped.is_set():
                held.close()  # type: ignore[attr-defined]
                return
            _add_all(index, chunk)
        _warm_up()
        self._index, self._sequence = index, sequence
        self._ready.set()

    def _follow(self) -> None:
        with self._log.watching() as watch:
            while not self._stopped.is_set():
                if watch.wait(self._sequence, _LOOK_EVERY_S) > self._sequence:
                    self._apply_new()
                    self._stopped.wait(_PAUSE_S)

    def _apply_new(self) -> None:
        if self._log.last() == self._sequence:
            return
        with self._lock:
            for change in self._log.after(self._sequence):
                self._apply(change)
                self._sequence = change.sequence

    def _apply(self, change: LoggedChange) -> None:
        index = self._index
        try:
            if change.row is not None:
                held = subscription_of(change.row)
                (index.update if held.id in index else index.add)(held)
                return
        except TamisError as error:
            log.warning("a subscription cannot be indexed", id=change.id, problem=str(error))
        if change.id in index:
            index.remove(change.id)


def _warm_up() -> None:
    """Have the kernels loaded or compiled before anybody waits for them."""
    load_kernels()
    index = Index()
    index.add(Subscription("first", "x < 1 AND y = 'a'"))
    index.match({"x": 0, "y": "a"})


def _add_all(index: Index, subscriptions: Iterable[Subscription]) -> None:
    chunk = list(subscriptions)
    try:
        index.add_many(chunk)
    except TamisError:  # one of them: the others count
        for one in chunk:
            try:
                index.add(one)
            except TamisError as error:
                log.warning("a subscription cannot be indexed", id=one.id, problem=str(error))
