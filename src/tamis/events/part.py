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
from tamis.kernels.tests import ACCEPTED, UNDECIDED, Tests
from tamis.model import Event
from tamis.model.event import LOCATION
from tamis.values import Attributes, Value

Rows = npt.NDArray[np.int32]

_JUDGED_AT_ONCE = 4096
_NOBODY: Rows = np.zeros(0, np.int32)


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
        leaves, out = _scratch(self.n_rows)
        n_found = find_rows(self.handle, self.n_rows, clause.wanted, *moment, leaves, out)
        if not n_found:
            return _NOBODY
        rows: Rows = out[:n_found].copy()
        if clause.tests is None and not self.has_rough:
            return rows
        verdicts = np.full(len(rows), ACCEPTED, np.uint8)
        if clause.tests is not None:
            self._judge(rows, clause.tests, clause, verdicts)
        verdicts[(self.flags[rows] & ROUGH) > 0] = UNDECIDED
        is_accepted = verdicts == ACCEPTED
        for i in np.flatnonzero(verdicts == UNDECIDED).tolist():
            held = self.attributes(int(rows[i]), question.attributes)
            is_accepted[i] = question.check(held)
        accepted: Rows = rows[is_accepted]
        return accepted

    def _judge(
        self,
        rows: Rows,
        tests: Tests,
        clause: Clause,
        verdicts: npt.NDArray[np.uint8],
    ) -> None:
        """Write what the tests say of each event, taken as one that the columns say all of."""
        n_columns = self.n_columns
        for first in range(0, len(rows), _JUDGED_AT_ONCE):
            some = rows[first : first + _JUDGED_AT_ONCE]
            vectors = np.full((len(some), n_columns + 1 + len(clause.presences)), np.nan)
            for column in clause.tested:
                vectors[:, column] = self.cells.low[column, some]
            for i, columns in enumerate(clause.presences):
                is_present = ~np.isnan(vectors[:, list(columns)]).all(axis=1)
                vectors[is_present, n_columns + 1 + i] = 0.0
            judge_rows(vectors, verdicts[first : first + _JUDGED_AT_ONCE], *tests)


_own = threading.local()


def _scratch(n_rows: int) -> tuple[Rows, Rows]:
    """Buffers of this thread: for leaves, and for rows."""
    held: tuple[Rows, Rows] | None = getattr(_own, "scratch", None)
    if held is None or len(held[1]) <= n_rows:
        size = n_rows + n_rows // 4 + LEAF
        held = _own.scratch = (np.empty(size // LEAF + 2, np.int32), np.empty(size, np.int32))
    return held
