"""A city for the demo: areas with shops, promotions that expire, customers who walk about."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tamis.model import Event, Subscription
from tamis.values import Point

CENTER = (4.9, 52.37)
KINDS = ("coffee", "lunch", "shoes", "books", "music")
N_AREAS = 40
RADIUS_M = 6_000.0  # of the city
_AREA_M = 250.0
_WALKING_SHARE = 0.4
_STRIDE_M = 400.0  # between two places that a walker tells, so that a minute shows something
_LASTS_S = (4.0, 40.0)
_LON_M = 111_195.0 * math.cos(math.radians(CENTER[1]))
_LAT_M = 111_195.0


@dataclass(slots=True)
class City:
    """The folders of the demo, and what was written to them."""

    folder: Path
    n_customers: int
    seed: int
    areas: list[Point] = field(default_factory=list)
    customers: dict[str, Subscription] = field(default_factory=dict)
    walkers: list[str] = field(default_factory=list)
    paths: dict[str, list[Point]] = field(default_factory=dict)
    promotions: list[Event] = field(default_factory=list)
    n_moves: int = 0
    _sequence: int = 0
    _chosen: random.Random = field(default_factory=random.Random)

    def open(self) -> None:
        """Make the folders, the pipeline file and everybody's subscription."""
        self._chosen.seed(self.seed)
        for name in ("promotions", "moves"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "pipeline.toml").write_text(_SETTINGS)
        self.areas = [self._around(Point(*CENTER), RADIUS_M) for _ in range(N_AREAS)]
        for number in range(self.n_customers):
            customer = Subscription(
                f"c{number}",
                f"kind = '{self._chosen.choice(KINDS)}' AND discount >= "
                f"{self._chosen.randrange(0, 50, 10)}",
                priority=self._chosen.randrange(10),
                owner=f"c{number}",
                location=self._around(Point(*CENTER), RADIUS_M),
                radius_m=float(self._chosen.randrange(200, 900, 100)),
            )
            self.customers[customer.id] = customer
        self.walkers = list(self.customers)[: int(_WALKING_SHARE * self.n_customers)]
        self._write_changes(self.customers.values())

    def promote(self, n_promotions: int) -> None:
        """Publish promotions, each in an area and valid for some seconds."""
        lines = []
        for _ in range(n_promotions):
            now = datetime.now(UTC)
            place = self._around(self._chosen.choice(self.areas), _AREA_M)
            held = {
                "kind": self._chosen.choice(KINDS), "discount": self._chosen.randrange(0, 60, 5)
            }  # fmt: skip
            event = Event(
                f"p{len(self.promotions) + 1}", held, time=now,
                until=now + timedelta(seconds=self._chosen.uniform(*_LASTS_S)), location=place,
            )  # fmt: skip
            self.promotions.append(event)
            made = event.to_json()
            where = {"lon": place.lon, "lat": place.lat}
            times = {name: made[name] for name in ("time", "until")}
            lines.append({"id": event.id, **held, **where, **times})
        self._put("promotions", f"{len(self.promotions):08}.jsonl", lines)

    def walk(self, n_walkers: int) -> None:
        """Let some walkers go towards an area."""
        moved = []
        for id in self._chosen.sample(self.walkers, min(n_walkers, len(self.walkers))):
            customer = self.customers[id]
            assert customer.location is not None
            aim = self._chosen.choice(self.areas)
            place = _towards(customer.location, aim, _STRIDE_M)
            self.paths.setdefault(id, [customer.location]).append(place)
            self.customers[id] = replace(customer, location=place)
            moved.append(self.customers[id])
        self.n_moves += len(moved)
        self._write_changes(moved)

    def _around(self, center: Point, radius_m: float) -> Point:
        """A place near a center, the nearer the likelier."""
        angle, far = self._chosen.uniform(0, math.tau), radius_m * self._chosen.random() ** 0.8
        return Point(
            center.lon + far * math.cos(angle) / _LON_M, center.lat + far * math.sin(angle) / _LAT_M
        )

    def _write_changes(self, customers: Iterable[Subscription]) -> None:
        lines = []
        for one in customers:
            self._sequence += 1
            lines.append({"sequence": self._sequence, **one.to_json()})
        self._put("moves", f"{self._sequence:08}.jsonl", lines)

    def _put(self, folder: str, name: str, lines: Iterable[dict[str, object]]) -> None:
        """Put a whole file into a folder; a name that begins with a dot is passed over."""
        aside = self.folder / folder / f".{name}"
        aside.write_text("".join(json.dumps(line) + "\n" for line in lines))
        aside.rename(self.folder / folder / name)


def _towards(place: Point, aim: Point, stride_m: float) -> Point:
    east_m, north_m = (aim.lon - place.lon) * _LON_M, (aim.lat - place.lat) * _LAT_M
    share = min(1.0, stride_m / max(1.0, math.hypot(east_m, north_m)))
    return Point(
        place.lon + share * (aim.lon - place.lon), place.lat + share * (aim.lat - place.lat)
    )


_SETTINGS = """name = "city"
state = "state"

[events]
path = "promotions"
files_per_batch = 20
[events.columns]
time = "time"
until = "until"                # promotions are kept, and told to who comes by later
points = { location = ["lon", "lat"] }

[subscriptions]
path = "moves"

[matching]
tokens = 4

[notifications]
outbox = "outbox"

[spark]
"spark.master" = "local[2]"
"spark.driver.memory" = "2g"
"""
