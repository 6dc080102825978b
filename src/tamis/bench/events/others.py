"""The others: trees of the registry and ``rtree``, asked the same as the index and the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tamis.algorithms import make
from tamis.bench.cases import BoxCase, WrongResult
from tamis.bench.events.kept import N_CHECKED, Kept
from tamis.bench.extras import extra
from tamis.bench.workloads import Floats, Workload
from tamis.bench.yardsticks import RTree
from tamis.matching import Table

Numbers = npt.NDArray[np.int32]
Find = Callable[[Floats], Numbers]

# The place and the most popular attributes, as in section 4.2 of the MO-Tree paper.
_PARAMETERS = {"mo_tree": {"indexed": ("lon", "lat", "a3", "a4", "a5", "a6")}}


def finders(case: BoxCase) -> Iterator[tuple[str, Find]]:
    """How others find the subscriptions of an event, checked against the scan.

    One after the other, as all at once would take gigabytes. BEQ-Tree keeps events only.
    """
    makers: dict[str, Callable[[], Find]] = {
        "mo_tree": lambda: _mo_tree(case.workload).match,
        "rtree": lambda: RTree(case.workload).match,
    }
    for name, make_it in makers.items():
        match = make_it()
        for event in case.workload.values[:N_CHECKED]:
            if not np.array_equal(match(event), case.scan.match(event)):
                raise WrongResult(f"{name} and the scan disagree. Nothing was timed")
        yield name, match


def _mo_tree(workload: Workload) -> Any:
    tree = make("mo_tree", workload.attributes, **_PARAMETERS["mo_tree"])
    tree.add_many(Table.from_boxes(workload.low, workload.high))
    return tree


class Keeper(Protocol):
    """Something that keeps events and finds those that a box asks for."""

    def match(self, question: int) -> Numbers:
        """The numbers of the events that a question asks for, ascending."""

    def insert(self, values: Floats) -> None:
        """Keep events, a row each."""

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget events."""


class Tree:
    """A tree of the registry."""

    def __init__(self, name: str, kept: Kept, n: int) -> None:
        boxes = kept.boxes
        assert boxes is not None
        self._matcher = make(name, boxes.attributes, **_PARAMETERS.get(name, {}))
        self._matcher.add_events(kept.values[:n], until=kept.until_s[:n])
        self._tables = [
            Table.from_boxes(boxes.low[[row]], boxes.high[[row]]) for row in range(len(boxes.low))
        ]

    def match(self, question: int) -> Numbers:
        """The events that a question asks for."""
        found: Numbers = self._matcher.match_subscription(self._tables[question], now=0)
        return found

    def insert(self, values: Floats) -> None:
        """Keep events."""
        self._matcher.add_events(values)

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget events."""
        self._matcher.remove_events(numbers)


class PointTree:
    """The places in an R*-tree of PyPI's ``rtree``; what it finds is looked at with NumPy."""

    def __init__(self, kept: Kept, n: int) -> None:
        boxes = kept.boxes
        assert boxes is not None
        self._boxes, self._values = boxes, kept.values[:n]
        places = np.ascontiguousarray(kept.values[:n, :2])
        self._tree = extra("rtree.index").Index((np.arange(n), places, places))

    def match(self, question: int) -> Numbers:
        """The events that a question asks for."""
        low, high = self._boxes.low[question], self._boxes.high[question]
        found, _ = self._tree.intersection_v(low[None, :2], high[None, :2])
        rows = np.sort(found)
        asked = np.flatnonzero(~np.isnan(low))
        held = self._values[rows[:, None], asked]
        kept: Numbers = rows[((low[asked] <= held) & (held <= high[asked])).all(axis=1)]
        return kept

    def insert(self, values: Floats) -> None:
        """Keep events; their values are not needed again."""
        for number, (lon, lat) in enumerate(values[:, :2].tolist(), 2**40):
            self._tree.insert(number, (lon, lat, lon, lat))

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget events."""
        for number in numbers:
            lon, lat = self._values[number, :2].tolist()
            self._tree.delete(number, (lon, lat, lon, lat))


def keepers(kept: Kept, n: int) -> dict[str, Keeper]:
    """Others that keep the first n events, checked."""
    made: dict[str, Keeper] = {
        "mo_tree": Tree("mo_tree", kept, n),
        "beq_tree": Tree("beq_tree", kept, n),
        "rtree": PointTree(kept, n),
    }
    for number in range(min(N_CHECKED, len(kept.questions))):
        wanted = kept.expected(number, n)[::-1]
        for name, keeper in made.items():
            if keeper.match(number).tolist() != wanted:
                raise WrongResult(f"{name} and the oracle disagree. Nothing was timed")
    return made
