"""Datasets of places: events and subscriptions in the manner of MO-Tree's taxi traces.

The paper takes 10,000 trading areas, clustered from a day's pick-up points of taxis in a city,
as the places of events, and the pick-up points as those of subscriptions. Here trading areas lie
around some centres, more of them around the larger ones, and pick-up points around the areas.
"""

from __future__ import annotations

import numpy as np

from tamis.bench.reproduce.datasets import N_EVENTS, Random, pick, spread, workload
from tamis.bench.workloads import SEED, Floats, Workload

N_ATTRIBUTES = 20
N_AREAS = 10_000
_N_CENTRES = 40
_CITY_KM = 100.0  # the side of the square that the domain is
ATTRIBUTES = ("lon", "lat", *(f"a{rank}" for rank in range(3, N_ATTRIBUTES + 1)))


def trading_areas(random: Random) -> Floats:
    """The places of trading areas, in [0, 1]²."""
    centres = random.uniform(0.15, 0.85, (_N_CENTRES, 2))
    shares = 1.0 / np.arange(1, _N_CENTRES + 1)
    owner = random.choice(_N_CENTRES, N_AREAS, p=shares / shares.sum())
    return np.clip(centres[owner] + random.normal(0, 0.04, (N_AREAS, 2)), 0, 1)


def placed_boxes(n: int, k: int = 6, zipf: float = 1.0, n_events: int = N_EVENTS) -> Workload:
    """MO-Tree, sections 2.1 and 6.1: longitude, latitude and k - 2 of 18 attributes by Zipf.

    The place is a square of 0.5 to 2 km to each side of a pick-up point, which every subscription
    has; the others lie between two uniform numbers. Events are at a trading area and have 15 to
    20 attributes in all, by the same Zipf.
    """
    random = np.random.default_rng([SEED, 41])
    areas = trading_areas(random)
    picked = 2 + pick(random, n, N_ATTRIBUTES - 2, k - 2, zipf)
    pair = np.sort(random.random((n, k - 2, 2)), axis=2)
    points = areas[random.integers(0, N_AREAS, n)] + random.normal(0, 0.01, (n, 2))
    reach = random.uniform(0.5, 2.0, n) / _CITY_KM
    lows, highs = (spread(picked, pair[..., end], N_ATTRIBUTES) for end in (0, 1))
    lows[:, :2] = np.clip(points - reach[:, None], 0, 1)
    highs[:, :2] = np.clip(points + reach[:, None], 0, 1)
    values = placed_events(random, n_events + 20, areas, zipf)
    return workload("MO-Tree", lows, highs, values, attributes=ATTRIBUTES)


def placed_events(random: Random, n: int, areas: Floats, zipf: float) -> Floats:
    """Events at trading areas, NaN where an attribute is missing; the place never is."""
    values = random.random((n, N_ATTRIBUTES))
    values[:, :2] = areas[random.integers(0, N_AREAS, n)]
    rates = 1.0 / np.arange(1, N_ATTRIBUTES - 1) ** zipf
    for start in range(0, n, 65_536):
        part = values[start : start + 65_536, 2:]
        arrivals = random.exponential(size=part.shape) / rates
        n_held = random.integers(13, N_ATTRIBUTES - 1, len(part))
        rank = np.argsort(np.argsort(arrivals, axis=1), axis=1)
        part[rank >= n_held[:, None]] = np.nan
    return values
