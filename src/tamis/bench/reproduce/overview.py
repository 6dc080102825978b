"""Every algorithm of the registry on W1, beside the others: a cell each."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tamis.algorithms import ALGORITHMS
from tamis.bench.measure import no_gc
from tamis.bench.reproduce.boxes import BoxSet, measure_boxes
from tamis.bench.reproduce.figures import Line
from tamis.bench.results import Key, Listener, Results, measure_cells
from tamis.bench.workloads import make

WORKLOAD = "W1"
# BEQ-Tree keeps events; asked the other way round it scans as the baseline does.
NAMES = tuple(name for name in ALGORITHMS if name != "beq_tree")


@dataclass(slots=True)
class OverviewRun:
    """A run over some algorithms, each with its own parameters' defaults."""

    results: Results
    listen: Listener
    _case: BoxSet | None = field(default=None, init=False)

    def measure(self, keys: Sequence[Key]) -> None:
        """Measure what has no result file yet."""
        measure_cells(self.results, keys, self._found, self.listen, resume=True)
        self._case = None

    def _found(self, key: Key) -> dict[str, Any]:
        if self._case is None:
            self._case = BoxSet(make(key.workload, key.scale))
        gc.collect()
        with no_gc():
            return measure_boxes(self._case, Line(key.cell, key.cell, key.cell))
