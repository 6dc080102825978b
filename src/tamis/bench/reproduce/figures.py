"""Papers, figures, experiments and lines: what a reproduction is declared with.

An experiment varies one thing over some points and measures each of its lines there; a cell is
one line at one point, measured once and kept in one file. A figure shows one or more metrics of
the cells of an experiment; several figures may show the same cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tamis.algorithms import ALGORITHMS
from tamis.bench.reproduce.checks import Check
from tamis.bench.results import Key

OURS = "tamis"


@dataclass(frozen=True, slots=True)
class Line:
    """An algorithm with its parameters, as a figure names it.

    ``algorithm`` is a name of the registry, or two of them joined by "+".
    """

    key: str
    label: str
    algorithm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        """Whether the registry has it."""
        return all(name in ALGORITHMS for name in self.algorithm.split("+"))


TAMIS = Line(OURS, "Tamis", "tamis")


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is varied, and what is measured of whom.

    ``make(point, scale)`` makes the case of a point, ``measure(case, line)`` a cell of it.
    ``size(point)`` is how many subscriptions or events there are at full scale, which says how
    long cells take. ``headline`` are the points of the short run at full scale.
    """

    name: str
    axis: str
    points: tuple[float, ...]
    headline: tuple[float, ...]
    lines: tuple[Line, ...]
    make: Callable[[float, float], Any]
    measure: Callable[[Any, Line], dict[str, Any]]
    size: Callable[[float], float] = lambda point: 1e6

    def chosen(self, is_headline: bool) -> tuple[float, ...]:
        """The points of a run."""
        return self.headline if is_headline else self.points

    @property
    def varies_size(self) -> bool:
        """Whether the points are numbers of subscriptions or events."""
        return self.size(1.0) != self.size(2.0)

    def at_scale(self, point: float, scale: float) -> float:
        """A point as it is measured: numbers of subscriptions or events shrink with the scale."""
        return point * scale if self.varies_size else point


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a cell: where it is, how it is called, its standard deviation if there is one.

    >>> Metric("match.mean_ms", "ms").of({"match": {"mean_ms": 2.5}})
    2.5
    """

    path: str
    label: str
    deviation: str = ""
    factor: float = 1.0

    def of(self, found: Mapping[str, Any]) -> float | None:
        """The number; None where a cell does not have it."""
        number = at(found, self.path)
        return None if number is None else float(number) * self.factor

    def deviation_of(self, found: Mapping[str, Any]) -> float | None:
        """Its standard deviation."""
        number = at(found, self.deviation) if self.deviation else None
        return None if number is None else float(number) * self.factor


def at(found: Mapping[str, Any], path: str) -> Any:
    """What stands at a dotted path; a number in it counts in a list; None where it ends."""
    held: Any = found
    for word in path.split("."):
        if isinstance(held, Mapping):
            held = held.get(word)
        elif isinstance(held, list) and int(word) < len(held):
            held = held[int(word)]
        else:
            return None
    return held


class Kind(Enum):
    """How a figure is drawn."""

    LINES = "lines"
    """The points across, a line each; the first metric."""
    BARS = "bars"
    """The metrics across, a bar a line; the first point."""
    LEVELS = "levels"
    """The metrics across, one a priority, a line each; the first point."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure or a table of a paper, what is claimed there, and what must be so for it to hold.

    ``claim`` is the paper's, in a sentence with its number; ``note`` says what our experiment
    does differently. ``lines`` are the keys of those shown, all of the experiment if none are
    named. ``beside`` is another experiment of the same points, for checks against its numbers.
    """

    number: str
    title: str
    experiment: str
    metrics: tuple[Metric, ...]
    claim: str
    checks: tuple[Check, ...]
    kind: Kind = Kind.LINES
    lines: tuple[str, ...] = ()
    is_headline: bool = False
    is_log: bool = True
    is_more_better: bool = False
    main: int = 0  # the metric, of bars and levels, by which Tamis is compared
    table: str = ""
    note: str = ""
    beside: str = ""

    @property
    def name(self) -> str:
        """Figure and number, or the table."""
        is_table = self.number.startswith("table")
        return self.number.capitalize() if is_table else f"Fig. {self.number}"


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: its figures and the experiments behind them.

    ``reasons`` say why the claim of a figure, by its number, does not hold here; ``source``
    introduces a claim.
    """

    key: str
    title: str
    setting: str
    experiments: tuple[Experiment, ...]
    figures: tuple[Figure, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)
    source: str = "The paper"

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name."""
        return next(one for one in self.experiments if one.name == name)

    def lines_of(self, figure: Figure) -> tuple[Line, ...]:
        """The lines a figure shows."""
        lines = self.experiment(figure.experiment).lines
        return tuple(one for one in lines if not figure.lines or one.key in figure.lines)


def key_of(paper: Paper, experiment: Experiment, point: float, line: Line, scale: float) -> Key:
    """The result file of a cell."""
    return Key(line.key, f"{paper.key}-{experiment.name}", scale, f"{point:g}")
