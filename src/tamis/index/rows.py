"""Rows: a number for each subscription, with its life span, priority and chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.index.slot_table import SlotTable
from tamis.kernels.emit import RowTable

_GROWTH = 1.5


class Chains(NamedTuple):
    """Who shares slots with whom; writers only, and not there until a row is shared or dies."""

    leader: npt.NDArray[np.int32]  # [R], one more than a follower's leader; 0 for leaders
    n_others: npt.NDArray[np.int32]  # [R], one less than the living rows of a leader's chain


class Rows:
    """The rows of an index; arrays that grow, written under the index's lock.

    Readers hold the arrays of the moment they started. Every write here is either to places
    they do not look at yet, or says something of a version later than theirs.
    """

    def __init__(
        self, table: RowTable | None = None, n_rows: int = 0, chains: Chains | None = None
    ) -> None:
        self.table = table if table is not None else _new_table(0)
        self.chains = chains
        self.n_rows = n_rows
        self.n_followers = 0 if chains is None else int(np.count_nonzero(chains.leader))
        self.has_flagged = bool(self.table.flagged.any())  # or had
        self._notice_priorities()

    def _notice_priorities(self) -> None:
        n_rows, levels = self.n_rows, self.table.priority[: self.n_rows]
        # The priority of all rows, if they have one in common: then there is nothing to sort.
        self.only_priority = -1 if n_rows and (levels != levels[0]).any() else None
        if n_rows and self.only_priority is None:
            self.only_priority = int(levels[0])

    @property
    def newest_version(self) -> int:
        """The last version that brought a row or took one away."""
        return int(max(self.table.birth.max(initial=0), self.table.death.max(initial=0)))

    @classmethod
    def of_priorities(cls, priority: npt.NDArray[np.uint8], leader: npt.NDArray[np.int32]) -> Rows:
        """Rows without tests, there from the beginning.

        ``leader``: i4[R], for a row with slots its own number.
        """
        rows = cls(_new_table(len(priority)), len(priority))
        rows.table.priority[:] = priority
        rows._notice_priorities()
        followers = np.nonzero(leader != np.arange(len(leader)))[0].astype(np.int32)
        if len(followers):
            rows._chain_all(followers, leader[followers])
        return rows

    def _chain_all(self, followers: npt.NDArray[np.int32], leaders: npt.NDArray[np.int32]) -> None:
        """Chain rows to their leaders, each chain in the order of its rows."""
        order = np.argsort(leaders, kind="stable")
        followers, leaders = followers[order], leaders[order]
        before = np.concatenate([leaders[:1], followers[:-1]])
        is_first = np.concatenate([[True], leaders[1:] != leaders[:-1]])
        before[is_first] = leaders[is_first]
        self.table.follower[before] = followers + 1
        chains = self._made_chains()
        chains.leader[followers] = leaders + 1
        shared = leaders[is_first]
        chains.n_others[: self.n_rows] = np.bincount(leaders, minlength=self.n_rows)
        np.bitwise_or.at(self.table.flagged, shared >> 3, (1 << (shared & 7)).astype(np.uint8))
        self.has_flagged = True
        self.n_followers = len(followers)

    def describe(self, slots: SlotTable) -> None:
        """Flag the rows whose slots have tests, or which have several slots."""
        n_slots = np.bincount(slots.row_of_slot, minlength=self.n_rows)[: self.n_rows]
        has_tests = np.zeros(self.n_rows, np.bool_)
        has_tests[slots.row_of_slot[np.diff(slots.tests.start) > 0]] = True
        many = np.packbits(n_slots > 1, bitorder="little")
        flagged = np.packbits((n_slots > 1) | has_tests, bitorder="little")
        self.table.has_many_slots[: len(many)] |= many
        self.table.flagged[: len(flagged)] |= flagged
        self.has_flagged |= bool(flagged.any())

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
        chains = self._made_chains()
        chains.leader[row] = leader + 1
        chains.n_others[leader] += 1
        self.n_followers += 1
        self.flag(leader)

    def flag(self, row: int) -> None:
        """Say that a row is not plain."""
        self.table.flagged[row >> 3] |= 1 << (row & 7)
        self.has_flagged = True

    def mark_many_slots(self, row: int) -> None:
        """Say that a row has more than one slot."""
        self.table.has_many_slots[row >> 3] |= 1 << (row & 7)
        self.flag(row)

    def bury(self, row: int, version: int) -> int:
        """Let a row die with a version; return its leader."""
        self.table.death[row] = version
        self.flag(row)
        chains = self._made_chains()
        leader = int(chains.leader[row]) - 1
        if leader < 0:
            leader = row
        else:
            self.n_followers -= 1
            self.flag(leader)
        chains.n_others[leader] -= 1
        return leader

    def leaders(self) -> npt.NDArray[np.int32]:
        """The leader of every row: i4[R]."""
        itself = np.arange(self.n_rows, dtype=np.int32)
        if self.chains is None:
            return itself
        held = self.chains.leader[: self.n_rows]
        return np.where(held > 0, held - 1, itself)

    def n_others(self, leaders: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """How many living rows beside one share the slots of leaders; -1 if none lives."""
        return np.zeros_like(leaders) if self.chains is None else self.chains.n_others[leaders]

    def priority_of(self, row: int) -> int:
        """The priority of a row."""
        return int(self.table.priority[row])

    def is_alive(self, row: int) -> bool:
        """Whether a row has not died."""
        return bool(self.table.death[row] == 0)

    def chain_is_dead(self, leader: int) -> bool:
        """Whether nobody is left who shares a leader's slots."""
        return self.chains is not None and bool(self.chains.n_others[leader] < 0)

    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in (*self.table, *(self.chains or ())))

    def _made_chains(self) -> Chains:
        if self.chains is None:
            self.chains = _new_chains(len(self.table.birth))
        return self.chains

    def _grow(self) -> None:
        larger = _new_table(max(1024, int(len(self.table.birth) * _GROWTH)))
        for old, new in zip(self.table, larger, strict=True):
            new[: len(old)] = old
        self.table = larger
        if self.chains is not None:
            chains = _new_chains(len(larger.birth))
            for held, new in zip(self.chains, chains, strict=True):
                new[: len(held)] = held
            self.chains = chains


def _new_chains(capacity: int) -> Chains:
    return Chains(np.zeros(capacity, np.int32), np.zeros(capacity, np.int32))


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
