"""A run of the headline benchmark: cell by cell; what fails does not keep the others from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tamis.bench.headline.parts import Part
from tamis.bench.results import Key

FAILED = "failed"

Listener = Callable[[Part, Key, str, float], None]
"""Told of a cell that it is kept, starts, is done or has failed, and how many seconds it took."""


class Failure(NamedTuple):
    """A cell that could not be measured, and why."""

    part: str
    cell: str
    problem: str


@dataclass(slots=True)
class HeadlineRun:
    """A run over some parts; each cell is saved as soon as it is measured."""

    root: Path
    scale: float
    listen: Listener = lambda part, key, state, seconds: None
    failures: list[Failure] = field(default_factory=list)

    def measure(self, parts: Sequence[Part], *, resume: bool) -> None:
        """Measure all cells; with ``resume`` those that have no result file.

        Without it the old results go first: what a run leaves is its own, and one that was
        stopped can be resumed.
        """
        if not resume:
            for part in parts:
                for key in part.keys(self.scale):
                    part.results(self.root).remove(key)
        for part in parts:
            for group in part.groups(self.scale):
                self._measure_group(part, group)

    def _measure_group(self, part: Part, group: Sequence[Key]) -> None:
        results = part.results(self.root)
        left = []
        for key in group:
            if key in results:
                self.listen(part, key, "kept", 0.0)
            else:
                left.append(key)
        while left:
            try:
                part.measure(results, left, lambda key, *said: self.listen(part, key, *said))
                return
            except Exception as error:  # whatever it is, the other cells are worth having
                # All may be there: what comes after a cell, as the end of a server, fails too.
                failed, *left = [key for key in left if key not in results] or left[-1:]
                problem = f"{type(error).__name__}: {error}"
            self.failures.append(Failure(part.name, failed.title, problem))
            self.listen(part, failed, FAILED, 0.0)
