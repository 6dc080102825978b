"""A case: a workload with its index, checked against an independent reference before any timing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tamis.bench.measure import time_once
from tamis.bench.scan import Scan, numpy_rows
from tamis.bench.workloads import N_EVENTS, SEED, Floats, Workload, columns_of, make
from tamis.errors import TamisError
from tamis.index import Index
from tamis.language import Filter
from tamis.language.tree import InRange, all_of
from tamis.model import Subscription
from tamis.values import Range

N_CHECKED = 50


class WrongResult(TamisError):
    """The index and the reference disagree: nothing is timed."""


class Case(ABC):
    """Subscriptions and events; the index is built when first asked for."""

    name: str
    scale: float  # of what there is
    asked_scale: float  # as it was asked for: before rounding to whole subscriptions
    n_subscriptions: int
    build_seconds: float = 0.0

    @property
    @abstractmethod
    def events(self) -> Sequence[Any]:
        """The events one by one: dicts, or Events."""

    @property
    @abstractmethod
    def warm_up(self) -> Sequence[Any]:
        """Other events of the same kind."""

    @abstractmethod
    def batch(self, start: int = 0, stop: int | None = None) -> Any:
        """Some of the events at once, in the form a user would have a batch in."""

    @abstractmethod
    def build(self) -> Index:
        """A new index of all the subscriptions."""

    @abstractmethod
    def expected(self, event: int) -> set[str]:
        """The ids that accept the event, found without the index."""

    @abstractmethod
    def priority_of(self, id: str) -> int:
        """The priority of a subscription."""

    @abstractmethod
    def newcomers(self, n: int, prefix: str, seed: int = 0) -> list[Subscription]:
        """Subscriptions that are not in the index, of the same kind."""

    @property
    @abstractmethod
    def checked_events(self) -> Sequence[int]:
        """The sample of events whose result is compared with the reference."""

    @cached_property
    def index(self) -> Index:
        """The index, checked."""
        index, self.build_seconds = time_once(self.build)
        self.check(index)
        return index

    def check(self, index: Index) -> None:
        """Compare a sample of results with the reference; raise WrongResult if they differ."""
        for event in self.checked_events:
            one = index.match_batch([self.events[event]])
            self._check_ids(event, list(one.ids), self.expected(event))
        several = list(self.checked_events)[:20]
        start, stop = several[0], several[-1] + 1
        together = index.match_batch(self.batch(start, stop))
        for event in several:
            self._check_ids(event, list(together[event - start]), self.expected(event))

    def _check_ids(self, event: int, ids: list[str], expected: set[str]) -> None:
        where = f"{self.name} at scale {self.scale:g}, event {event}"
        if len(ids) != len(set(ids)) or set(ids) != expected:
            missed, invented = expected - set(ids), set(ids) - expected
            raise WrongResult(
                f"{where}: the index returned {len(ids):,} ids, the reference {len(expected):,}; "
                f"missed {sorted(missed)[:3]}, invented {sorted(invented)[:3]}, "
                f"{len(ids) - len(set(ids))} twice. Nothing was timed; please report this"
            )
        levels = [self.priority_of(id) for id in ids]
        if levels != sorted(levels):
            raise WrongResult(f"{where}: the ids are not in order of priority")


class BoxCase(Case):
    """One of W1 to W4, or a variation of one; the reference is the scan."""

    def __init__(self, workload: Workload, asked_scale: float | None = None) -> None:
        self.workload = workload
        self.name, self.scale = workload.name, workload.scale
        self.asked_scale = workload.scale if asked_scale is None else asked_scale
        self.n_subscriptions = workload.n_subscriptions

    @classmethod
    def of(cls, name: str, scale: float, n_events: int = N_EVENTS) -> BoxCase:
        """The case of a workload's name."""
        return cls(make(name, scale, n_events), scale)

    @cached_property
    def scan(self) -> Scan:
        """The yardstick, itself checked against NumPy."""
        scan = Scan(self.workload)
        for event in list(self.checked_events)[:3]:
            found = scan.match(self.workload.values[event])
            if not np.array_equal(found, numpy_rows(self.workload, event)):
                raise WrongResult(f"{self.name}, event {event}: the scan and NumPy disagree")
        return scan

    @cached_property
    def events(self) -> list[dict[str, float]]:
        """The events as dicts."""
        return self.workload.dicts(self.workload.values)

    @cached_property
    def warm_up(self) -> list[dict[str, float]]:
        """Other events as dicts."""
        return self.workload.dicts(self.workload.warm_up)

    def batch(self, start: int = 0, stop: int | None = None) -> dict[str, Floats]:
        """A dict of arrays."""
        return columns_of(self.workload.attributes, self.workload.values[start:stop])

    def build(self) -> Index:
        """Through ``Index.from_boxes``."""
        return Index.from_boxes(**self.workload.boxes())

    def expected(self, event: int) -> set[str]:
        """From the scan."""
        return set(map(str, self.scan.match(self.workload.values[event]).tolist()))

    def priority_of(self, id: str) -> int:
        """From the workload: the ids are the row numbers."""
        return int(self.workload.priority[int(id)])

    @property
    def checked_events(self) -> Sequence[int]:
        """Evenly spread."""
        n_events = self.workload.n_events
        return range(0, n_events, max(1, n_events // N_CHECKED))

    def newcomers(self, n: int, prefix: str, seed: int = 0) -> list[Subscription]:
        """Boxes of the same workload under another seed."""
        if n < 1:
            return []
        full = self.workload.n_subscriptions / self.workload.scale
        other = make(self.workload.name, n / full, n_events=1, seed=SEED + 1 + seed)
        return [
            Subscription(f"{prefix}{row}", filter_of_box(other, row), int(other.priority[row]))
            for row in range(other.n_subscriptions)
        ]


def filter_of_box(workload: Workload, row: int) -> Filter:
    """The filter that a row of a workload stands for."""
    parts = []
    for m, name in enumerate(workload.attributes):
        low, high = float(workload.low[row, m]), float(workload.high[row, m])
        if low == low:
            ends = "[("[int(workload.low_open[row, m])] + "])"[int(workload.high_open[row, m])]
            parts.append(InRange(name, Range(low, high, ends)))
    return all_of(parts)
