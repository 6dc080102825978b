"""Cell of polygons: a thousand of a thousand vertices each must not slow the others down.

What they add to the time of an event is compared with what as many boxes of the same size add in
the same places: that is the price of any subscriptions, and not of their vertices.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from tamis.bench.cases import WrongResult
from tamis.bench.events.moving import Event, Movers
from tamis.bench.events.nearby import KM_PER_DEGREE
from tamis.bench.measure import Timed, spread, time_each
from tamis.bench.workloads import SEED, Floats
from tamis.index import Index
from tamis.language import evaluate
from tamis.language.tree import InBox, Within
from tamis.model import Subscription
from tamis.values import Polygon

N_POLYGONS = 1_000
N_VERTICES = 1_000
N_CHECKED = 10
ROUNDS = 5
FAR_DEGREES = 20.0  # to the south
_APART_KM = 0.02
_NEAREST_KM, _FARTHEST_KM = 0.3, 1.0  # of a vertex from its centre


def make_polygons(centres: Floats, prefix: str) -> list[Subscription]:
    """A star of a thousand vertices, 300 to 1,000 m from its centre, around each place."""
    random = np.random.default_rng([SEED, 63])
    angle = np.linspace(0, 2 * np.pi, N_VERTICES, endpoint=False)
    made = []
    for number, (lon, lat) in enumerate(centres.tolist()):
        reach = random.uniform(_NEAREST_KM, _FARTHEST_KM, N_VERTICES) / KM_PER_DEGREE
        ring = np.stack([lon + reach * np.cos(angle), lat + reach * np.sin(angle)], axis=1)
        shape = Polygon(shapely.Polygon(ring))
        made.append(Subscription(f"{prefix}{number}", Within("location", shape)))
    return made


def make_boxes(centres: Floats, prefix: str) -> list[Subscription]:
    """A square as large as such a star around each place."""
    mean_square = (_FARTHEST_KM**3 - _NEAREST_KM**3) / (3 * (_FARTHEST_KM - _NEAREST_KM))
    half = (np.pi * mean_square) ** 0.5 / 2 / KM_PER_DEGREE
    return [
        Subscription(
            f"{prefix}{number}",
            InBox("location", lon - half, lat - half, lon + half, lat + half),
        )
        for number, (lon, lat) in enumerate(centres.tolist())
    ]


def measure_polygon(movers: Movers) -> dict[str, Any]:
    """The time of an event alone, beside boxes and beside polygons, far ones and near ones."""
    random = np.random.default_rng([SEED, 64])
    places = movers.nearby.values[:, :2]
    # Some ten metres apart: boxes of the same place would be one box, and cost less than as many.
    centres = places[random.integers(0, len(places), N_POLYGONS)]
    centres = centres + random.normal(0, _APART_KM / KM_PER_DEGREE, centres.shape)
    found: dict[str, Any] = {
        "n_subscriptions": len(movers.places), "n_polygons": N_POLYGONS, "n_vertices": N_VERTICES,
    }  # fmt: skip
    movers.check()
    with tempfile.TemporaryDirectory(prefix="tamis-bench-") as folder:
        saved = Path(folder) / "index"
        movers.index.save(saved)
        beside = {"alone": Index.open(saved)}
        for where, around in (("far", centres - (0.0, FAR_DEGREES)), ("near", centres)):
            found[where] = {}
            for kind, make in (("boxes", make_boxes), ("polygons", make_polygons)):
                made, index = make(around, kind), Index.open(saved)
                index.add_many(made)
                index._engine.wait_for_merging()
                beside[f"{where} {kind}"] = index
                found[where][f"{kind}_n_matches"] = _check(index, movers.events, made)
        times = _time_in_turn(beside, movers.events)
        del beside, index
    found["alone"] = times["alone"]
    for where in ("far", "near"):
        boxes, polygons = times[f"{where} boxes"], times[f"{where} polygons"]
        found[where] |= {
            "boxes": boxes,
            "polygons": polygons,
            "ratio": round(polygons["median_us"] / boxes["median_us"], 3),
            "ratio_to_alone": round(polygons["median_us"] / times["alone"]["median_us"], 3),
        }
    return found


def _time_in_turn(
    indexes: Mapping[str, Index], events: Sequence[Event]
) -> dict[str, dict[str, float]]:
    """Of each event the shortest of some rounds, so that others on the machine do not count."""
    rounds: dict[str, list[Timed]] = {name: [] for name in indexes}
    for index in indexes.values():
        time_each(index.match, events[:200])
    for _ in range(ROUNDS):
        for name, index in indexes.items():
            rounds[name].append(_time(index, events))
    return {
        name: spread(
            Timed(np.min([one.times for one in held], axis=0), max(one.cpu_share for one in held))
        )
        for name, held in rounds.items()
    }


def _time(index: Index, events: Sequence[Event]) -> Timed:
    return time_each(lambda event: index.match_batch([event]).rows, events)


def _check(index: Index, events: Sequence[Event], made: list[Subscription]) -> int:
    """Compare the shapes that are matched with the oracle; how many in all events."""
    ids = {one.id for one in made}
    for event in events[:N_CHECKED]:
        wanted = {one.id for one in made if evaluate(one.condition, event)}
        if ids.intersection(index.match(event)) != wanted:
            raise WrongResult("the index and the oracle disagree on polygons. Nothing was timed")
    return sum(len(ids.intersection(index.match(event))) for event in events)
