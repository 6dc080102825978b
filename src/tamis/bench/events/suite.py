"""The cells of the benchmark of space and time, and what is aimed for."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tamis.bench.aims import Aim
from tamis.bench.events.asking import measure_subscriptions
from tamis.bench.events.keeping import measure_expiry, measure_insert
from tamis.bench.events.matching import measure_boxes, measure_near_me, measure_uniform
from tamis.bench.events.memory import measure_memory
from tamis.bench.events.moving import Movers, measure_move
from tamis.bench.events.nearby import make_nearby
from tamis.bench.events.polygons import measure_polygon
from tamis.bench.results import Key, Listener, Results, measure_cells
from tamis.bench.suite import UnknownCell, known

WORKLOAD = "W4"
FULL_SIZE = 1_000_000  # subscriptions, and events, to which the aims refer
MOST_NEAR_ME = 1_000_000  # each takes 60 µs to make
CELLS = ("matching", "polygon", "move", "subscriptions", "insert", "expiry", "memory")
AT_FULL_SIZE = ("polygon",)  # cells that other sizes have not
NEAR_ME = ("polygon", "move")  # cells of nothing else

AIMS: tuple[Aim, ...] = (
    Aim("one event, near me", "matching", WORKLOAD, "near_me.median_us", 18.0, "µs"),
    Aim("one event, boxes", "matching", WORKLOAD, "boxes.median_us", 18.0, "µs"),
    Aim("one event, W4 of `bench engine`", "matching", WORKLOAD, "uniform.median_us", 18.0, "µs"),
    Aim("one subscription, boxes", "subscriptions", WORKLOAD, "boxes.median_us", 100.0, "µs"),
    Aim("one subscription, near me", "subscriptions", WORKLOAD, "near_me.median_us", 100.0, "µs"),
    Aim("insert, one by one", "insert", WORKLOAD, "one.median_us", 5.0, "µs"),
    Aim("insert, one by one, mean", "insert", WORKLOAD, "one.mean_us", 5.0, "µs"),
    Aim("insert, tables of 10,000", "insert", WORKLOAD, "tables.us_per_event", 5.0, "µs/event"),
    Aim("expiry, amortised", "expiry", WORKLOAD, "us_per_event", 5.0, "µs/event"),
    Aim("move, median", "move", WORKLOAD, "one.median_us", 20.0, "µs"),
    Aim(
        "moves beside a reader of batches", "move", WORKLOAD, "batches.moves_per_second", 50_000.0,
        "/s", at_least=True,
    ),
    Aim(
        "moves beside a reader of single events", "move", WORKLOAD, "one_by_one.moves_per_second",
        50_000.0, "/s", at_least=True,
    ),
    Aim("memory, boxes and events", "memory", WORKLOAD, "boxes.rss_mb", 600.0, "MB"),
    Aim("memory, near me and events", "memory", WORKLOAD, "near_me.rss_mb", 600.0, "MB"),
    Aim("beside far polygons, to boxes", "polygon", WORKLOAD, "far.ratio", 1.1, "×"),
    Aim("beside near polygons, to boxes", "polygon", WORKLOAD, "near.ratio", 1.1, "×"),
)  # fmt: skip


@dataclass(slots=True)
class EventsRun:
    """A run over some cells; each is saved as soon as it is measured."""

    results: Results
    resume: bool
    listen: Listener
    _movers: Movers | None = field(default=None, init=False)

    def measure(self, keys: Sequence[Key]) -> None:
        """Measure all; with ``resume`` what has no result file yet."""
        measure_cells(self.results, keys, self._found, self.listen, resume=self.resume)
        self._forget_movers()

    def _found(self, key: Key) -> dict[str, Any]:
        n = n_of(key)
        has_near_me = n <= MOST_NEAR_ME
        if key.cell == "matching":
            found = measure_boxes(n)
            if not key.point:
                found |= measure_uniform(n)
            return {**found, **(measure_near_me(self._movers_of(n)) if has_near_me else {})}
        if key.cell == "polygon":
            return measure_polygon(self._movers_of(n))
        if key.cell == "move":
            return measure_move(self._movers_of(n))
        self._forget_movers()
        if key.cell == "memory":
            return measure_memory(n, has_near_me)
        return _OF_STORE[key.cell](n)

    def _movers_of(self, n: int) -> Movers:
        """Subscriptions that move; made once for the cells that need them."""
        if self._movers is None or len(self._movers.places) != n:
            self._forget_movers()
            self._movers = Movers(make_nearby(n))
        return self._movers

    def _forget_movers(self) -> None:
        self._movers = None
        gc.unfreeze()
        gc.collect()


_OF_STORE = {
    "subscriptions": measure_subscriptions, "insert": measure_insert, "expiry": measure_expiry,
}  # fmt: skip


def plan(scale: float, only: Iterable[str], sizes: Iterable[str] = ()) -> list[Key]:
    """The cells of a run at full size, then at the other sizes, all times the scale.

    >>> [key.file_name for key in plan(1, ["move", "insert"], ["2M"])]
    ['W4-x1-move.json', 'W4-x1-insert.json', 'W4-x1-insert-2M.json']
    """
    cells = known(only, CELLS)
    keys = [Key(cell, WORKLOAD, scale) for cell in CELLS if cell in cells]
    for size in sorted({size_of(word) for word in sizes} - {FULL_SIZE}):
        too_many = size * scale > MOST_NEAR_ME
        keys += [
            Key(cell, WORKLOAD, scale, spell(size))
            for cell in CELLS
            if cell in cells and cell not in AT_FULL_SIZE and not (too_many and cell in NEAR_ME)
        ]
    return keys


def n_of(key: Key) -> int:
    """How many subscriptions or events a cell has."""
    return max(100, round(size_of(key.point or spell(FULL_SIZE)) * key.scale))


def size_of(word: str) -> int:
    """A size as people write it.

    >>> size_of("2M"), size_of("500k"), spell(500_000)
    (2000000, 500000, '500k')
    """
    held = re.fullmatch(r"(\d+)([kM]?)", word.strip())
    if held is None or int(held[1]) == 0:
        raise UnknownCell(f"{word!r} is no size; expected one such as 500k or 2M")
    return int(held[1]) * {"": 1, "k": 1_000, "M": FULL_SIZE}[held[2]]


def spell(size: int) -> str:
    """A size as people write it."""
    if size % FULL_SIZE == 0:
        return f"{size // FULL_SIZE}M"
    return f"{size // 1_000}k" if size % 1_000 == 0 else str(size)
