"""Cell of moves: one at a time, many at once, and at a rate while another thread matches."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from itertools import count
from time import perf_counter, sleep, thread_time
from typing import Any

import numpy as np

from tamis.bench.cases import WrongResult
from tamis.bench.events.nearby import REACH, Nearby, step
from tamis.bench.measure import no_gc, spread, time_each, time_once
from tamis.bench.workloads import SEED
from tamis.index import Index
from tamis.language import evaluate
from tamis.model import Subscription
from tamis.values import Point

TARGET_PER_SECOND = 51_000  # a little over the aim, which a pace of the aim itself misses by a tick
SECONDS = 4.0
N_MOVES = 20_000
N_CHECKED = 20
_TICK_SECONDS = 0.0005
_AT_ONCE = 5_000  # subscriptions that are added at once: until then they are Python objects

Event = dict[str, float | Point]


def index_of(nearby: Nearby) -> Index:
    """An index of the subscriptions of a workload."""
    index, n = Index(), len(nearby.places)
    with no_gc():
        for first in range(0, n, _AT_ONCE):
            index.add_many(nearby.subscriptions_between(first, min(n, first + _AT_ONCE)))
    index._engine.wait_for_merging()
    return index


class Movers:
    """An index of a workload, and where its subscriptions go, one step after another."""

    def __init__(self, nearby: Nearby) -> None:
        self.nearby = nearby
        self.places = nearby.places.copy()
        self.events = nearby.events()
        self.index = index_of(nearby)
        gc.freeze()  # or every timing would begin with seconds of looking at these objects
        self._random = np.random.default_rng([SEED, 61])
        self._steps = self._endless()

    def _endless(self) -> Any:
        n = len(self.places)
        for _ in count():
            who = self._random.permutation(n)[:N_MOVES]
            to = step(self.places, who, self._random)
            self.places[who] = to
            yield from zip([f"s{one}" for one in who.tolist()], to.tolist(), strict=True)

    def next_moves(self, n: int) -> list[tuple[str, list[float]]]:
        """Who moves next, and where to."""
        return [next(self._steps) for _ in range(n)]

    def move(self, one: tuple[str, list[float]]) -> None:
        """Move one."""
        id, (lon, lat) = one
        self.index.move(id, lon, lat)

    def check(self) -> int:
        """Compare a sample of matches with the oracle; how many matches there were."""
        n_matches = 0
        for event in self.events[:N_CHECKED]:
            place = event["location"]
            assert isinstance(place, Point)
            wanted = {one.id for one in self._around(place) if evaluate(one.condition, event)}
            found = self.index.match(event)
            if len(found) != len(set(found)) or set(found) != wanted:
                raise WrongResult(f"the index found {len(found)}, the oracle {len(wanted)}")
            n_matches += len(found)
        return n_matches

    def _around(self, place: Point) -> list[Subscription]:
        """The subscriptions whose area may hold a place, as the index has them."""
        moved = self.places - (place.lon, place.lat)
        near = np.nonzero((abs(moved) < REACH).all(axis=1))[0]
        return [self.index[f"s{number}"] for number in near.tolist()]


class Reader:
    """A thread that matches events, one by one or as batches, until it is told to stop."""

    def __init__(self, index: Index, events: Sequence[Event], in_batches: bool) -> None:
        self._index, self._events, self._in_batches = index, list(events), in_batches
        self._n_matched, self._busy_seconds = 0, 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader")

    def __enter__(self) -> Reader:
        self._thread.start()
        sleep(0.2)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            if self._in_batches:
                self._n_matched += len(self._index.match_batch(self._events))
                self._busy_seconds = thread_time()
                continue
            for event in self._events:
                self._index.match(event)
                self._n_matched += 1
            self._busy_seconds = thread_time()

    def seen(self) -> tuple[int, float, float]:
        """Events matched so far, the seconds of a core that took, and the time."""
        return self._n_matched, self._busy_seconds, perf_counter()


def rates(before: tuple[int, float, float], after: tuple[int, float, float]) -> dict[str, float]:
    """Events a second between two looks, and what an event cost in time of a core."""
    n, busy, seconds = (late - early for late, early in zip(after, before, strict=True))
    return {
        "events_per_second": round(n / seconds),
        "cpu_us_per_event": round(1e6 * busy / max(1, n), 2),
        "cpu_share": round(busy / seconds, 3),
    }


def measure_beside(movers: Movers, in_batches: bool) -> dict[str, Any]:
    """Another thread matches, first in peace, then beside moves at the rate aimed for."""
    moves = movers.next_moves(round(TARGET_PER_SECOND * SECONDS * 1.02))
    movers.index.match_batch(movers.events)
    with no_gc(), Reader(movers.index, movers.events, in_batches) as reader:
        start = reader.seen()
        sleep(SECONDS)
        quiet = reader.seen()
        n_moves, busy, began = 0, thread_time(), perf_counter()
        while (passed := perf_counter() - began) < SECONDS:
            if n_moves >= passed * TARGET_PER_SECOND:
                sleep(_TICK_SECONDS)
                continue
            movers.move(moves[n_moves])
            n_moves += 1
        busy = thread_time() - busy
        beside = reader.seen()
    for one in moves[n_moves:]:
        movers.move(one)
    before, then = rates(start, quiet), rates(quiet, beside)
    return {
        "moves_per_second": round(n_moves / passed),
        "writer_cpu_share": round(busy / passed, 3),
        "quiet": before,
        "beside": then,
        "speed_kept": round(then["events_per_second"] / max(1, before["events_per_second"]), 3),
        "cpu_share": before["cpu_share"],
    }


def measure_move(movers: Movers) -> dict[str, Any]:
    """Moves, then moves beside a reader; checked before and after."""
    index, events, n = movers.index, movers.events, len(movers.places)
    found: dict[str, Any] = {"n_subscriptions": n, "n_checked_matches": movers.check()}
    some = movers.next_moves(2 * N_MOVES)
    time_each(movers.move, some[:N_MOVES])
    found["one"] = spread(time_each(movers.move, some[N_MOVES:]))
    many = dict(movers.next_moves(N_MOVES))
    places = np.array(list(many.values())).T
    _, seconds = time_once(lambda: index.move_many(list(many), *places))
    found["many_us"] = round(1e6 * seconds / len(many), 3)
    memory = index.stats()["memory"]["moving"]
    found["batches"] = measure_beside(movers, in_batches=True)
    found["one_by_one"] = measure_beside(movers, in_batches=False)
    found["match_after"] = spread(time_each(index.match, events))
    found["bytes"] = round(memory / n, 1)
    found["bytes_after"] = round(index.stats()["memory"]["moving"] / n, 1)
    movers.check()
    return found
