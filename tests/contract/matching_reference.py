"""Subscriptions as plain lists and what they accept, by NumPy alone: the oracle of the matchers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.matching import Kinds, Table

N_ATTRIBUTES = 4
# Borders of the cells, buckets and levels of every algorithm, their neighbours, and beyond.
LEVELS = (0.0, 0.125, 0.25, 1 / 3, 0.5, 0.501, 0.75, 1.0)
NUMBERS = (
    *LEVELS,
    *(float(np.nextafter(level, side)) for level in LEVELS for side in (-np.inf, np.inf)),
    -1.5,
    7.0,
    1.7976931348623157e308,
    -np.inf,
    np.inf,
)


@dataclass(frozen=True)
class Asked:
    """What a subscription asks of one attribute; None does not bound."""

    low: float | None
    high: float | None
    low_open: bool = False
    high_open: bool = False
    negated: bool = False

    def accepts(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        if self.negated:
            return ~np.isnan(values) & (values != self.low)
        found = ~np.isnan(values)
        if self.low is not None:
            found &= values > self.low if self.low_open else values >= self.low
        if self.high is not None:
            found &= values < self.high if self.high_open else values <= self.high
        return found


Subscription = dict[int, Asked]


def accepts(subscription: Subscription, events: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    found = np.ones(len(events), np.bool_)
    for attribute, asked in subscription.items():
        found &= asked.accepts(events[:, attribute])
    return found


def table_of(subscriptions: list[Subscription], n_attributes: int = N_ATTRIBUTES) -> Table:
    rows = [sorted(one.items()) for one in subscriptions]
    entries = [entry for row in rows for entry in row]
    asked = [one for _, one in entries]
    return Table.from_constraints(
        np.cumsum([0, *map(len, rows)]),
        np.array([attribute for attribute, _ in entries], np.int64),
        [np.nan if one.low is None else one.low for one in asked],
        [np.nan if one.high is None else one.high for one in asked],
        low_open=[one.low_open for one in asked],
        high_open=[one.high_open for one in asked],
        negated=[one.negated for one in asked],
        n_attributes=n_attributes,
    )


def random_subscriptions(
    random: np.random.Generator, n: int, kinds: Kinds, n_attributes: int = N_ATTRIBUTES
) -> list[Subscription]:
    return [_random_subscription(random, kinds, n_attributes) for _ in range(n)]


def _random_subscription(
    random: np.random.Generator, kinds: Kinds, n_attributes: int
) -> Subscription:
    least = 0 if Kinds.PARTIAL in kinds else n_attributes
    n_asked = random.integers(least, n_attributes + 1)
    attributes = random.permutation(n_attributes)[:n_asked]
    return {int(attribute): _random_asked(random, kinds) for attribute in attributes}


def _random_asked(random: np.random.Generator, kinds: Kinds) -> Asked:
    forms = [Kinds.RANGE, Kinds.RANGE, Kinds.ONE_SIDED, Kinds.POINT, Kinds.NOT_EQUAL]
    form = random.choice([number for number, one in enumerate(forms) if one in kinds])
    is_low_open, is_high_open = (
        bool(Kinds.OPEN in kinds and random.random() < 0.5) for _ in range(2)
    )
    low, high = sorted(float(number) for number in random.choice(NUMBERS, 2))
    if random.random() < 0.5:
        low, high = np.sort(random.random(2)).tolist()
    if form <= 1:
        if not np.isfinite([low, high]).all() or low == high:
            low, high = 0.25, 0.75
        return Asked(low, high, is_low_open, is_high_open)
    if form == 2:
        side = random.integers(3)
        if side == 0:
            return Asked(low, None, is_low_open)
        return Asked(None, high, False, is_high_open) if side == 1 else Asked(None, None)
    return Asked(low, low, negated=bool(form == 4))


def random_events(
    random: np.random.Generator, n: int, kinds: Kinds, n_attributes: int = N_ATTRIBUTES
) -> npt.NDArray[np.float64]:
    shape = (n, n_attributes)
    events = np.where(
        random.random(shape) < 0.5, random.choice(NUMBERS, shape), random.random(shape)
    )
    if Kinds.MISSING in kinds:
        events[random.random(shape) < 0.15] = np.nan
        events[0] = np.nan
    return events


class Shadow:
    """A matcher's subscriptions by id, and what each event should find."""

    def __init__(self) -> None:
        self.saved: dict[int, Subscription] = {}
        self.priority: dict[int, int] = {}

    def add(self, matcher: Any, subscriptions: list[Subscription], priority: list[int]) -> None:
        ids = matcher.add_many(table_of(subscriptions), np.array(priority, np.int64))
        for id, one, level in zip(ids.tolist(), subscriptions, priority, strict=True):
            assert id not in self.saved, "an id was given to two subscriptions"
            self.saved[id], self.priority[id] = one, level

    def remove(self, matcher: Any, ids: list[int]) -> None:
        matcher.remove_many(ids)
        for id in ids:
            del self.saved[id], self.priority[id]

    def expected(self, event: npt.NDArray[np.float64]) -> set[int]:
        return {id for id, one in self.saved.items() if accepts(one, event[None, :])[0]}
