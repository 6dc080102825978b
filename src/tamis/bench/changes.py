"""Cells of change: one add, update or remove, and many while another thread matches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count, cycle
from time import perf_counter, sleep, thread_time
from typing import Any, NamedTuple

from tamis.bench.cases import BoxCase, Case, WrongResult
from tamis.bench.measure import no_gc, spread, time_each
from tamis.index import Index
from tamis.language.tree import And, InRange
from tamis.model import Subscription

N_CHANGES = 1_000
TARGET_PER_SECOND = 20_000
SECONDS = 3.0
READER_BATCH = 1000
_TICK_SECONDS = 0.001
_SUPPLY = 4 * N_CHANGES
_WARM_UP_S = 0.5


def measure_changes(case: Case) -> dict[str, Any]:
    """One change at a time at full size, each visible to the next match."""
    index = case.index
    newcomers = case.newcomers(N_CHANGES, "new-")
    others = case.newcomers(N_CHANGES, "new-", seed=1)
    warm_up = case.newcomers(50, "warm-", seed=2)
    for one in warm_up:
        index.add(one)
        index.remove(one.id)
    index.match_batch([case.events[0]])
    added = spread(time_each(index.add, newcomers))
    n_checked = _check_visible(case, index, newcomers[:20], True)
    updated = spread(time_each(index.update, others))
    removed = spread(time_each(index.remove, [one.id for one in others]))
    _check_visible(case, index, others[:20], False)
    case.check(index)
    return {
        "n_subscriptions": case.n_subscriptions,
        "n_changes": len(newcomers),
        "seen_by_the_next_match": n_checked,
        "add": added,
        "update": updated,
        "remove": removed,
    }


def _check_visible(
    case: Case, index: Index, changed: Sequence[Subscription], is_there: bool
) -> int:
    """Match an event made for each of the subscriptions; how many were tried."""
    if not isinstance(case, BoxCase):
        return 0
    for one in changed:
        if (one.id in index.match(event_inside(one))) != is_there:
            raise WrongResult(f"{case.name}: {one.id} is {'not ' * is_there}matched after a change")
    return len(changed)


def event_inside(subscription: Subscription) -> dict[str, float]:
    """An event in the middle of a subscription's box."""
    held = subscription.filter
    parts = held.parts if isinstance(held, And) else (held,)
    return {
        part.attribute: (float(part.range.low) + float(part.range.high)) / 2  # type: ignore[arg-type]
        for part in parts
        if isinstance(part, InRange)
    }


def measure_readers(case: Case) -> dict[str, Any]:
    """Another thread matches, first in peace, then beside changes at the rate aimed for."""
    index = case.index
    found: dict[str, Any] = {
        "n_subscriptions": case.n_subscriptions,
        "target_per_second": TARGET_PER_SECOND,
        "reader_batch": READER_BATCH,
    }
    a_little_more = round(1.01 * TARGET_PER_SECOND)  # a pace is never quite kept
    _warm_up(case, index)
    for name, per_second in (("paced", a_little_more), ("flat_out", 0)):
        changer = Changer(case, index, name)
        with no_gc(), Reader(case, index) as reader:
            quiet = reader.rate_during(sleep, SECONDS)
            beside = reader.rate_during(changer.run, per_second, SECONDS)
            after = reader.rate_during(sleep, SECONDS / 2)
        found[name] = {
            "changes_per_second": round(changer.n_changes / changer.seconds),
            "quiet_events_per_second": round(quiet.per_second),
            "beside_events_per_second": round(beside.per_second),
            "after_events_per_second": round(after.per_second),
            "speed_kept": round(beside.per_second / quiet.per_second, 3),
            "cpu_share": round(quiet.cpu_share, 3),
            "beside_cpu_share": round(beside.cpu_share, 3),
            "beside_cpu_us_per_event": round(beside.cpu_us_per_event, 3),
            "quiet_cpu_us_per_event": round(quiet.cpu_us_per_event, 3),
        }
        changer.clear()
    case.check(index)
    return found


def _warm_up(case: Case, index: Index) -> None:
    """Run all that is compiled: matching beside a head, beside a sealed one and after a merge."""
    changer = Changer(case, index, "warm-up")
    with Reader(case, index):
        changer.run(0, _WARM_UP_S)
    changer.clear()
    index._engine.wait_for_merging()


class Rate(NamedTuple):
    """How fast a reader was, and why: whether it ran, and what an event cost it when it did."""

    per_second: float
    cpu_share: float
    cpu_us_per_event: float


class Reader:
    """A thread that matches batches until it is told to stop."""

    def __init__(self, case: Case, index: Index) -> None:
        n_events = len(case.events)
        starts = range(0, n_events, READER_BATCH)
        self._batches = [case.batch(at, min(n_events, at + READER_BATCH)) for at in starts]
        self._index = index
        self._n_matched = 0
        self._busy_seconds = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader")

    def __enter__(self) -> Reader:
        self._thread.start()
        sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def rate_during(self, action: Callable[..., Any], *arguments: float) -> Rate:
        """Events matched a second while the action runs, of which there is at least one."""
        before, busy, start = self._n_matched, self._busy_seconds, perf_counter()
        action(*arguments)
        while self._n_matched == before and self._thread.is_alive():
            sleep(_TICK_SECONDS)
        n_matched, seconds = self._n_matched - before, perf_counter() - start
        busy = self._busy_seconds - busy
        return Rate(n_matched / seconds, busy / seconds, 1e6 * busy / max(1, n_matched))

    def _run(self) -> None:
        for batch in cycle(self._batches):
            if self._is_over.is_set():
                return
            self._n_matched += len(self._index.match_batch(batch))
            self._busy_seconds = thread_time()


class Changer:
    """Adds, updates and removes in turn; about a thousand additions are there at any time."""

    def __init__(self, case: Case, index: Index, prefix: str) -> None:
        self._index = index
        self._first = case.newcomers(_SUPPLY, f"{prefix}-", seed=3)
        self._second = case.newcomers(_SUPPLY, f"{prefix}-", seed=4)
        self._changes = self._endless()
        self._saved: set[str] = set()
        self.n_changes = 0
        self.seconds = 0.0

    def run(self, per_second: int, seconds: float) -> None:
        """Change for some time, at that rate or, if it is 0, as fast as possible."""
        start = perf_counter()
        while (passed := perf_counter() - start) < seconds:
            if per_second and self.n_changes >= passed * per_second:
                sleep(_TICK_SECONDS)
                continue
            next(self._changes)
            self.n_changes += 1
        self.seconds = perf_counter() - start

    def clear(self) -> None:
        """Remove what is left of the additions."""
        for id in self._saved:
            self._index.remove(id)

    def _endless(self) -> Iterator[None]:
        """A change a step; an id comes back long after it was removed."""
        for at in count():
            added = self._first[at % _SUPPLY]
            self._index.add(added)
            self._saved.add(added.id)
            yield
            if at >= N_CHANGES // 2:
                self._index.update(self._second[(at - N_CHANGES // 2) % _SUPPLY])
                yield
            if at >= N_CHANGES:
                removed = self._second[(at - N_CHANGES) % _SUPPLY].id
                self._index.remove(removed)
                self._saved.remove(removed)
                yield
