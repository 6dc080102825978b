"""Workload W5: searches for cars and flats over twelve attributes of every kind.

Four texts with Zipf values (mark, model, region, seller), five numbers (price, year, mileage,
area, rooms), a boolean (used), a point (location) and several tags. A fifth of the searches has
an OR, a tenth a NOT, a tenth a polygon or a distance. Filters are made as Python objects.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from math import cos, pi, radians, sin
from time import perf_counter
from typing import Any

import numpy as np

from tamis.bench.ads import CAR_TAGS, CITIES, FLAT_TAGS, MODELS, YEAR
from tamis.bench.cases import Case
from tamis.bench.workloads import N_EVENTS, SEED
from tamis.index import Index
from tamis.language import Filter, evaluate
from tamis.language.tree import Equals, InRange, Near, Not, Within, all_of, any_of, is_in
from tamis.model import Subscription
from tamis.values import Point, Polygon, Range

FULL_SIZE = 1_000_000
WITH_OR, WITH_NOT, WITH_SHAPE = 0.2, 0.1, 0.1
ATTRIBUTES = (
    "mark", "model", "region", "seller", "price", "year", "mileage", "area", "rooms", "used",
    "location", "tags",
)  # fmt: skip
_DRAWS = 40  # random numbers a search or an ad may use
_BLOCK = 10_000
_N_WARM_UP = 200
_PAIRS_CHECKED = 500_000  # evaluations of the reference

Draw = Callable[[], float]


class Zipf:
    """Names of which the first is the most frequent, the second half as frequent, and so on.

    >>> Zipf(["a", "b"]).at(0.6), Zipf(["a", "b"]).at(0.7)
    ('a', 'b')
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        shares = 1.0 / np.arange(1, len(names) + 1)
        self._cumulated = (np.cumsum(shares) / shares.sum()).tolist()

    def at(self, draw: float) -> str:
        """The name at a number from [0, 1)."""
        return self.names[min(bisect(self._cumulated, draw), len(self.names) - 1)]


_MARKS = Zipf([*MODELS, *(f"MARK{number}" for number in range(19, 61))])
_REGIONS = Zipf([*CITIES, *(f"Town{number}" for number in range(13, 301))])
_SELLERS = Zipf([f"seller-{number}" for number in range(1, 100_001)])
_TAGS = Zipf([*CAR_TAGS, *FLAT_TAGS, *(f"tag-{number}" for number in range(15, 41))])
_MODELS = {
    mark: Zipf([*MODELS.get(mark, ()), *(f"{mark}-{number}" for number in range(1, 21))])
    for mark in _MARKS.names
}
_CENTERS = dict(zip(_REGIONS.names, CITIES.values(), strict=False))


def _center(region: str) -> tuple[float, float]:
    """The place of a region; those without a known one lie on a grid."""
    if region in _CENTERS:
        return _CENTERS[region]
    number = int(region.removeprefix("Town"))
    return 30.0 + number % 20 * 2.5, 45.0 + number // 20


def generate_subscriptions(n: int, seed: int = SEED, prefix: str = "s") -> list[Subscription]:
    """Saved searches; the same seed makes the same ones.

    >>> one, two = generate_subscriptions(2)
    >>> one.id, generate_subscriptions(2) == [one, two]
    ('s0', True)
    """
    draws = _draws(n, [seed, 51])
    return [
        Subscription(f"{prefix}{number}", _search(draw), int((draw() + draw()) * 5))
        for number, draw in enumerate(draws)
    ]


def generate_events(n: int, seed: int = SEED) -> list[dict[str, Any]]:
    """Ads: four cars for each flat."""
    return [_car(draw) if draw() < 0.8 else _flat(draw) for draw in _draws(n, [seed, 52])]


def _draws(n: int, seed: Sequence[int]) -> Iterator[Draw]:
    """For each of n things a function that returns one random number after the other."""
    random = np.random.default_rng(list(seed))
    for start in range(0, n, _BLOCK):
        for row in random.random((min(_BLOCK, n - start), _DRAWS)).tolist():
            yield iter(row).__next__


