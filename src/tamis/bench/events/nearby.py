"""Workload "near me": W4 with a place for every subscription, in the manner of taxi traces.

Trading areas lie around the centres of a city of 100 km (``reproduce.places``). A subscription is
at a pick-up point near one of them, with a radius of 250 to 1,000 m (a square in every other
case), and has ranges on four of eighteen further attributes as in W4. An event is at a trading
area and has some fifteen of the other attributes. Subscriptions move some ten to a hundred metres
at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.bench.reproduce.places import ATTRIBUTES, N_AREAS, trading_areas
from tamis.bench.workloads import N_EVENTS, SEED, Floats, make_w4
from tamis.language.tree import InRange, all_of
from tamis.model import Subscription
from tamis.values import Point, Range

WEST, SOUTH = 121.0, 30.8  # of the city
KM_PER_DEGREE = 111.195
CITY_KM = 100.0
REACH = 0.012  # degrees; more than 1,000 m, the largest radius, in either direction
_STEP_KM = 0.05


@dataclass(frozen=True, slots=True)
class Nearby:
    """N subscriptions with places, and events.

    >>> nearby = make_nearby(3, n_events=2)
    >>> [one.area for one in nearby.subscriptions()], len(nearby.events())
    (['circle', 'square', 'circle'], 2)
    """

    places: Floats  # (N, 2), longitude and latitude
    radius_m: Floats  # (N,)
    low: Floats  # (N, 18), NaN where nothing is asked
    high: Floats
    values: Floats  # (E, 20), NaN where the event has none; its place first

    def subscriptions(self, prefix: str = "s") -> list[Subscription]:
        """The subscriptions, their ids numbered."""
        return list(self.subscriptions_between(0, len(self.places), prefix))

    def subscriptions_between(
        self, first: int, last: int, prefix: str = "s"
    ) -> Iterator[Subscription]:
        """Some of the subscriptions: a million at once would take gigabytes."""
        rows = slice(first, last)
        low, high = self.low[rows].tolist(), self.high[rows].tolist()
        places, radii = self.places[rows].tolist(), self.radius_m[rows].tolist()
        for at, (place, radius_m) in enumerate(zip(places, radii, strict=True)):
            sides = zip(ATTRIBUTES[2:], low[at], high[at], strict=True)
            yield Subscription(
                f"{prefix}{first + at}",
                all_of([InRange(name, Range(a, b)) for name, a, b in sides if a == a]),
                location=tuple(place),
                radius_m=radius_m,
                area=("circle", "square")[(first + at) % 2],
            )

    def events(self) -> list[dict[str, float | Point]]:
        """The events as dicts; what is missing has no key."""
        return [
            {
                "location": Point(*row[:2]),
                **{name: v for name, v in zip(ATTRIBUTES[2:], row[2:], strict=True) if v == v},
            }
            for row in self.values.tolist()
        ]


def make_nearby(n: int, *, n_events: int = N_EVENTS, seed: int = SEED) -> Nearby:
    """The workload; the same seed makes the same data."""
    random = np.random.default_rng([seed, 6])
    areas = trading_areas(random)
    points = areas[random.integers(0, N_AREAS, n)] + random.normal(0, 0.003, (n, 2))
    w4 = make_w4(n, m=18, k=4, n_events=n_events, seed=seed)
    # The first two attributes of W4 are places; here they are attributes like the others.
    pair = np.sort(random.random((n, 2, 2)), axis=2)
    low, high = w4.low.copy(), w4.high.copy()
    is_asked = ~np.isnan(low[:, :2])
    low[:, :2], high[:, :2] = (np.where(is_asked, pair[:, :, side], np.nan) for side in (0, 1))
    values = np.concatenate([areas[random.integers(0, N_AREAS, n_events)], w4.values], axis=1)
    values[:, :2] = on_globe(values[:, :2])
    return Nearby(on_globe(points), random.uniform(250, 1000, n), low, high, values)


def on_globe(points: Floats) -> Floats:
    """Points of the unit square as longitudes and latitudes of the city."""
    lat = SOUTH + np.clip(points[:, 1], 0, 1) * CITY_KM / KM_PER_DEGREE
    width = KM_PER_DEGREE * np.cos(np.radians(SOUTH + CITY_KM / KM_PER_DEGREE / 2))
    return np.stack([WEST + np.clip(points[:, 0], 0, 1) * CITY_KM / width, lat], axis=1)


def step(places: Floats, who: npt.NDArray[np.int64], random: np.random.Generator) -> Floats:
    """Where some go next: some ten to a hundred metres from where they are."""
    return places[who] + random.normal(0, _STEP_KM / KM_PER_DEGREE, (len(who), 2))
