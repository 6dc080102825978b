"""Cells of determining: when each matching subscription is known (Pri-REIN, section 4)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from tamis.bench.measure import no_gc
from tamis.bench.reproduce.boxes import SECONDS, BoxSet, Ids, TooLarge
from tamis.bench.reproduce.datasets import N_LEVELS
from tamis.bench.reproduce.figures import Line
from tamis.bench.workloads import Floats
from tamis.matching import Matcher

N_TIMED = 100
MESSAGE = b"an event, as it is sent to a subscriber".ljust(200)


class Determined(NamedTuple):
    """The parts of a result with their moments, from start to end, in milliseconds."""

    parts: list[tuple[float, Ids]]
    end: float

    @property
    def ids(self) -> Ids:
        """All of them."""
        return np.concatenate([np.zeros(0, np.int32), *(ids for _, ids in self.parts)])


def determine(matcher: Matcher, event: Floats) -> Determined:
    """Match an event part by part. What a part holds is determined when the part comes."""
    parts = []
    start = perf_counter()
    for ids in matcher.match_parts(event):
        if len(ids):
            parts.append(((perf_counter() - start) * 1e3, ids))
    return Determined(parts, (perf_counter() - start) * 1e3)


def measure_determining(case: BoxSet, line: Line) -> dict[str, Any]:
    """Preparing, ending, matching, gap and interval time, and the moments by priority."""
    try:
        matcher, seconds = case.build(line)
    except TooLarge as error:
        return {"skipped": str(error)}
    _check(case, matcher, line)
    rows: list[Determined] = []
    begin = perf_counter()
    with no_gc():
        for event in case.workload.values[:N_TIMED]:
            rows.append(determine(matcher, event))
            if perf_counter() - begin > SECONDS and len(rows) >= 5:
                break
    return {
        "n_subscriptions": len(matcher),
        "n_events": len(rows),
        "insert_s": seconds,
        "matches_mean": float(np.mean([len(row.ids) for row in rows])),
        **_times(rows),
        **_levels(rows, case.workload.priority),
    }


def _check(case: BoxSet, matcher: Matcher, line: Line) -> None:
    for event in case.checked:
        found = np.sort(determine(matcher, case.workload.values[event]).ids)
        where = f"{line.label}, event {event}"
        case.compare(found, case.expected(event), matcher, where)


def _times(rows: Sequence[Determined]) -> dict[str, Any]:
    found: dict[str, list[float]] = {name: [] for name in ("tp", "te", "tm", "tg", "ti")}
    for row in rows:
        found["tm"].append(row.end)
        if row.parts:
            first, last = row.parts[0][0], row.parts[-1][0]
            found["tp"].append(first)
            found["te"].append(row.end - last)
            found["tg"].append(last - first)
            if len(row.ids) > 1:
                found["ti"].append((last - first) / (len(row.ids) - 1))
    return {name: _spread(values) for name, values in found.items()}


def _levels(rows: Sequence[Determined], priority: Any) -> dict[str, Any]:
    """Mean and deviation of the moments, in all and by priority."""
    parts = [part for row in rows for part in row.parts]
    moments = np.repeat([moment for moment, _ in parts], [len(ids) for _, ids in parts])
    ids = np.concatenate([np.zeros(0, np.int32), *(ids for _, ids in parts)])
    level = priority[ids]
    by_level = [_spread(moments[level == one].tolist()) for one in range(N_LEVELS)]
    return {"determined": _spread(moments.tolist()), "levels": by_level}


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    return {"mean_ms": float(np.mean(values)), "std_ms": float(np.std(values)), "n": len(values)}


# -- the three ways of running match and send (section 4.1, figure 2)

Send = Callable[[], None]


def measure_ways(case: BoxSet, line: Line) -> dict[str, Any]:
    """The time that a matching subscription stays with the broker, for each of the three ways.

    A send is a datagram of 200 bytes to this machine, that nobody reads.
    """
    matcher, _ = case.build(line)
    _check(case, matcher, line)
    found: dict[str, Any] = {"n_subscriptions": len(matcher)}
    with _sender() as send, no_gc():
        for name, way in _WAYS.items():
            processed: list[float] = []
            determined: list[float] = []
            begin = perf_counter()
            for event in case.workload.values[:N_TIMED]:
                start = perf_counter()
                for moment, sent in way(matcher, event, send):
                    determined.append((moment - start) * 1e3)
                    processed.append((sent - start) * 1e3)
                if perf_counter() - begin > SECONDS:
                    break
            found[name] = {**_spread(processed), "determining_ms": float(np.mean(determined))}
    return found


@contextmanager
def _sender() -> Iterator[Send]:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        address = receiver.getsockname()
        yield lambda: (sender.sendto(MESSAGE, address), None)[1]


Moments = list[tuple[float, float]]  # when a subscription was determined, when it was sent


def _serial(matcher: Matcher, event: Floats, send: Send) -> Moments:
    parts = [(perf_counter(), len(ids)) for ids in matcher.match_parts(event)]
    moments = []
    for moment, n in parts:
        for _ in range(n):
            send()
            moments.append((moment, perf_counter()))
    return moments


def _alternate(matcher: Matcher, event: Floats, send: Send) -> Moments:
    moments = []
    for ids in matcher.match_parts(event):
        moment = perf_counter()
        for _ in range(len(ids)):
            send()
            moments.append((moment, perf_counter()))
    return moments


def _concurrent(matcher: Matcher, event: Floats, send: Send) -> Moments:
    waiting: SimpleQueue[tuple[float, int] | None] = SimpleQueue()
    moments: Moments = []

    def work() -> None:
        while (part := waiting.get()) is not None:
            moment, n = part
            for _ in range(n):
                send()
                moments.append((moment, perf_counter()))

    thread = threading.Thread(target=work)
    thread.start()
    for ids in matcher.match_parts(event):
        if len(ids):
            waiting.put((perf_counter(), len(ids)))
    waiting.put(None)
    thread.join()
    return moments


_WAYS: dict[str, Callable[[Matcher, Floats, Send], Moments]] = {
    "serial": _serial,
    "alternate": _alternate,
    "concurrent": _concurrent,
}
