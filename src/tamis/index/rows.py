"""Rows: a number for each subscription, with its life span, priority and chain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.index.slot_table import SlotTable
from tamis.kernels.emit import RowTable

_GROWTH = 1.5


class Rows:
    """The rows of an index; arrays that grow, written under the index's lock.

    Readers hold the arrays of the moment they started. Every write here is either to places
    they do not look at yet, or says something of a version later than theirs.
    """

    def __init__(self, table: RowTable | None = None, n_rows: int = 0) -> None:
        self.table = table if table is not None else _new_table(0)
        self.n_rows = n_rows
        levels = self.table.priority[:n_rows]
        # The priority of all rows, if they have one in common: then there is nothing to sort.
        self.only_priority = -1 if n_rows and (levels != levels[0]).any() else None
        if n_rows and self.only_priority is None:
            self.only_priority = int(levels[0])

    @property
    def newest_version(self) -> int:
        """The last version that brought a row or took one away."""
        return int(max(self.table.birth.max(initial=0), self.table.death.max(initial=0)))

    @classmethod
    def of_priorities(cls, priority: npt.NDArray[np.uint8]) -> Rows:
        """Plain rows, there from the beginning."""
        table = _new_table(len(priority))
        table.priority[:] = priority
        return cls(table, len(priority))

    def describe(self, slots: SlotTable) -> None:
        """Flag the rows whose slots have tests, or which have several slots."""
        n_slots = np.bincount(slots.row_of_slot, minlength=self.n_rows)[: self.n_rows]
        has_tests = np.zeros(self.n_rows, np.bool_)
        has_tests[slots.row_of_slot[np.diff(slots.tests.start) > 0]] = True
        many = np.packbits(n_slots > 1, bitorder="little")
        flagged = np.packbits((n_slots > 1) | has_tests, bitorder="little")
        self.table.has_many_slots[: len(many)] |= many
        self.table.flagged[: len(flagged)] |= flagged

    def append(self, priority: int, birth: int) -> int:
        """A new row."""
        row = self.n_rows
        if row >= len(self.table.birth):
            self._grow()
        if self.only_priority != priority:
            self.only_priority = priority if row == 0 else -1
        self.table.priority[row] = priority
        self.table.birth[row] = birth
        self.n_rows += 1
        return row

    def chain(self, leader: int, row: int) -> None:
        """Let a row share the slots of a leader."""
        table = self.table
        table.follower[row] = table.follower[leader]
        table.follower[leader] = row + 1
        self.flag(leader)

    def flag(self, row: int) -> None:
        """Say that a row is not plain."""
        self.table.flagged[row >> 3] |= 1 << (row & 7)

    def mark_many_slots(self, row: int) -> None:
        """Say that a row has more than one slot."""
        self.table.has_many_slots[row >> 3] |= 1 << (row & 7)
        self.flag(row)

    def bury(self, row: int, leader: int, version: int) -> None:
        """Let a row die with a version."""
        self.table.death[row] = version
        self.flag(row)
        self.flag(leader)

    def is_alive(self, row: int) -> bool:
        """Whether a row has not died."""
        return bool(self.table.death[row] == 0)

    def chain_is_dead(self, leader: int) -> bool:
        """Whether nobody is left who shares a leader's slots."""
        row, table = leader, self.table
        while row >= 0:
            if table.death[row] == 0:
                return False
            row = int(table.follower[row]) - 1
        return True

    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.table)

    def _grow(self) -> None:
        larger = _new_table(max(1024, int(len(self.table.birth) * _GROWTH)))
        for old, new in zip(self.table, larger, strict=True):
            new[: len(old)] = old
        self.table = larger


def _new_table(capacity: int) -> RowTable:
    n_bytes = -(-capacity // 8)
    return RowTable(
        birth=np.zeros(capacity, np.int64),
        death=np.zeros(capacity, np.int64),
        follower=np.zeros(capacity, np.int32),
        priority=np.zeros(capacity, np.uint8),
        flagged=np.zeros(n_bytes, np.uint8),
        has_many_slots=np.zeros(n_bytes, np.uint8),
    )
