"""Reading: the numbers of a figure from its result files, at the largest scale there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tamis.bench.reproduce.checks import Against, Check, On
from tamis.bench.reproduce.figures import OURS, Figure, Kind, Line, Metric, Paper, key_of
from tamis.bench.reproduce.verdicts import Judged, Part, Verdict, verdict_of
from tamis.bench.results import Results


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure with what was found: of each line the cells by point.

    ``beside`` is the same of the experiment that its checks compare with, if there is one.
    """

    paper: Paper
    figure: Figure
    scale: float
    cells: dict[str, dict[float, dict[str, Any]]]
    beside: Shown | None = None

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines that have a result."""
        return tuple(one for one in self.paper.lines_of(self.figure) if self.cells.get(one.key))

    @property
    def absent(self) -> tuple[Line, ...]:
        """The lines of the figure that were not measured."""
        return tuple(one for one in self.paper.lines_of(self.figure) if one not in self.lines)

    @property
    def labels(self) -> dict[str, str]:
        """The name of every line of the experiment."""
        lines = self.paper.experiment(self.figure.experiment).lines
        return {line.key: line.label for line in lines}

    def data(self, metric: Metric | None = None) -> dict[str, dict[float, float]]:
        """The numbers of each line: by point, or by the place of the metric for bars and levels."""
        return {line.key: self.numbers(line, metric) for line in self.lines}

    def numbers(self, line: Line, metric: Metric | None = None) -> dict[float, float]:
        """Those of one line."""
        held = self.cells[line.key]
        if self.figure.kind is Kind.LINES:
            chosen = metric or self.figure.metrics[0]
            found = {x: chosen.of(cell) for x, cell in sorted(held.items())}
        else:
            cell = held[min(held)]
            found = {float(i): one.of(cell) for i, one in enumerate(self.figure.metrics)}
        return {x: y for x, y in found.items() if y is not None}

    def point(self, x: float) -> str:
        """A point as it was measured, in words."""
        experiment = self.paper.experiment(self.figure.experiment)
        return f"{experiment.at_scale(x, self.scale):,.10g}"

    def skipped(self) -> list[str]:
        """Which lines were not measured somewhere, and why."""
        return [
            f"{line.label} at {self.point(x)}: {cell['skipped']}"
            for line in self.lines
            for x, cell in sorted(self.cells[line.key].items())
            if "skipped" in cell
        ]

    def judged(self) -> list[Judged]:
        """What became of every check."""
        return [check.judge(self._asked(check), self.labels) for check in self.figure.checks]

    def _asked(self, check: Check) -> dict[str, dict[float, float]]:
        """The numbers that a check is about."""
        if isinstance(check, On):
            return self.data(self.figure.metrics[check.metric])
        if not isinstance(check, Against):
            return self.data()
        others = self.beside.data() if self.beside else {}
        return {
            key: {x: y / others[key][x] for x, y in held.items() if others[key].get(x)}
            for key, held in self.data().items()
            if key in others
        }

    def parts(self) -> list[Part]:
        """The parts of the claim, and what became of each."""
        return [part for one in self.judged() for part in one.parts]

    @property
    def verdict(self) -> Verdict:
        """What became of the claim."""
        return verdict_of(self.judged())

    @property
    def reason(self) -> str:
        """Why the claim does not hold or cannot be told; empty if it holds."""
        is_told = self.verdict is Verdict.HOLDS
        return "" if is_told else self.paper.reasons.get(self.figure.number, "")

    def ours(self) -> str:
        """Tamis against the lowest of the others, in words; empty where it is not measured."""
        data = self.data()
        mine = data.get(OURS, {})
        rivals = {key: held for key, held in data.items() if key != OURS and held}
        shared = [x for x in mine if any(x in held for held in rivals.values())]
        if not shared:
            return ""
        is_more_better, is_line = self.figure.is_more_better, self.figure.kind is Kind.LINES
        x = max(shared) if is_line else float(self.figure.main)
        if x not in shared:
            return ""
        best = (max if is_more_better else min)(
            (key for key in rivals if x in rivals[key]), key=lambda key: rivals[key][x]
        )
        where = f" at {self.point(x)}" if is_line else f", {self.figure.metrics[int(x)].label}"
        return (
            f"Tamis{where}: {number(mine[x])} against {number(rivals[best][x])} of "
            f"{self.labels[best]}, the {'highest' if is_more_better else 'lowest'} of the others"
        )


def read(results: Results, paper: Paper, figure: Figure) -> Shown | None:
    """A figure at the largest scale that has results; None if none has."""
    workload = f"{paper.key}-{figure.experiment}"
    scales = {key.scale for key, _ in results.all() if key.workload == workload}
    for scale in sorted(scales, reverse=True):
        shown = read_at(results, paper, figure, scale)
        if any(shown.cells.values()):
            return shown
    return None


def read_at(results: Results, paper: Paper, figure: Figure, scale: float) -> Shown:
    """A figure at one scale, whatever of it there is."""
    experiment = paper.experiment(figure.experiment)
    cells: dict[str, dict[float, dict[str, Any]]] = {}
    for line in paper.lines_of(figure):
        for point in experiment.points:
            found = results.read(key_of(paper, experiment, point, line, scale))
            if found:
                cells.setdefault(line.key, {})[point] = found
    other = replace(figure, experiment=figure.beside, beside="")
    beside = read_at(results, paper, other, scale) if figure.beside else None
    return Shown(paper, figure, scale, cells, beside)


def number(value: float) -> str:
    """A number as a table shows it.

    >>> [number(value) for value in (1234.5, 12.345, 0.01234, 0.0)]
    ['1,234', '12.3', '0.0123', '0']
    """
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
