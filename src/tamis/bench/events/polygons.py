"""Cell of polygons: a thousand of a thousand vertices each must not slow the others down."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from tamis.bench.cases import WrongResult
from tamis.bench.events.moving import Movers
from tamis.bench.events.nearby import KM_PER_DEGREE
from tamis.bench.measure import Timed, spread, time_each
from tamis.bench.workloads import SEED, Floats
from tamis.language import evaluate
from tamis.language.tree import Within
from tamis.model import Subscription
from tamis.values import Polygon

N_POLYGONS = 1_000
N_VERTICES = 1_000
N_CHECKED = 10
ROUNDS = 5
FAR_DEGREES = 20.0  # to the south


def make_polygons(centres: Floats, prefix: str) -> list[Subscription]:
    """A star of a thousand vertices, 300 to 1,000 m from its centre, around each place."""
    random = np.random.default_rng([SEED, 63])
    angle = np.linspace(0, 2 * np.pi, N_VERTICES, endpoint=False)
    made = []
    for number, (lon, lat) in enumerate(centres.tolist()):
        reach = random.uniform(0.3, 1.0, N_VERTICES) / KM_PER_DEGREE
        ring = np.stack([lon + reach * np.cos(angle), lat + reach * np.sin(angle)], axis=1)
        shape = Polygon(shapely.Polygon(ring))
        made.append(Subscription(f"{prefix}{number}", Within("location", shape)))
    return made


def measure_polygon(movers: Movers) -> dict[str, Any]:
    """The time of an event without polygons, with far ones, and with near ones.

    Each is compared with the time just before they came, and so is the time after they went.
    """
    random = np.random.default_rng([SEED, 64])
    places = movers.nearby.values[:, :2]
    centres = places[random.integers(0, len(places), N_POLYGONS)]
    far = centres - (0.0, FAR_DEGREES)
    found: dict[str, Any] = {
        "n_subscriptions": len(movers.places), "n_polygons": N_POLYGONS, "n_vertices": N_VERTICES,
    }  # fmt: skip
    movers.check()
    before = _time(movers)
    for name, around in (("far", far), ("near", centres)):
        polygons = make_polygons(around, name)
        movers.index.add_many(polygons)
        movers.index._engine.wait_for_merging()
        found[f"{name}_n_matches"] = _check(movers, polygons)
        times = _time(movers)
        for one in polygons:
            movers.index.remove(one.id)
        after = _time(movers)
        ratios = [one["median_us"] / before["median_us"] for one in (times, after)]
        found[f"without_{name}"] = before
        found[name] = {**times, "ratio": round(ratios[0], 3), "ratio_after": round(ratios[1], 3)}
        before = after
    return found


def _time(movers: Movers) -> dict[str, float]:
    """Of each event the shortest of some rounds, so that others on the machine do not count."""
    index, events = movers.index, movers.events
    time_each(index.match, events[:200])
    rounds = [
        time_each(lambda event: index.match_batch([event]).rows, events) for _ in range(ROUNDS)
    ]
    shortest = np.min([one.times for one in rounds], axis=0)
    return spread(Timed(shortest, max(one.cpu_share for one in rounds)))


def _check(movers: Movers, polygons: list[Subscription]) -> int:
    """Compare the polygons that are matched with the oracle; how many in all events."""
    ids = {one.id for one in polygons}
    for event in movers.events[:N_CHECKED]:
        wanted = {one.id for one in polygons if evaluate(one.condition, event)}
        if ids.intersection(movers.index.match(event)) != wanted:
            raise WrongResult("the index and the oracle disagree on polygons. Nothing was timed")
    return sum(len(ids.intersection(movers.index.match(event))) for event in movers.events)
