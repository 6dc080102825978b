"""Requests that come at a steady rate: create, read, list, change and delete subscriptions."""

from __future__ import annotations

import asyncio
from random import Random
from time import perf_counter
from typing import Any

import numpy as np

from tamis.bench.ads import generate_searches
from tamis.bench.service.processes import BenchFailed, Server
from tamis.client import AsyncClient
from tamis.language import to_sql

RATE = 300.0  # requests a second
SEED = 7
_MIX = {"create": 25, "read": 30, "list": 5, "change": 20, "delete": 20}
_AT_ONCE = 64  # requests that may be under way
_WARM_UP_S = 3.0


def measure_requests(server: Server, seconds: float) -> dict[str, Any]:
    """Requests at RATE a second, each counted from the moment it was due; then flat out."""
    return asyncio.run(_measure(server, seconds))


async def _measure(server: Server, seconds: float) -> dict[str, Any]:
    async with AsyncClient(server.url, server.key) as client:
        user = _User(client, Random(SEED))
        await user.begin()
        await _at_rate(user, RATE, min(_WARM_UP_S, seconds))
        before, start = server.cpu_s(), perf_counter()
        taken = await _at_rate(user, RATE, seconds)
        wall, cpu = perf_counter() - start, server.cpu_s() - before
        flat_out = await _flat_out(user, min(10.0, seconds))
        await user.check()
    times = np.array([ms for _, ms in taken])
    return {
        "rate": round(len(taken) / wall, 1),
        "n_requests": len(taken),
        "p50_ms": round(float(np.median(times)), 2),
        "p99_ms": round(float(np.percentile(times, 99)), 2),
        "max_ms": round(float(times.max()), 2),
        "p99_by_kind_ms": {
            kind: round(float(np.percentile([ms for k, ms in taken if k == kind], 99)), 2)
            for kind in _MIX
        },
        "server_cpu_ms": round(1_000 * cpu / len(taken), 3),
        "flat_out_per_s": round(flat_out, 1),
        "checked": len(user.held),
    }


class _User:
    """Makes requests, and knows what must be there after them."""

    def __init__(self, client: AsyncClient, random: Random) -> None:
        self.client, self.random = client, random
        self.held: dict[str, int] = {}  # priority by id, of what is there and not being changed
        self._filters = [to_sql(one.filter) for one in generate_searches(500, SEED)]
        self._n_created = 0

    async def begin(self) -> None:
        """Some subscriptions to begin with."""
        for _ in range(200):
            await self.create()

    async def do(self) -> str:
        """A request of the mix; returns its kind."""
        kind = self.random.choices([*_MIX], [*_MIX.values()])[0]
        if not self.held:
            kind = "create"
        await getattr(self, kind)()
        return kind

    async def create(self) -> None:
        """Save a new one."""
        self._n_created += 1
        id = f"b{self._n_created}"
        await self.client.create(self.random.choice(self._filters), id=id, priority=5)
        self.held[id] = 5

    async def read(self) -> None:
        """Read one, which must be as it was left."""
        id = self.random.choice([*self.held])
        priority = self.held.pop(id)
        found = await self.client.get(id)
        if found.priority != priority:
            raise BenchFailed(f"{id} has priority {found.priority}; it was given {priority}")
        self.held[id] = priority

    async def list(self) -> None:
        """The first page."""
        async for _ in self.client.subscriptions(page_size=20):
            break

    async def change(self) -> None:
        """Change the priority of one."""
        id = self.random.choice([*self.held])
        del self.held[id]
        priority = self.random.randrange(10)
        await self.client.change(id, priority=priority)
        self.held[id] = priority

    async def delete(self) -> None:
        """Take one away."""
        id = self.random.choice([*self.held])
        del self.held[id]
        await self.client.delete(id)

    async def check(self) -> None:
        """All that was saved is there as it was left, and nothing else."""
        found = {one.id: one.priority async for one in self.client.subscriptions(page_size=1_000)}
        if found != self.held:
            raise BenchFailed(f"{len(found)} subscriptions are there; expected {len(self.held)}")


async def _at_rate(user: _User, rate: float, seconds: float) -> list[tuple[str, float]]:
    """The kind of each request, and milliseconds from when it was due to its answer."""
    taken: list[tuple[str, float]] = []
    limit = asyncio.Semaphore(_AT_ONCE)

    async def ask(due: float) -> None:
        async with limit:
            kind = await user.do()
        taken.append((kind, 1_000 * (perf_counter() - due)))

    start = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(int(rate * seconds)):
            due = start + number / rate
            await asyncio.sleep(max(0.0, due - perf_counter()))
            tasks.create_task(ask(due))
    return taken


async def _flat_out(user: _User, seconds: float) -> float:
    """Requests a second of 16 users who each ask again as soon as they are answered."""
    until, n_answered = perf_counter() + seconds, 0

    async def ask_again() -> None:
        nonlocal n_answered
        while perf_counter() < until:
            await user.do()
            n_answered += 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(16):
            tasks.create_task(ask_again())
    return n_answered / seconds
