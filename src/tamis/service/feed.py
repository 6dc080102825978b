"""The feed: who waits for notifications is told when there are new ones of their owner."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from tamis.errors import StorageUnavailable
from tamis.service.logs import log
from tamis.storage import Database
from tamis.storage.inbox import Inbox, Notification

__all__ = ["Feed"]

_LOOK_EVERY_S = 0.25
_AT_ONCE = 100


class Feed:
    """Looks for new notifications, once for all who wait."""

    def __init__(self, database: Database) -> None:
        self._inbox = Inbox(database)
        self._last_of: dict[str, int] = {}
        self._last = 0
        self._is_looking = False
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    @property
    def n_waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, and what waits."""
        self._stopped.set()
        self._wake()
        if self._thread.ident is not None:
            self._thread.join()

    async def follow(self, owner: str | None, after: int | None) -> AsyncIterator[Notification]:
        """The notifications of an owner after a number, then the new ones for ever.

        Without a number only the new ones.
        """
        news = asyncio.Event()
        with self._lock:
            self._waiting[news] = asyncio.get_running_loop()
        try:
            # What was there before the thread began to look is found by our own first look.
            while not self._is_looking and not self._stopped.is_set():
                await asyncio.sleep(_LOOK_EVERY_S / 5)
            number = await run_in_threadpool(self._inbox.last) if after is None else after
            while not self._stopped.is_set():
                news.clear()
                page = await run_in_threadpool(self._inbox.after, number, owner, _AT_ONCE)
                for one in page:
                    yield one
                    number = one.number
                while not page and not self._has_news(owner, number):
                    if self._stopped.is_set():
                        return
                    await news.wait()
                    news.clear()
        finally:
            with self._lock:
                self._waiting.pop(news, None)

    def _has_news(self, owner: str | None, number: int) -> bool:
        last = self._last if owner is None else self._last_of.get(owner, 0)
        return last > number

    # -- the thread

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                if not self._is_looking:
                    self._last = self._inbox.last()
                    self._is_looking = True
                self._look()
            except StorageUnavailable as error:
                log.warning("feed", problem=str(error))
            self._stopped.wait(_LOOK_EVERY_S)

    def _look(self) -> None:
        while found := self._inbox.owners_after(self._last):
            self._last_of.update(found)
            self._last = max(found.values())
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            waiting = list(self._waiting.items())
        for news, loop in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(news.set)
