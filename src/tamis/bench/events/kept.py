"""Kept events: those of W4 with a validity, the questions put to them, and the right answers.

Events are at the 10,000 trading areas of a city, questions around its pick-up points. There are
two kinds: *boxes*, as the MO-Tree paper has them, ask for ranges of ``lon`` and ``lat`` from 0 to
1 and of four other attributes; *near me* asks for a circle or a square around a location, and for
four attributes too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.bench.cases import WrongResult, filter_of_box
from tamis.bench.events.nearby import REACH, make_nearby
from tamis.bench.measure import time_once
from tamis.bench.reproduce.places import ATTRIBUTES, placed_boxes, placed_events, trading_areas
from tamis.bench.workloads import SEED, Floats, Workload
from tamis.events import EventStore
from tamis.language import evaluate
from tamis.model import Event, Subscription
from tamis.values import Point

N_QUESTIONS = 1_000
N_CHECKED = 20
TABLE = 100_000  # events that are inserted at once
START = datetime(2026, 6, 1, tzinfo=UTC)
HOUR_S = 3_600
_N_ASKED = 64  # questions that the layout of a store follows


@dataclass(frozen=True, slots=True)
class Kept:
    """N events and some questions.

    ``values`` is (N, 20), NaN where an event lacks the attribute, its place first; ``until_s`` are
    seconds after START, of which no event is without at least an hour; ``windows`` (Q, 2, 2) hold
    the place that each question asks for, or more.
    """

    values: Floats
    until_s: npt.NDArray[np.int64]
    questions: list[Subscription]
    windows: Floats
    boxes: Workload | None  # the questions as boxes; None if they are near me

    def __len__(self) -> int:
        return len(self.values)

    def table(self, first: int, last: int) -> pa.Table:
        """Some of the events for ``EventStore.insert_many``."""
        some = self.values[first:last]
        arrays: dict[str, Any] = {
            "event_id": pa.array([f"e{row}" for row in range(first, first + len(some))]),
            "event_until": pa.array(
                (self.until_s[first:last] + int(START.timestamp())) * 1_000_000,
                pa.timestamp("us", "UTC"),
            ),
        }
        columns = dict(zip(ATTRIBUTES, map(pa.array, some.T.copy()), strict=True))
        if self.boxes is None:
            place = [columns.pop("lon"), columns.pop("lat")]
            arrays["event_location"] = pa.StructArray.from_arrays(place, ["lon", "lat"])
        return pa.table({**arrays, **columns})

    def attributes(self, row: int) -> dict[str, Any]:
        """One of the events as a dict; what is missing has no key."""
        held = zip(ATTRIBUTES, self.values[row].tolist(), strict=True)
        made: dict[str, Any] = {name: value for name, value in held if value == value}
        if self.boxes is None:
            made["location"] = Point(made.pop("lon"), made.pop("lat"))
        return made

    def event(self, row: int) -> Event:
        """One of the events."""
        until = START + timedelta(seconds=int(self.until_s[row]))
        return Event(f"e{row}", self.attributes(row), until=until)

    def expected(self, question: int, n_events: int, now_s: float = 0) -> list[int]:
        """Which of the first so many events are the answer, newest first, by the oracle."""
        (west, east), (south, north) = self.windows[question]
        lon, lat = self.values[:n_events, 0], self.values[:n_events, 1]
        is_near = (west <= lon) & (lon <= east) & (south <= lat) & (lat <= north)
        rows = np.flatnonzero(is_near & (self.until_s[:n_events] > now_s))[::-1]
        condition = self.questions[question].condition
        return [row for row in rows.tolist() if evaluate(condition, self.attributes(row))]


def make_boxes(n: int, n_questions: int = N_QUESTIONS) -> Kept:
    """Events with ``lon`` and ``lat``, and boxes that ask for them."""
    boxes = placed_boxes(n_questions, n_events=1)
    areas = trading_areas(np.random.default_rng([SEED, 41]))
    values = placed_events(np.random.default_rng([SEED, 43]), n, areas, 1.0)
    questions = [Subscription(f"q{row}", filter_of_box(boxes, row)) for row in range(n_questions)]
    windows = np.stack([boxes.low[:, :2], boxes.high[:, :2]], axis=2)
    return Kept(values, _ends(n), questions, windows, boxes)


def make_near_me(n: int, n_questions: int = N_QUESTIONS) -> Kept:
    """Events with a location, and subscriptions around theirs."""
    nearby = make_nearby(n_questions, n_events=n)
    windows = np.stack([nearby.places - REACH, nearby.places + REACH], axis=2)
    return Kept(nearby.values, _ends(n), nearby.subscriptions("q"), windows, None)


def _ends(n: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng([SEED, 62]).integers(HOUR_S, 11 * HOUR_S, n)


def at(seconds: float) -> datetime:
    """A moment of the benchmark."""
    return START + timedelta(seconds=seconds)


def fill(kept: Kept, n: int) -> tuple[EventStore, float]:
    """A store of the first n events, inserted as tables, and the seconds an event took.

    The layout of its segments follows what is asked after the first table.
    """
    store, seconds = EventStore(), 0.0
    for first in range(0, n, TABLE):
        table = kept.table(first, min(n, first + TABLE))
        _, took = time_once(partial(store.insert_many, table, START))
        seconds += took
        if first == 0:
            store.match_batch(kept.questions[-_N_ASKED:], now=START)
    _, took = time_once(store._collection.wait_for_merging)
    return store, (seconds + took) / n


def check(kept: Kept, store: EventStore, n: int, now_s: float = 0) -> int:
    """Compare some answers with the oracle; how many events they held."""
    n_found = 0
    for number in range(min(N_CHECKED, len(kept.questions))):
        wanted = [f"e{row}" for row in kept.expected(number, n, now_s)]
        for limit in (None, 10):
            found = store.match(kept.questions[number], now=at(now_s), limit=limit)
            if found != wanted[:limit]:
                raise WrongResult(
                    f"question {number} found {len(found):,} events, the oracle {len(wanted):,}, "
                    "or in another order. Nothing was timed; please report this"
                )
        n_found += len(wanted)
    return n_found
