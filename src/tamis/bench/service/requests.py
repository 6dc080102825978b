"""Requests that come at a steady rate: create, read, list, change and delete subscriptions.

The client is the standard library's, in threads: on a machine of two cores a client that costs as
much as the service would be what is measured.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from random import Random
from time import perf_counter, sleep
from typing import Any

import numpy as np

from tamis.bench.ads import generate_searches
from tamis.bench.service.processes import BenchFailed, Server
from tamis.language import to_sql

RATE = 300.0  # requests a second
SEED = 7
_MIX = {"create": 25, "read": 30, "list": 5, "change": 20, "delete": 20}
_N_USERS = 16  # who wait for an answer before they ask again
_WARM_UP_S = 3.0
_N_FIRST = 200
_PATH = "/v1/subscriptions"

Taken = list[tuple[str, float]]  # the kind of each request, and milliseconds


def measure_requests(server: Server, seconds: float) -> dict[str, Any]:
    """Requests at RATE a second, each counted from the moment it was due; then flat out."""
    held = _Held()
    with ThreadPoolExecutor(_N_USERS) as threads:
        users = [_User(server, held, Random(SEED + number)) for number in range(_N_USERS)]
        for _ in range(_N_FIRST):
            users[0].create()
        _together(threads, users, _at_rate(RATE, min(_WARM_UP_S, seconds)))
        before, start = server.cpu_s(), perf_counter()
        taken = _together(threads, users, _at_rate(RATE, seconds))
        wall, cpu = perf_counter() - start, server.cpu_s() - before
        fastest = min(10.0, seconds)
        flat_out = len(_together(threads, users, _until(fastest))) / fastest
    users[0].check()
    for user in users:
        user.leave()
    return {**_figures(taken, wall), "server_cpu_ms": round(1_000 * cpu / len(taken), 3),
            "flat_out_per_s": round(flat_out, 1), "checked": len(held.priority_of)}  # fmt: skip


def _figures(taken: Taken, wall: float) -> dict[str, Any]:
    times = np.array([ms for _, ms in taken])
    by_kind = {kind: [ms for k, ms in taken if k == kind] for kind in _MIX}
    return {
        "rate": round(len(taken) / wall, 1),
        "n_requests": len(taken),
        "p50_ms": round(float(np.median(times)), 2),
        "p99_ms": round(float(np.percentile(times, 99)), 2),
        "max_ms": round(float(times.max()), 2),
        "p99_by_kind_ms": {
            kind: round(float(np.percentile(held, 99)), 2) for kind, held in by_kind.items() if held
        },
    }


class _Held:
    """What must be there: the priority of each subscription that nobody is changing."""

    def __init__(self) -> None:
        self.priority_of: dict[str, int] = {}
        self.filters = [to_sql(one.filter) for one in generate_searches(500, SEED)]
        self._lock = threading.Lock()
        self._numbers = count()

    def new_id(self) -> str:
        """An id that nobody has."""
        return f"b{next(self._numbers)}"

    @contextmanager
    def taking(self, random: Random) -> Iterator[tuple[str, int]]:
        """One of them with its priority, away from the others meanwhile."""
        with self._lock:
            id = random.choice([*self.priority_of])
            priority = self.priority_of.pop(id)
        yield id, priority


class _User:
    """Makes requests on a connection of its own."""

    def __init__(self, server: Server, held: _Held, random: Random) -> None:
        self._held, self._random = held, random
        self._connection = HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        self._headers = {
            "Authorization": f"Bearer {server.key}", "Content-Type": "application/json",
        }  # fmt: skip

    def ask(self) -> str:
        """A request of the mix; returns its kind."""
        kind = self._random.choices([*_MIX], [*_MIX.values()])[0]
        getattr(self, kind if len(self._held.priority_of) > _N_USERS else "create")()
        return kind

    def create(self) -> None:
        """Save a new one."""
        id, filter = self._held.new_id(), self._random.choice(self._held.filters)
        self._do("POST", _PATH, 201, {"id": id, "filter": filter, "priority": 5})
        self._held.priority_of[id] = 5

    def read(self) -> None:
        """Read one, which must be as it was left."""
        with self._held.taking(self._random) as (id, priority):
            found = self._do("GET", f"{_PATH}/{id}", 200)["priority"]
            if found != priority:
                raise BenchFailed(f"{id} has priority {found}; it was given {priority}")
            self._held.priority_of[id] = priority

    def list(self) -> None:
        """The first page."""
        self._do("GET", f"{_PATH}?limit=20", 200)

    def change(self) -> None:
        """Change the priority of one."""
        with self._held.taking(self._random) as (id, _):
            priority = self._random.randrange(10)
            self._do("PATCH", f"{_PATH}/{id}", 200, {"priority": priority})
            self._held.priority_of[id] = priority

    def delete(self) -> None:
        """Take one away."""
        with self._held.taking(self._random) as (id, _):
            self._do("DELETE", f"{_PATH}/{id}", 204)

    def check(self) -> None:
        """All that was saved is there as it was left, and nothing else."""
        found: dict[str, int] = {}
        cursor: str | None = ""
        while cursor is not None:
            page = self._do("GET", f"{_PATH}?limit=1000&cursor={cursor}", 200)
            found |= {one["id"]: one["priority"] for one in page["items"]}
            cursor = page["next"]
        if found != self._held.priority_of:
            wanted = len(self._held.priority_of)
            raise BenchFailed(f"{len(found)} subscriptions are there; expected {wanted}")

    def leave(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _do(self, method: str, path: str, status: int, body: Any = None) -> Any:
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, self._headers)
        with self._connection.getresponse() as answer:
            held = answer.read()
            if answer.status != status:
                raise BenchFailed(f"{method} {path} was answered {answer.status}: {held[:300]!r}")
        return json.loads(held) if held else None


def _together(
    threads: ThreadPoolExecutor, users: list[_User], next_due: Callable[[], float | None]
) -> Taken:
    """What all users ask for until nothing is due, in milliseconds from when it was due."""

    def ask_on(user: _User) -> Taken:
        taken = []
        while (due := next_due()) is not None:
            sleep(max(0.0, due - perf_counter()))
            taken.append((user.ask(), 1_000 * (perf_counter() - due)))
        return taken

    return [one for taken in threads.map(ask_on, users) for one in taken]


def _at_rate(rate: float, seconds: float) -> Callable[[], float | None]:
    """When requests at a steady rate are due, one after the other."""
    start, numbers, n = perf_counter(), count(), int(rate * seconds)

    def next_due() -> float | None:
        number = next(numbers)
        return None if number >= n else start + number / rate

    return next_due


def _until(seconds: float) -> Callable[[], float | None]:
    """A request is due whenever somebody is free."""
    end = perf_counter() + seconds
    return lambda: None if perf_counter() >= end else perf_counter()
