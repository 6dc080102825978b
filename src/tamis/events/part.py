"""Part: events of a store that stand together, and how those are found that a question asks for."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from tamis.events.lanes import Name
from tamis.events.question import Clause, Question
from tamis.events.table import ROUGH
from tamis.kernels.event_cells import LEAF, Cells
from tamis.kernels.event_scan import Moment, find_rows, judge_rows
from tamis.model import Event
from tamis.model.event import LOCATION
from tamis.values import Attributes, Value

Rows = npt.NDArray[np.int32]

_NOBODY: Rows = np.zeros(0, np.int32)
_NO_FLAGS: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)


class Part(ABC):
    """Events numbered from 0, over columns; see ``table`` for what these mean."""

    n_rows: int
    n_columns: int
    layout: tuple[Name, ...]
    cells: Cells
    handle: npt.NDArray[np.int64]  # of the cells
    moment: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]
    flags: npt.NDArray[np.uint8]
    where: npt.NDArray[np.int64]  # moments, sequences and ids, see kernels.event_ranking
    has_stored_ids: bool  # whether the ids are there
    has_rough: bool

    # -- what a question asks, see question.HasColumns

    @abstractmethod
    def column_of(self, name: tuple[str, int]) -> int:
        """The column of an attribute in a lane, or -1."""

    @abstractmethod
    def code_of(self, attribute: str, text: str) -> float:
        """The code of a text, or -1 if no event holds it."""

    @abstractmethod
    def codes_with(self, attribute: str, prefix: str) -> tuple[float, float] | None:
        """The first and last code of the texts that start so; None if codes have no order."""

    # -- events

    @abstractmethod
    def ids_of(self, rows: Rows) -> list[str]:
        """The ids of rows."""

    @abstractmethod
    def event(self, row: int) -> Event:
        """The event of a row."""

    @abstractmethod
    def attributes(self, row: int, names: Collection[str]) -> Attributes:
        """What an event holds of some attributes, perhaps with others."""

    def places(self, rows: Rows) -> list[tuple[Value, ...]]:
        """What each of some events holds as its location."""
        named = (LOCATION,)
        return [self.attributes(row, named).get(LOCATION, ()) for row in rows.tolist()]

    def is_alive(self, row: int, version: int) -> bool:
        """Whether an event was not deleted by that version."""
        death = int(self.cells.death[row])
        return death == 0 or death > version

    def until_of(self, row: int) -> int:
        """When an event expires."""
        return int(self.cells.until[row])

    def sweep(self, clock: int, limit: int, version: int) -> int:
        """Let at most ``limit`` expired events die with a version; return how many."""
        death, until = self.cells.death[: self.n_rows], self.cells.until[: self.n_rows]
        rows = np.flatnonzero((until <= clock) & (death == 0))[:limit]
        death[rows] = version
        return len(rows)

    # -- finding

    def find(self, question: Question, moment: Moment) -> Rows:
        """The rows of the valid events that satisfy a question, ascending."""
        clauses = question.clauses(self)
        if len(clauses) == 1:
            return self._find(clauses[0], question, moment)
        found = [self._find(clause, question, moment) for clause in clauses]
        return np.unique(np.concatenate(found)) if found else _NOBODY

    def _find(self, clause: Clause, question: Question, moment: Moment) -> Rows:
        leaves, out, unsure = _scratch(self.n_rows)
        n_found = find_rows(self.handle, self.n_rows, clause.wanted, *moment, leaves, out)
        n_unsure = 0
        if n_found and (clause.has_tests or self.has_rough):
            is_rough = self.flags & ROUGH if self.has_rough else _NO_FLAGS
            places = clause.reads, self.n_columns, self.n_columns + 1 + clause.n_presences
            n_found, n_unsure = judge_rows(
                self.handle, out, n_found, *places, is_rough, unsure, *clause.tests
            )
        rows: Rows = out[:n_found].copy()
        if not n_unsure:
            return rows
        names, check = question.attributes, question.check
        sure = [row for row in unsure[:n_unsure].tolist() if check(self.attributes(row, names))]
        return np.sort(np.concatenate([rows, np.array(sure, np.int32)]))


_own = threading.local()


def _scratch(n_rows: int) -> tuple[Rows, Rows, Rows]:
    """Buffers of this thread: for leaves, for rows, and for those only a filter can tell of."""
    held: tuple[Rows, Rows, Rows] | None = getattr(_own, "scratch", None)
    if held is None or len(held[1]) <= n_rows:
        size = n_rows + n_rows // 4 + LEAF
        n_leaves = size // LEAF + 2
        leaves, rows, unsure = (np.empty(n, np.int32) for n in (n_leaves, size, size))
        held = _own.scratch = (leaves, rows, unsure)
    return held
