"""A sender at work: with the transports of its settings, in this thread or in one of its own."""

from __future__ import annotations

import asyncio
import threading

from tamis.errors import TamisError
from tamis.service.sending.sender import Sender
from tamis.service.sending.settings import SenderSettings
from tamis.service.sending.transports import make_transports
from tamis.storage import Database

__all__ = ["RunningSender", "make_sender", "start_sender"]

_START_WITHIN_S = 30.0


def make_sender(database: Database, settings: SenderSettings) -> Sender:
    """A sender with all transports that its settings allow; to be called where it will run."""
    return Sender(database, settings, make_transports(settings))


class RunningSender:
    """A sender in a thread of its own, so that it holds up nobody."""

    def __init__(self, database: Database, settings: SenderSettings) -> None:
        self._database, self._settings = database, settings
        self._started = threading.Event()
        self._sender: Sender | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="tamis-sender")

    def start(self) -> None:
        """Start, and wait until it has."""
        self._thread.start()
        if not self._started.wait(_START_WITHIN_S) or self._sender is None:
            raise TamisError("the sender did not start; its log says why")

    def stop(self) -> None:
        """Stop, when what is under way is done."""
        if self._loop is not None and self._sender is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._sender.stop)
        self._thread.join()

    def is_running(self) -> bool:
        """Whether it is at work."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            asyncio.run(self._send())
        finally:
            self._started.set()

    async def _send(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._sender = make_sender(self._database, self._settings)
        self._started.set()
        await self._sender.run()


def start_sender(database: Database, settings: SenderSettings | None = None) -> RunningSender:
    """Start a sender beside whatever this process does; ``stop`` it in the end."""
    running = RunningSender(database, settings or SenderSettings())
    running.start()
    return running
