"""A receiver of webhooks: what was told to whom, how often, and how late."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Pair = tuple[str, str]


@dataclass(slots=True)
class Told:
    """(event, subscription) with the notification that told it first, and when."""

    by: dict[Pair, str] = field(default_factory=dict)
    at: dict[Pair, float] = field(default_factory=dict)
    n_requests: int = 0
    n_repeated: int = 0  # the same notification again, as a sender that was killed may do
    twice: list[Pair] = field(default_factory=list)  # in two notifications, which must not be
    _seen: set[str] = field(default_factory=set)

    def take(self, notification: str, body: bytes) -> None:
        """Take down a request."""
        self.n_requests += 1
        if notification in self._seen:
            self.n_repeated += 1
            return
        self._seen.add(notification)
        data, now = json.loads(body)["data"], monotonic()
        for match in data["matches"]:
            pair = (match["event_id"], data["subscription"]["id"])
            if pair in self.by:
                self.twice.append(pair)
            self.by[pair], self.at[pair] = notification, now


@contextmanager
def receiving(told: Told) -> Iterator[str]:
    """The address of a server that takes down what it is told, for as long as it is used."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="receiver")
    thread.start()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
                lines = (line.partition(":") for line in head.split("\r\n")[1:])
                fields = {name.lower(): value.strip() for name, _, value in lines}
                body = await reader.readexactly(int(fields["content-length"]))
                told.take(fields["webhook-id"], body)
                writer.write(_ANSWER)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the sender has closed it or was killed, or all is over
        finally:
            writer.close()

    starting = asyncio.start_server(answer, "127.0.0.1", 0)
    server = asyncio.run_coroutine_threadsafe(starting, loop).result(10)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    under_way = asyncio.all_tasks() - {asyncio.current_task()}
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
