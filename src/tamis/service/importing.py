"""An import while it runs: lines come in, are read by other processes, saved, and told of.

What is told goes through a file in between, so that a client that sends everything before it
reads anything does not stop the import, nor fill the memory.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter, deque
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tamis.errors import TamisError
from tamis.service.live_index import LiveIndex
from tamis.service.metrics import Metrics
from tamis.service.problems import BadRequest, problem_of
from tamis.storage.imports import (
    FEW_LINES,
    LINES_AT_ONCE,
    Batch,
    Importer,
    LineReader,
    Result,
    reading_pool,
)

__all__ = ["DuplexResponse", "Import"]

_IN_MEMORY = 1_048_576
_AT_ONCE = 65_536
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class DuplexResponse(Response):
    """An answer that is sent while the body of its request still comes in.

    Starlette's own for streams waits for the end of the connection meanwhile, and so takes parts
    of the body that are not meant for it.
    """

    def __init__(self, parts: AsyncIterator[bytes], media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer; it begins when its first part is there, and so after the request."""
        is_begun = False
        async for part in self._parts:
            if not is_begun:
                head = {"status": self.status_code, "headers": self.raw_headers}
                await send({"type": "http.response.start", **head})
                is_begun = True
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Import:
    """One import."""

    def __init__(
        self,
        reader: LineReader,
        importer: Importer,
        index: LiveIndex,
        metrics: Metrics,
        *,
        only_errors: bool,
    ) -> None:
        self._reader, self._importer = reader, importer
        self._index, self._metrics = index, metrics
        self._only_errors = only_errors
        self._counts: Counter[str] = Counter()
        self._n_lines = 0
        self._spool: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (closed by run)
        self._written = 0
        self._news = asyncio.Event()
        self._is_over = False
        self._cut: BadRequest | None = None  # why not all of the body was read

    async def run(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """What is told of the lines of a body, while it comes in."""
        work = asyncio.create_task(self._work(body))
        told = 0
        try:
            while True:
                self._news.clear()
                is_over = self._is_over
                while told < self._written:
                    self._spool.seek(told)
                    part = self._spool.read(min(_AT_ONCE, self._written - told))
                    told += len(part)
                    yield part
                if is_over:
                    break
                await self._news.wait()
            await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            self._spool.close()

    async def _work(self, body: AsyncIterator[bytes]) -> None:
        try:
            with self._index.resting():
                await self._save_all(body)
            self._tell(_line({"summary": self._summary()}))
        except ClientDisconnect:
            pass  # nobody is there to be told; what came in whole chunks is saved
        except TamisError as error:
            # The answer has begun, so its status cannot say it any more.
            self._tell(_line({"problem": problem_of(error), "summary": self._summary()}))
        finally:
            self._is_over = True
            self._news.set()

    def _summary(self) -> dict[str, int]:
        return {
            "lines": self._n_lines, "created": self._counts["created"],
            "replaced": self._counts["replaced"], "errors": self._counts["error"],
        }  # fmt: skip

    async def _save_all(self, body: AsyncIterator[bytes]) -> None:
        """Read and save in the order of the lines; the first ones without other processes."""
        pool: ProcessPoolExecutor | None = None
        n_processes = min(os.cpu_count() or 1, 4)
        waiting: deque[asyncio.Future[Batch]] = deque()
        loop = asyncio.get_running_loop()
        number = 1
        try:
            async for lines in self._chunks(body):
                if number > FEW_LINES and pool is None and n_processes > 1:
                    pool = reading_pool(n_processes)
                waiting.append(loop.run_in_executor(pool, self._reader.read, number, lines))
                number += len(lines)
                while len(waiting) > (2 * n_processes if pool else 0):
                    await self._save(await waiting.popleft())
            while waiting:
                await self._save(await waiting.popleft())
            if self._cut is not None:
                raise self._cut
        finally:
            for one in waiting:
                one.cancel()
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    async def _save(self, batch: Batch) -> None:
        counts, told = await asyncio.to_thread(self._saved, batch)
        self._n_lines += counts.total()
        self._counts += counts
        for result, count in counts.items():
            self._metrics.imported.labels(result).inc(count)
        self._tell(told)

    def _saved(self, batch: Batch) -> tuple[Counter[str], str]:
        """Save lines; how many results of each kind there are, and what is told of them."""
        results = self._importer.save(batch)
        told = [_told(one) for one in results if one.error is not None or not self._only_errors]
        return Counter([one.result for one in results]), "".join(told)

    async def _chunks(self, body: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
        rest, lines = b"", []
        async for part in body:
            *whole, rest = (rest + part).split(b"\n")
            lines += whole
            if len(rest) > 2 * self._reader.most_bytes:
                self._cut = BadRequest(
                    f"a line has more than the {self._reader.most_bytes:,} bytes allowed; nothing "
                    "after it was read"
                )
                yield lines
                return
            while len(lines) >= LINES_AT_ONCE:
                yield lines[:LINES_AT_ONCE]
                del lines[:LINES_AT_ONCE]
        lines.append(rest)
        yield lines

    def _tell(self, text: str) -> None:
        if not text:
            return
        self._spool.seek(self._written)
        self._spool.write(text.encode())
        self._written = self._spool.tell()
        self._news.set()


def _told(result: Result) -> str:
    line, id, word, error = result
    if error is None:
        return f'{{"line":{line},"id":{_ENCODER.encode(id)},"result":"{word}"}}\n'
    return _line({"line": line, "id": id, "result": word, "problem": problem_of(error)})


def _line(held: dict[str, Any]) -> str:
    return _ENCODER.encode(held) + "\n"
