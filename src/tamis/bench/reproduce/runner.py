"""The runner: cells of the figures that are asked for, point by point, a result file each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from tamis.bench.measure import no_gc
from tamis.bench.reproduce.figures import Experiment, Figure, Line, Paper, key_of
from tamis.bench.results import Key, Results

STARTS, DONE, KEPT = "starts", "done", "kept"


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of an experiment at one point."""

    paper: Paper
    experiment: Experiment
    point: float
    line: Line

    def key(self, scale: float) -> Key:
        """Its result file."""
        return key_of(self.paper, self.experiment, self.point, self.line, scale)

    def title(self, scale: float) -> str:
        """The cell in words."""
        point = self.experiment.at_scale(self.point, scale)
        return f"{self.paper.key}, {self.experiment.axis} {point:,.10g}: {self.line.label}"

    @property
    def weight(self) -> float:
        """About how long it takes, in no unit."""
        return max(1e5, self.experiment.size(self.point))


Listener = Callable[[Cell, str, float], None]


def cells_of(paper: Paper, figures: Iterable[Figure], *, is_headline: bool) -> list[Cell]:
    """The cells of some figures, each once, those of a point together.

    Lines of algorithms that are not in the registry are left out.
    """
    wanted = list(figures)
    cells = []
    for experiment in paper.experiments:
        lines = _lines_of(paper, [one for one in wanted if one.experiment == experiment.name])
        cells += [
            Cell(paper, experiment, point, line)
            for point in (experiment.chosen(is_headline) if lines else ())
            for line in lines
        ]
    return cells


def _lines_of(paper: Paper, figures: Sequence[Figure]) -> list[Line]:
    shown = {line.key for figure in figures for line in paper.lines_of(figure)}
    lines = paper.experiment(figures[0].experiment).lines if figures else ()
    return [line for line in lines if line.key in shown and line.is_there]


def run(
    cells: Sequence[Cell],
    results: Results,
    scale: float,
    *,
    resume: bool = False,
    listen: Listener = lambda cell, state, seconds: None,
) -> None:
    """Measure cells; each is saved as soon as it is measured.

    With ``resume`` those that have a result file are kept. ``listen(cell, state, seconds)``
    hears of every cell.
    """
    case: Any = None
    place: tuple[str, str, float] | None = None
    for cell in cells:
        key = cell.key(scale)
        if resume and key in results:
            listen(cell, KEPT, 0.0)
            continue
        listen(cell, STARTS, 0.0)
        start = perf_counter()
        if place != (cell.paper.key, cell.experiment.name, cell.point):
            case = None
            gc.collect()
            case = cell.experiment.make(cell.point, scale)
            place = (cell.paper.key, cell.experiment.name, cell.point)
        with no_gc():
            found = cell.experiment.measure(case, cell.line)
        seconds = perf_counter() - start
        results.write(key, found, seconds)
        listen(cell, DONE, seconds)
