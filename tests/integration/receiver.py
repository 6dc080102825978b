"""An HTTP server that takes webhooks, remembers them, and answers as it is told."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Received:
    """A request, and when its body had arrived and its answer was on its way."""

    path: str
    headers: dict[str, str]
    body: bytes
    begun: float
    ended: float = 0.0

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    delay_s: float = 0.0


class Receiver:
    """Answers on a port of the loopback interface; ``answer`` may be set at any time."""

    def __init__(self, certificate: ssl.SSLContext | None = None) -> None:
        self._certificate = certificate
        self.answer: Callable[[Received], Answer] = lambda request: Answer()
        self.received: list[Received] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.received]

    def start(self) -> None:
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._certificate), self._loop
        )
        self._server = started.result(10)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        for writer in self._connections:
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        request = Received(first.split()[1], headers, body, time.monotonic())
        self.received.append(request)
        answer = self.answer(request)
        await asyncio.sleep(answer.delay_s)
        request.ended = time.monotonic()
        told = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        length = f"content-length: {len(answer.body)}\r\n"
        writer.write(f"HTTP/1.1 {answer.status} Said\r\n{told}{length}\r\n".encode() + answer.body)
        await writer.drain()
        return True


@contextmanager
def receiving(certificate: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A server, for as long as it is used."""
    receiver = Receiver(certificate)
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()
