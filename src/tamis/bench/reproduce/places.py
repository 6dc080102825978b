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
    """MO-Tree, section 6.1: k of 20 attributes by Zipf, longitude and latitude the first two.

    These are a square of 0.5 to 2 km to each side of a pick-up point; the others lie between two
    uniform numbers. Events have 15 to 20 attributes, by the same Zipf, at a trading area.
    """
    random = np.random.default_rng([SEED, 41])
    areas = trading_areas(random)
    picked = pick(random, n, N_ATTRIBUTES, k, zipf)
    pair = np.sort(random.random((n, k, 2)), axis=2)
    points = areas[random.integers(0, N_AREAS, n)] + random.normal(0, 0.01, (n, 2))
    reach = random.uniform(0.5, 2.0, n) / _CITY_KM
    lows, highs = spread(picked, pair[..., 0], 20), spread(picked, pair[..., 1], 20)
    for axis in range(2):
        asks = ~np.isnan(lows[:, axis])
        lows[asks, axis] = np.clip(points[asks, axis] - reach[asks], 0, 1)
        highs[asks, axis] = np.clip(points[asks, axis] + reach[asks], 0, 1)
    values = placed_events(random, n_events + 20, areas, zipf)
    return workload("MO-Tree", lows, highs, values, attributes=ATTRIBUTES)


def placed_events(random: Random, n: int, areas: Floats, zipf: float) -> Floats:
    """Events at trading areas, NaN where an attribute is missing."""
    values = random.random((n, N_ATTRIBUTES))
    values[:, :2] = areas[random.integers(0, N_AREAS, n)]
    rates = 1.0 / np.arange(1, N_ATTRIBUTES + 1) ** zipf
    for start in range(0, n, 65_536):
        part = values[start : start + 65_536]
        arrivals = random.exponential(size=part.shape) / rates
        n_held = random.integers(15, N_ATTRIBUTES + 1, len(part))
        place = np.argsort(np.argsort(arrivals, axis=1), axis=1)
        part[place >= n_held[:, None]] = np.nan
    return values
