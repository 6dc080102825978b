"""Sender: takes deliveries that are due and makes them, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, TypeVar

from tamis.errors import InvalidDelivery, StorageUnavailable
from tamis.service.sending.message import Message
from tamis.service.sending.outcomes import failed, result_of, skipped
from tamis.service.sending.settings import SenderSettings
from tamis.service.sending.transport_kind import Transport
from tamis.service.sending.transports import targets_of
from tamis.storage import Database
from tamis.storage.deliveries import Appetite, Claim, Leases, Result, take_back
from tamis.storage.outbox import fan_out, why_not_told
from tamis.storage.retention import expire, remove_old
from tamis.values import load_json

__all__ = ["Sender"]

_LOG = logging.getLogger("tamis.sender")
_T = TypeVar("_T")
_FAN_OUT = 1_000
_TAKE_BACK_EVERY_S = 1.0
_CLEAN_EVERY_S = 60.0
_RETRY_DATABASE_S = 0.5


@dataclass(slots=True)
class _Held:
    """A claim in hand: the task at work on it, and when its lease ends by ``monotonic``."""

    claim: Claim
    task: asyncio.Task[None]
    ends: float
    is_under_way: bool = False


class Sender:
    """Sends what waits in the outbox of a database.

    Any number of senders may work on one database. ``run`` ends after ``stop``, when what was
    under way is done. ``clock`` tells the time.
    """

    def __init__(
        self,
        database: Database,
        settings: SenderSettings,
        transports: Mapping[str, Transport],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.settings = settings
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._database = database
        self._leases = Leases(database, self.name)
        self._transports = transports
        self._clock = clock
        self._targets_of = partial(targets_of, settings=settings)
        # Notifications of one subscription often come together.
        self._read_targets = lru_cache(4_096)(lambda text: self._targets_of(load_json(text)))
        self._held: dict[int, _Held] = {}
        self._load: Counter[str] = Counter()  # claims in hand for each destination
        self._results: list[Result] = []
        self._writing = asyncio.Lock()
        self._stopped, self._woken, self._done = asyncio.Event(), asyncio.Event(), asyncio.Event()
        # Statements wait for the disk: a thread for each of those who make them.
        self._threads = ThreadPoolExecutor(4, "tamis-sender")
        self._room = asyncio.Semaphore(settings.concurrency)
        self._rooms: dict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(settings.per_destination)
        )

    async def run(self) -> None:
        """Send until stopped."""
        _LOG.info("sender %s starts on %s", self.name, self._database.name)
        loops = (self._fan_out, self._keep_leases, self._take_back, self._clean)
        tasks = [asyncio.create_task(self._repeat(one)) for one in loops]
        writing = asyncio.create_task(self._repeat(self._write_results))
        try:
            await self._repeat(self._take)
        finally:
            for task in tasks:
                task.cancel()
            await self._wind_up()
            writing.cancel()
            await asyncio.gather(*tasks, writing, return_exceptions=True)
            await self.close()

    def stop(self) -> None:
        """Let ``run`` end; to be called in the thread that runs it."""
        self._stopped.set()
        self._woken.set()

    async def send_due(self) -> int:
        """Send what is due now, and say how many deliveries were tried."""
        n_tried = 0
        await self._in_thread(take_back, self._database, self._clock(), self.settings.max_attempts)
        while await self._fan_out_once():
            pass
        while n_taken := await self._take_once():
            n_tried += n_taken
            await asyncio.gather(*(held.task for held in self._held.values()))
            await self._write_once()
        return n_tried

    async def close(self) -> None:
        """Let go of all connections."""
        for transport in self._transports.values():
            await transport.close()
        self._threads.shutdown(wait=False)

    async def _in_thread(self, call: Callable[..., _T], *arguments: Any, **named: Any) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *arguments, **named))

    async def _repeat(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Take a step again and again; where the database is away, wait for it."""
        while not self._stopped.is_set() or step == self._write_results:
            try:
                await step()
            except StorageUnavailable as error:
                _LOG.warning("%s", error)
                await asyncio.sleep(_RETRY_DATABASE_S)
            except Exception:
                _LOG.exception("a step of sender %s failed; it goes on", self.name)
                await asyncio.sleep(_RETRY_DATABASE_S)

    # From the outbox to claims.

    async def _fan_out(self) -> None:
        if await self._fan_out_once():
            self._woken.set()
        else:
            await asyncio.sleep(self.settings.poll.total_seconds())

    async def _fan_out_once(self) -> int:
        return await self._in_thread(
            fan_out, self._database, self._targets_of,
            now=self._clock(), max_age=self.settings.max_age, most=_FAN_OUT,
        )  # fmt: skip

    async def _take(self) -> None:
        self._woken.clear()
        if not await self._take_once():
            try:
                async with asyncio.timeout(self.settings.poll.total_seconds()):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def _take_once(self) -> int:
        """Claim what there is room for, and begin with it."""
        ahead = self.settings.ahead
        most = self.settings.concurrency * ahead
        room = most - len(self._held)
        if room < most // 4:
            return 0  # few claims at a time would cost a transaction each
        now, ends = self._clock(), time.monotonic() + self.settings.lease.total_seconds()
        appetite = Appetite(room, self.settings.per_destination * ahead, dict(self._load))
        claims = await self._in_thread(self._leases.claim, appetite, now, now + self.settings.lease)
        for claim in claims:
            task = asyncio.create_task(self._deliver(claim))
            self._held[claim.number] = _Held(claim, task, ends)
            self._load[claim.destination] += 1
        return len(claims)

    # From claims to results.

    async def _deliver(self, claim: Claim) -> None:
        why_not = self._why_not(claim)
        if why_not is not None:
            result = skipped(claim, why_not, self._clock())
        else:
            async with self._rooms[claim.destination], self._room:
                self._held[claim.number].is_under_way = True
                result = await self._attempt(claim)
        self._results.append(result)
        self._done.set()

    async def _attempt(self, claim: Claim) -> Result:
        at, begun = self._clock(), time.perf_counter()
        try:
            outcome = await self._transports[claim.transport].send(Message(claim), at)
        except Exception as error:
            _LOG.exception("delivery %d by %s failed", claim.number, claim.transport)
            outcome = failed(f"{type(error).__name__}: {error}")
        took_ms = int((time.perf_counter() - begun) * 1_000)
        now = self._clock()
        return result_of(claim, outcome, self.settings, at=at, now=now, took_ms=took_ms)

    def _why_not(self, claim: Claim) -> str | None:
        """Why the subscription does not want a delivery any more; None if it does."""
        row = claim.row
        problem = why_not_told(row)
        if problem is not None:
            return problem
        if claim.transport not in self._transports:
            return f"this service sends no {claim.transport}"
        try:
            targets = self._read_targets(row.settings)
        except InvalidDelivery as error:
            return str(error)
        wanted = any(
            (one.transport, one.address) == (claim.transport, row.address) for one in targets
        )
        return None if wanted else "the subscription has another address now"

    async def _write_results(self) -> None:
        await self._done.wait()
        await self._write_once()

    async def _write_once(self) -> None:
        """Write down what came of claims; where that is not possible now, keep it."""
        async with self._writing:  # whoever comes here next finds that it is written
            self._done.clear()
            results, self._results = self._results, []
            if not results:
                return
            try:
                await self._in_thread(self._leases.finish, results, self._clock())
            except StorageUnavailable:
                self._results = results + self._results
                results = []
                self._done.set()
                raise
            finally:  # what cannot be written for another reason is left to the end of its lease
                self._let_go(one.claim for one in results)
                self._woken.set()

    def _let_go(self, claims: Any) -> None:
        for claim in claims:
            self._held.pop(claim.number, None)
            self._load[claim.destination] -= 1
            if not self._load[claim.destination]:
                del self._load[claim.destination]
                self._rooms.pop(claim.destination, None)

    # What has to be done now and then.

    async def _keep_leases(self) -> None:
        """Renew leases that are a third over; drop a claim before its lease ends unrenewed.

        A renewal that fails or hangs is repeated. What is half over by then is dropped: the next
        look may come when another sender has it.
        """
        lease_s = self.settings.lease.total_seconds()
        await asyncio.sleep(lease_s / 6)
        begun = time.monotonic()
        old = [n for n, held in self._held.items() if held.ends < begun + lease_s * 2 / 3]
        if not old:
            return
        until = self._clock() + self.settings.lease
        try:
            async with asyncio.timeout(lease_s / 6):
                kept = await self._in_thread(self._leases.renew, old, until)
        except (StorageUnavailable, TimeoutError) as error:
            _LOG.warning("leases cannot be renewed now: %s", str(error) or "no answer")
            ending = time.monotonic() + lease_s / 2
            self._drop(held for held in self._held.values() if held.ends < ending)
            return
        for number in kept & self._held.keys():
            self._held[number].ends = begun + lease_s
        self._drop(self._held[number] for number in set(old) - kept if number in self._held)

    def _drop(self, lost: Any) -> None:
        for held in list(lost):
            if held.task.cancel():
                _LOG.warning("lost the lease of delivery %d", held.claim.number)
                self._let_go([held.claim])

    async def _take_back(self) -> None:
        now, most = self._clock(), self.settings.max_attempts
        if await self._in_thread(take_back, self._database, now, most):
            self._woken.set()
        await asyncio.sleep(_TAKE_BACK_EVERY_S)

    async def _clean(self) -> None:
        now, settings = self._clock(), self.settings
        while await self._in_thread(expire, self._database, now):
            pass
        while await self._in_thread(
            remove_old, self._database, now - settings.keep, now - settings.keep_dead
        ):
            pass
        await asyncio.sleep(_CLEAN_EVERY_S)

    async def _wind_up(self) -> None:
        """Finish what is under way within the time there is; give back the rest."""
        under_way = [held.task for held in self._held.values() if held.is_under_way]
        for held in self._held.values():
            if not held.is_under_way:
                held.task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=self.settings.stop_within.total_seconds())
        for held in self._held.values():
            held.task.cancel()
        try:
            await self._write_once()
            await self._in_thread(self._leases.give_back, list(self._held), self._clock())
        except StorageUnavailable as error:
            _LOG.warning("%s; leases run out by themselves", error)
        _LOG.info("sender %s ends", self.name)
