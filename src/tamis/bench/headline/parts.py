"""Parts: what the headline benchmark measures of each, and what is aimed for there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tamis.bench.aims import Aim, Reached, reached
from tamis.bench.results import Key, Listener, Results
from tamis.bench.suite import ALL

Measure = Callable[[Results, Sequence[Key], Listener], None]
"""Measures the cells that have no result file yet, in their order."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A cell of the plan.

    ``seconds`` is about how long it takes at full size, ``share`` at how much of the scale it
    runs.

    >>> Planned("match", "W5", 30, share=0.1).key(0.5).file_name
    'W5-x0.05-match.json'
    """

    cell: str
    workload: str
    seconds: float
    share: float = 1.0

    def key(self, scale: float) -> Key:
        """Its result file."""
        return Key(
            self.cell, self.workload, 1.0 if self.workload == ALL else rounded(self.share * scale)
        )


def rounded(scale: float) -> float:
    """A scale as file names have it, so that products of shares are equal where they should be."""
    return float(f"{scale:g}")


@dataclass(frozen=True, slots=True)
class Part:
    """A part: its cells, how they are measured, and the page that tells more.

    Cells of one workload that follow each other are measured together, as they share a case,
    unless each ``is_apart``.
    """

    name: str
    title: str
    page: str
    folder: str
    cells: tuple[Planned, ...]
    measure: Measure
    aims: tuple[Aim, ...] = ()
    is_apart: bool = False

    def results(self, root: Path) -> Results:
        """Its result files, in a folder of a directory."""
        return Results(root / self.folder)

    def keys(self, scale: float) -> list[Key]:
        """Its cells at a scale."""
        return [cell.key(scale) for cell in self.cells]

    def groups(self, scale: float) -> Iterator[list[Key]]:
        """The cells that are measured together."""
        keys = self.keys(scale)
        if self.is_apart:
            yield from ([key] for key in keys)
            return
        for _, group in groupby(keys, key=lambda key: (key.workload, key.scale)):
            yield list(group)

    def reached(self, root: Path, scale: float) -> list[Reached]:
        """What was reached of its aims."""
        return list(reached(self.results(root), scale, self.aims))