# -- searches


def _search(draw: Draw) -> Filter:
    has_or, has_not, has_shape = draw() < WITH_OR, draw() < WITH_NOT, draw() < WITH_SHAPE
    region = _REGIONS.at(draw())
    is_car = draw() < 0.8
    parts = _car_search(draw, has_or) if is_car else _flat_search(draw, has_or)
    if has_shape:
        parts.append(_shape(draw, region))
    elif draw() < 0.5 or not is_car:
        parts.append(_equals("region", region))
    if has_not:
        parts.append(_exclusion(draw))
    return all_of(parts)


def _car_search(draw: Draw, has_or: bool) -> list[Filter]:
    mark = _MARKS.at(draw())
    if has_or:
        other = _MARKS.at(draw())
        one = all_of((_equals("mark", mark), _model(draw, mark), _years(draw)))
        parts = [any_of((one, all_of((_equals("mark", other), _model(draw, other)))))]
    else:
        parts = [_equals("mark", mark), _models(draw, mark)]
        if draw() < 0.6:
            parts.append(_years(draw))
    parts.append(_price(draw, 2_000))
    if draw() < 0.3:
        parts.append(_range("mileage", None, 20_000 + int(draw() * 9) * 20_000))
    if draw() < 0.1:
        parts.append(_equals("used", draw() < 0.5))
    return parts + _rarer(draw)


def _flat_search(draw: Draw, has_or: bool) -> list[Filter]:
    area = 20 + int(draw() * 60)
    rooms: Filter = _range("rooms", 1 + int(draw() * 3), None)
    size: Filter = _range("area", area, area + 10 + int(draw() * 40))
    parts = [any_of((rooms, size))] if has_or else [rooms, size]
    return [*parts, _price(draw, 8_000), *_rarer(draw)]


def _rarer(draw: Draw) -> list[Filter]:
    parts = []
    if draw() < 0.15:
        parts.append(_equals("tags", _TAGS.at(draw())))
    if draw() < 0.03:
        parts.append(_equals("seller", _SELLERS.at(draw())))
    return parts


def _model(draw: Draw, mark: str) -> Filter:
    return _equals("model", _MODELS[mark].at(draw()))


def _models(draw: Draw, mark: str) -> Filter:
    models = _MODELS[mark]
    return _one_of("model", frozenset(models.at(draw()) for _ in range(1 + int(draw() * 3))))


def _years(draw: Draw) -> Filter:
    first = YEAR - 1 - int(draw() * 14)
    return _range("year", first, first + 1 + int(draw() * 5))


def _price(draw: Draw, step: int) -> Filter:
    low = int(1 + draw() * 20) * step
    high = low * (5 + int(draw() * 5)) // 4
    return _range("price", None, high) if draw() < 0.4 else _range("price", low, high)


def _exclusion(draw: Draw) -> Filter:
    kind = draw()
    if kind < 0.5:
        return Not(_one_of("tags", frozenset((_TAGS.at(draw()), _TAGS.at(draw())))))
    if kind < 0.8:
        return Not(_equals("seller", _SELLERS.at(draw())))
    return Not(_equals("used", True))


def _shape(draw: Draw, region: str) -> Filter:
    lon, lat = _center(region)
    lon, lat = lon + (draw() - 0.5) * 0.4, lat + (draw() - 0.5) * 0.2
    if draw() < 0.5:
        return Near("location", Point(lon, lat), 500.0 * (2 + int(draw() * 18)), open=True)
    size, turn = 0.01 + 0.05 * draw(), draw() * 2 * pi
    n_corners = 5 + int(draw() * 5)
    angles = (turn + 2 * pi * corner / n_corners for corner in range(n_corners))
    ring = [(lon + size * cos(a) / cos(radians(lat)), lat + size * sin(a)) for a in angles]
    return Within("location", Polygon(ring))


