"""``tamis bench engine``: measure what is asked for and not yet there, cell by cell."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tamis.bench.cases import Case
from tamis.bench.results import Key, Listener, Results, measure_cells
from tamis.bench.suite import ALL, CELLS, make_case
from tamis.bench.sweeps import SWEEPS, measure_point


@dataclass(slots=True)
class Run:
    """A run over the cells of a plan; each is saved as soon as it is measured.

    ``listen(key, state, seconds)`` hears of every cell: "starts", "done" or "kept".
    """

    results: Results
    resume: bool = False
    listen: Listener = lambda key, state, seconds: None
    _case: Case | None = field(default=None, init=False)

    def measure(self, keys: Sequence[Key]) -> None:
        """Measure all; with ``resume`` what has no result file yet."""
        measure_cells(self.results, keys, self._found, self.listen, resume=self.resume)
        self._case = None

    def _found(self, key: Key) -> dict[str, Any]:
        if key.cell in SWEEPS:
            self._case = None
            gc.collect()
            return measure_point(key)
        if key.workload == ALL:
            return CELLS[key.cell].measure(None)
        return CELLS[key.cell].measure(self._case_of(key))

    def _case_of(self, key: Key) -> Case:
        """The case in use, or after letting go of it the one of this workload."""
        held = self._case
        if held is None or (held.name, held.asked_scale) != (key.workload, key.scale):
            self._case = held = None
            gc.collect()
            self._case = held = make_case(key.workload, key.scale)
        return held
