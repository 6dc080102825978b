"""The map of the city demo: areas, promotions, customers, and who was told of what."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from tamis.bench.extras import extra
from tamis.cli.city import City
from tamis.values import Point

_KINDS = {
    "coffee": "#8c564b",
    "lunch": "#d98c00",
    "shoes": "#1f77b4",
    "books": "#2a9d5c",
    "music": "#b03060",
}
_SHOWN = 400  # lines of each kind; more would be a blot

Pair = tuple[str, str]


def draw_map(city: City, live: list[Pair], late: list[Pair], path: Path) -> None:
    """Draw the city to a PNG or SVG file."""
    plt = extra("matplotlib.pyplot")
    figure, axes = plt.subplots(figsize=(9, 8.2), layout="constrained")
    axes.set_aspect(1 / math.cos(math.radians(city.areas[0].lat)))
    for area in city.areas:
        axes.plot(area.lon, area.lat, "o", ms=26, color="#e9e4da", mec="none", zorder=0)
    for places in city.paths.values():
        lons, lats = zip(*((place.lon, place.lat) for place in places), strict=True)
        axes.plot(lons, lats, "-", color="#c9c9c9", lw=0.5, zorder=1)
    where = {one.id: one.location for one in city.customers.values()}
    axes.scatter(*_sides(where.values()), s=3, color="#9a9a9a", zorder=2, label="customers")
    offered = {one.id: one for one in city.promotions}
    for kind, color in _KINDS.items():
        shops = (one.location for one in city.promotions if one.attributes["kind"] == (kind,))
        axes.scatter(*_sides(shops), s=16, color=color, marker="^", zorder=4, label=kind)
    for pairs, color, width, label in (
        (live, "#4477aa", 0.6, "told at once"),
        (late, "#dd2244", 1.4, "told who came by later"),
    ):
        step = max(1, len(pairs) // _SHOWN)
        for number, (event, customer) in enumerate(pairs[::step]):
            ends = [offered[event].location, _place_near(city, customer, offered[event].location)]
            axes.plot(
                *_sides(ends), "-", color=color, lw=width, alpha=0.7, zorder=3,
                label=label if not number else None,
            )  # fmt: skip
    axes.set_title(
        f"{len(city.customers):,} customers, {len(city.promotions):,} promotions: "
        f"{len(live):,} told at once, {len(late):,} told who came by later"
    )
    axes.set_xlabel("longitude")
    axes.set_ylabel("latitude")
    axes.legend(loc="upper right", fontsize=8, framealpha=0.9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _place_near(city: City, customer: str, place: Point | None) -> Point | None:
    """Of the places a customer has been to the nearest, where he was told."""
    assert place is not None
    been = city.paths.get(customer, [])
    here = city.customers[customer].location
    known = [*been, *([here] if here else [])]
    return min(known, key=lambda one: math.hypot(one.lon - place.lon, one.lat - place.lat))


def _sides(places: Iterable[Point | None]) -> tuple[list[float], list[float]]:
    known = [place for place in places if place is not None]
    return [place.lon for place in known], [place.lat for place in known]
