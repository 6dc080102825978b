"""Timing: one clock, the garbage collector off, medians with their spread."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter_ns, thread_time_ns
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item")
Nanoseconds = npt.NDArray[np.int64]


@contextmanager
def no_gc() -> Iterator[None]:
    """Collect garbage now, and not again before the end."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Timed(NamedTuple):
    """The nanoseconds of each call, and the share of a core the thread had meanwhile.

    Below 1 somebody else ran: that lengthens long calls more often than short ones, so that
    ratios between the two are not to be trusted.
    """

    times: Nanoseconds
    cpu_share: float


def time_each(function: Callable[[Item], Any], items: Sequence[Item]) -> Timed:
    """Time each call."""
    times = np.empty(len(items), dtype=np.int64)
    with no_gc():
        begin, busy = perf_counter_ns(), thread_time_ns()
        for at, item in enumerate(items):
            start = perf_counter_ns()
            function(item)
            times[at] = perf_counter_ns() - start
        busy, passed = thread_time_ns() - busy, perf_counter_ns() - begin
    return Timed(times, min(1.0, busy / max(1, passed)))


def time_once(function: Callable[[], Item]) -> tuple[Item, float]:
    """What a call returns, and its seconds."""
    with no_gc():
        start = perf_counter_ns()
        made = function()
        return made, (perf_counter_ns() - start) / 1e9


def spread(timed: Timed) -> dict[str, float]:
    """Median, mean and tail in microseconds.

    >>> spread(Timed(np.array([1_000, 2_000, 9_000]), 1.0))["median_us"]
    2.0
    """
    us = timed.times / 1e3
    p50, p90, p99 = np.percentile(us, (50, 90, 99))
    return {
        "median_us": round(float(p50), 3),
        "mean_us": round(float(us.mean()), 3),
        "p90_us": round(float(p90), 3),
        "p99_us": round(float(p99), 3),
        "min_us": round(float(us.min()), 3),
        "max_us": round(float(us.max()), 3),
        "n": len(us),
        "cpu_share": round(timed.cpu_share, 3),
    }


def middle_of(rounds: Sequence[dict[str, float]]) -> dict[str, Any]:
    """The round of the middle median, with the lowest and the highest median beside it."""
    ordered = sorted(rounds, key=lambda one: one["median_us"])
    return {
        **ordered[(len(ordered) - 1) // 2],
        "median_us_of_rounds": [one["median_us"] for one in rounds],
    }