@lru_cache(maxsize=200_000)
def _equals(name: str, value: str | bool) -> Filter:  # searches share their predicates
    return Equals(name, value)


@lru_cache(maxsize=200_000)
def _one_of(name: str, values: frozenset[str]) -> Filter:
    return is_in(name, sorted(values))


@lru_cache(maxsize=200_000)
def _range(name: str, low: float | None, high: float | None) -> Filter:
    return InRange(name, Range(low, high))


# -- ads


def _car(draw: Draw) -> dict[str, Any]:
    mark = _MARKS.at(draw())
    age = int(-5.0 * np.log1p(-draw()))
    car = {
        "mark": mark,
        "model": _MODELS[mark].at(draw()),
        "year": YEAR - min(age, 20),
        "price": round(40_000 * 0.88**age * (0.4 + draw()), -2),
        "used": age > 0,
        **_offer(draw),
    }
    return {**car, "mileage": int(age * (6_000 + 19_000 * draw()))} if age else car


def _flat(draw: Draw) -> dict[str, Any]:
    rooms = 1 + int(draw() * draw() * 5)
    area = round(18 + rooms * (12 + 16 * draw()), 1)
    price = round(area * (900 + 2_600 * draw()), -3)
    return {"rooms": rooms, "area": area, "price": price, **_offer(draw)}


def _offer(draw: Draw) -> dict[str, Any]:
    region = _REGIONS.at(draw())
    lon, lat = _center(region)
    offer: dict[str, Any] = {
        "region": region,
        "seller": _SELLERS.at(draw()),
        "location": Point(lon + (draw() - 0.5) * 0.4, lat + (draw() - 0.5) * 0.2),
    }
    tags = sorted({_TAGS.at(draw()) for _ in range(int(draw() * 5))})
    return {**offer, "tags": tags} if tags else offer


# -- the case


class MixedCase(Case):
    """W5 at a scale; the reference evaluates the filters one by one."""

    def __init__(self, scale: float, n_events: int = N_EVENTS, seed: int = SEED) -> None:
        self.name, self.scale, self.asked_scale = "W5", scale, scale
        self.n_subscriptions = max(1, round(FULL_SIZE * scale))
        start = perf_counter()
        self.subscriptions = generate_subscriptions(self.n_subscriptions, seed)
        self.generation_seconds = perf_counter() - start
        made = generate_events(n_events + _N_WARM_UP, seed)
        self._events, self._warm_up = made[:n_events], made[n_events:]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The ads."""
        return self._events

    @property
    def warm_up(self) -> list[dict[str, Any]]:
        """Other ads."""
        return self._warm_up

    def batch(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """A list of ads."""
        return self._events[start:stop]

    def build(self) -> Index:
        """Through ``add_many``."""
        index = Index()
        index.add_many(self.subscriptions)
        return index

    def expected(self, event: int) -> set[str]:
        """By the meaning of the filters."""
        return self._expected(event)

    @cached_property
    def _expected(self) -> Callable[[int], set[str]]:
        @cache
        def expected(event: int) -> set[str]:
            ad = self._events[event]
            return {one.id for one in self.subscriptions if evaluate(one.filter, ad)}

        return expected

    @cached_property
    def _priorities(self) -> dict[str, int]:
        return {one.id: one.priority for one in self.subscriptions}

    def priority_of(self, id: str) -> int:
        """From the subscriptions."""
        return self._priorities[id]

    @property
    def checked_events(self) -> Sequence[int]:
        """Evenly spread, and fewer where there are many subscriptions."""
        n_checked = min(50, max(2, _PAIRS_CHECKED // self.n_subscriptions))
        return range(0, len(self._events), max(1, -(-len(self._events) // n_checked)))

    def newcomers(self, n: int, prefix: str, seed: int = 0) -> list[Subscription]:
        """Searches under another seed."""
        return generate_subscriptions(n, SEED + 1 + seed, prefix)
