"""The cells of the engine benchmark: a table of what is measured on which workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tamis.bench.cases import BoxCase, Case
from tamis.bench.changes import measure_changes, measure_readers
from tamis.bench.files import measure_files
from tamis.bench.first_use import measure_first_use
from tamis.bench.matching import measure_batch, measure_match
from tamis.bench.memory import measure_build, measure_memory
from tamis.bench.others import measure_duckdb, measure_numpy, measure_polars, measure_rtree
from tamis.bench.priorities import measure_priorities
from tamis.bench.results import Key
from tamis.bench.workloads import FULL_SIZES
from tamis.errors import TamisError

BOXES = tuple(FULL_SIZES)
MIXED = "W5"
WORKLOADS = (*BOXES, MIXED)
ALL = "all"  # the workload of a cell that needs none


class UnknownCell(TamisError, ValueError):
    """A cell or workload of this name does not exist."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Something to measure."""

    measure: Callable[[Any], dict[str, Any]]
    workloads: tuple[str, ...] = WORKLOADS


CELLS: dict[str, Cell] = {
    "match": Cell(measure_match),
    "batch": Cell(measure_batch),
    "build": Cell(measure_build),
    "memory": Cell(measure_memory),
    "numpy": Cell(measure_numpy, BOXES),
    "rtree": Cell(measure_rtree, BOXES),
    "duckdb": Cell(measure_duckdb, BOXES),
    "polars": Cell(measure_polars, BOXES),
    "priorities": Cell(measure_priorities, ("W3",)),
    "files": Cell(measure_files),
    "changes": Cell(measure_changes),
    "readers": Cell(measure_readers),
    "first-use": Cell(lambda _: measure_first_use(), (ALL,)),
}


def make_case(name: str, scale: float) -> Case:
    """The case of a workload."""
    if name != MIXED:
        return BoxCase.of(name, scale)
    from tamis.bench.mixed import MixedCase

    return MixedCase(scale)


def plan(workloads: Iterable[str], scale: float, only: Iterable[str]) -> list[Key]:
    """The cells of a run, workload by workload; ``only`` names cells, none means all.

    >>> [key.file_name for key in plan(["W1"], 0.1, ["match", "numpy"])]
    ['W1-x0.1-match.json', 'W1-x0.1-numpy.json']
    """
    chosen, cells = known(workloads, WORKLOADS), known(only, tuple(CELLS))
    keys = [
        Key(cell, workload, scale)
        for workload in chosen
        for cell in cells
        if workload in CELLS[cell].workloads
    ]
    return keys + [Key(cell, ALL, 1.0) for cell in cells if ALL in CELLS[cell].workloads]


def known(names: Iterable[str], all_names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each of which must be one of those there are; no names mean all."""
    given = tuple(names)
    for name in given:
        if name not in all_names:
            raise UnknownCell(f"no {name!r} to measure; expected one of {', '.join(all_names)}")
    return given or all_names
