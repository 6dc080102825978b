"""Subscriptions that stand out: those that accept most, and those that cost most to decide."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tamis.index import Index
from tamis.index.revision import check_of
from tamis.model import Event

__all__ = ["StandingOut", "find_standing_out"]

N_SHOWN = 10
N_EVENTS = 256
_FEW = 8  # whose matches say how many more events may be matched
_MOST_MATCHES = 2_000_000


@dataclass(frozen=True, slots=True)
class Broad:
    """A subscription, and how many of the events it accepts."""

    id: str
    share: float
    matches: int


@dataclass(frozen=True, slots=True)
class Costly:
    """A subscription whose filter has to be asked; what one event costs it, in microseconds."""

    id: str
    cost_us: float
    matches: int


@dataclass(frozen=True, slots=True)
class StandingOut:
    """The subscriptions that stand out on some events, the first ones most."""

    n_events: int = 0
    broadest: list[Broad] = field(default_factory=list)
    costliest: list[Costly] = field(default_factory=list)


def find_standing_out(index: Index, events: Sequence[Event]) -> StandingOut:
    """Match events as a trial, and see who stands out; nobody is told.

    >>> from tamis.model import Subscription
    >>> index = Index()
    >>> index.add_many([Subscription("all", "x > 0"), Subscription("few", "x > 2")])
    >>> found = find_standing_out(index, [Event(f"e{x}", {"x": x}) for x in range(4)])
    >>> [(one.id, one.share) for one in found.broadest]
    [('all', 0.75), ('few', 0.25)]
    """
    chosen = list(events[:N_EVENTS])
    if not chosen or not len(index):
        return StandingOut()
    n_matches = max(1, index.match_batch(chosen[:_FEW]).n_matches)
    chosen = chosen[: max(1, _MOST_MATCHES * min(_FEW, len(chosen)) // n_matches)]
    return StandingOut(len(chosen), _broadest(index, chosen), _costliest(index, chosen))


def _broadest(index: Index, events: list[Event]) -> list[Broad]:
    found = index.match_batch(events)
    counts = np.bincount(found.rows)
    top = np.argsort(-counts, kind="stable")[:N_SHOWN]
    top = top[counts[top] > 0]
    ids = found.dictionary().take(top).to_pylist()
    return [Broad(id, n / len(events), n) for id, n in zip(ids, counts[top].tolist(), strict=True)]


def _costliest(index: Index, events: list[Event]) -> list[Costly]:
    """Of those that had to be asked most often, what they take when they are."""
    found = []
    for one in index.stats()["costliest"]:
        try:
            check = check_of(index[one["id"]].condition)  # as the index asks it
        except KeyError:  # taken away meanwhile
            continue
        since = time.perf_counter()
        n_matches = sum(check(event.attributes) for event in events)
        spent = time.perf_counter() - since
        found.append(Costly(one["id"], spent / len(events) * 1e6, n_matches))
    return sorted(found, key=lambda one: -one.cost_us)
