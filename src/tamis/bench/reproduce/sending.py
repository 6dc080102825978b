"""Cells of sending: the three ways of running match and send (Pri-REIN, section 4.1, figure 2).

A broker may send when all is matched (serial), send each part of a result before it looks for
the next (alternate), or hand it to a thread that sends (concurrent).
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np

from tamis.bench.reproduce.boxes import SECONDS, BoxSet
from tamis.bench.reproduce.determining import N_TIMED, check_parts, spread_of
from tamis.bench.reproduce.figures import Line
from tamis.bench.workloads import Floats
from tamis.matching import Matcher

MESSAGE = b"an event, as it is sent to a subscriber".ljust(200)

Send = Callable[[], None]
Moments = list[tuple[float, float]]  # when a subscription was determined, when it was sent
Way = Callable[[Matcher, Floats], Moments]


def measure_ways(case: BoxSet, line: Line) -> dict[str, Any]:
    """The time that a matching subscription stays with the broker, for each of the three ways.

    A send is a datagram of 200 bytes to this machine, which nobody reads.
    """
    matcher, _ = case.build(line)
    check_parts(case, matcher, line)
    found: dict[str, Any] = {"n_subscriptions": len(matcher)}
    with _socket() as send:
        for name, way in (("serial", _serial(send)), ("alternate", _alternate(send))):
            found[name] = _time(matcher, case, way)
        with _concurrent(send) as way:
            found["concurrent"] = _time(matcher, case, way)
    return found


def _time(matcher: Matcher, case: BoxSet, way: Way) -> dict[str, float]:
    processed: list[float] = []
    determined: list[float] = []
    begin = perf_counter()
    for event in case.workload.values[:N_TIMED]:
        start = perf_counter()
        for moment, sent in way(matcher, event):
            determined.append((moment - start) * 1e3)
            processed.append((sent - start) * 1e3)
        if perf_counter() - begin > SECONDS:
            break
    if not processed:
        return {}
    return {**spread_of(processed), "determining_ms": float(np.mean(determined))}


@contextmanager
def _socket() -> Iterator[Send]:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        address = receiver.getsockname()

        def send() -> None:
            sender.sendto(MESSAGE, address)

        yield send


def _serial(send: Send) -> Way:
    def run(matcher: Matcher, event: Floats) -> Moments:
        parts = [(len(ids), perf_counter()) for ids in matcher.match_parts(event)]
        moments: Moments = []
        for n, moment in parts:
            _send_all(send, n, moment, moments)
        return moments

    return run


def _alternate(send: Send) -> Way:
    def run(matcher: Matcher, event: Floats) -> Moments:
        moments: Moments = []
        for ids in matcher.match_parts(event):
            _send_all(send, len(ids), perf_counter(), moments)
        return moments

    return run


@contextmanager
def _concurrent(send: Send) -> Iterator[Way]:
    waiting: SimpleQueue[tuple[int, float, Moments] | threading.Event | None] = SimpleQueue()

    def work() -> None:
        while (task := waiting.get()) is not None:
            if isinstance(task, threading.Event):
                task.set()
            else:
                _send_all(send, *task)

    def run(matcher: Matcher, event: Floats) -> Moments:
        moments: Moments = []
        for ids in matcher.match_parts(event):
            if len(ids):
                waiting.put((len(ids), perf_counter(), moments))
        all_sent = threading.Event()
        waiting.put(all_sent)
        all_sent.wait()
        return moments

    thread = threading.Thread(target=work, name="tamis-bench-sender")
    thread.start()
    try:
        yield run
    finally:
        waiting.put(None)
        thread.join()


def _send_all(send: Send, n: int, moment: float, moments: Moments) -> None:
    for _ in range(n):
        send()
        moments.append((moment, perf_counter()))
