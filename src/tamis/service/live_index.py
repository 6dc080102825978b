"""The live index: all subscriptions of the database in memory, followed as they change."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.errors import StorageUnavailable, UnfinishedChange
from tamis.index import Index
from tamis.index.first_use import use_kernels
from tamis.kernels.loading import load_kernels
from tamis.model import Event
from tamis.service.indexing import Built, apply_changes, caught_up, index_all, set_aside
from tamis.service.logs import log
from tamis.service.saved_index import SavedIndex, end_saving, start_saving
from tamis.storage import ChangeLog, Database, SubscriptionStore

__all__ = ["LiveIndex"]

_CHANGES_AT_ONCE = 1_000  # the index is locked, for those who ask it about one, while it adds them
_LOOK_EVERY_S = 0.25  # also how long the end may have to wait
_PAUSE_S = 0.1  # so that many changes are read at once; who matches looks for them anyway
_REST = 9  # so many times as long as it worked it rests, while an import needs the processor
_AGAIN_S = 0.5  # after the database was away
_MANY = 10_000  # subscriptions, or changes, that take longer to index than a saved index to open
_FAR_BEHIND = 0.1  # the share of the subscriptions that changed before the index is saved anew

_is_warm = False  # whether the kernels are there


class LiveIndex:
    """An index of all subscriptions that are not paused; a thread keeps it up to date.

    If there are many it is saved in a folder from time to time, for the next start.
    """

    def __init__(self, database: Database, folder: Path | None = None) -> None:
        self._database = database
        self._store, self._log = SubscriptionStore(database), ChangeLog(database)
        self._saved = None if folder is None else SavedIndex(folder, self._log)
        self._saving: subprocess.Popen[bytes] | None = None
        self._sequence_saved = 0  # or where it was not worth while, or could not be done
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
        if self._saving is not None:
            end_saving(self._saving)

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
        except UnfinishedChange:  # another thread was broken off, and has it loaded again
            raise StorageUnavailable("the subscriptions are loaded again; try again") from None

    # -- the thread

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                if not self.is_ready:
                    self._load()
                self._follow()
            except (StorageUnavailable, MemoryError) as error:
                log.warning("live index", problem=str(error) or type(error).__name__)
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
        opened = None if self._saved is None else self._saved.open()
        if opened is None and self._saving is None and self._store.count() >= _MANY:
            self._start_saving()
        self._warm_up()
        while self._saving is not None and opened is None and not self._stopped.wait(_PAUSE_S):
            if self._saving.poll() is not None:
                opened, self._saving = self._saved_by(self._saving), None
        built = opened or index_all(self._store, self._stopped.is_set)
        if built is None:
            return
        self._index, self._sequence = built.index, built.sequence
        set_aside()
        self._sequence_saved = self._sequence
        while self._sequence < self._log.last() and not self._stopped.is_set():
            self._apply_some()
        self._ready.set()

    def _follow(self) -> None:
        with self._log.watching() as watch:
            while self.is_ready and not self._stopped.is_set():
                if watch.wait(self._sequence, _LOOK_EVERY_S) > self._sequence:
                    since = time.monotonic()
                    is_behind = self._apply_some()
                    took = time.monotonic() - since
                    rest = _REST * took if self._n_imports else 0.0
                    self._stopped.wait(rest if is_behind else max(rest, _PAUSE_S))
                else:
                    self._save_now_and_then()

    def _apply_some(self) -> bool:
        """Apply the next changes; whether there may be more."""
        with self._lock:
            before = self._sequence
            found = self._log.after(before, _CHANGES_AT_ONCE)
            if not found:  # another thread was here first
                return False
            try:
                apply_changes(self._index, found)
            except BaseException:  # perhaps in the middle of one: the thread loads all again
                self._ready.clear()
                raise
            self._sequence = found[-1].sequence
            self._n_added += len(found)
            if self._n_added >= _CHANGES_AT_ONCE:
                self._n_added = 0
                set_aside()
            return self._sequence - before >= _CHANGES_AT_ONCE

    # -- the saved index

    def _start_saving(self) -> None:
        if self._saved is None:
            return
        try:
            self._saving = start_saving(self._database, self._saved.folder)
        except OSError as error:  # no memory for another process
            log.warning("the index is not saved", problem=str(error))

    def _saved_by(self, process: subprocess.Popen[bytes]) -> Built | None:
        """What a process saved that has ended."""
        process.communicate()  # for its pipe to be closed
        if process.returncode != 0:
            log.warning("nothing was saved", exit_code=process.returncode)
            return None
        return None if self._saved is None else self._saved.open()

    def _save_now_and_then(self) -> None:
        """Have the index saved when much has changed, and go on with what was saved."""
        if self._saving is None:
            n_changes = self._sequence - self._sequence_saved
            if not self._n_imports and n_changes >= max(_MANY, _FAR_BEHIND * len(self._index)):
                self._sequence_saved = self._sequence
                self._start_saving()
        elif self._saving.poll() is not None:
            opened, self._saving = self._saved_by(self._saving), None
            if opened is not None:
                self._go_on_with(opened)

    def _go_on_with(self, opened: Built) -> None:
        """Use another index, which takes less memory as it is mapped from its files."""
        opened = caught_up(opened, self._log)
        with self._lock:
            opened = caught_up(opened, self._log)
            self._index, self._sequence = opened.index, opened.sequence
        set_aside()
