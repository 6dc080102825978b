"""Compaction: the same index with only the living, numbered anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.index.archive import Archive
from tamis.index.blocks import Block
from tamis.index.building import build_blocks
from tamis.index.columns import Columns
from tamis.index.rows import Rows
from tamis.index.slot_table import SlotTable
from tamis.index.texts import Stored, Texts


class Parts(NamedTuple):
    """All that an index is."""

    columns: Columns
    rows: Rows
    blocks: Sequence[Block]
    ids: Texts
    archive: Archive
    leader_of_follower: dict[int, int]


def compact(parts: Parts, table: SlotTable) -> Parts:
    """The parts of an index of the living rows; ``table`` holds all its slots."""
    old = parts.rows.table
    n_rows = parts.rows.n_rows
    living = np.nonzero(old.death[:n_rows] == 0)[0].astype(np.int32)
    leader_of = np.arange(n_rows, dtype=np.int32)
    for follower, leader in parts.leader_of_follower.items():
        leader_of[follower] = leader
    # The first of a chain that still lives leads it from now on.
    leaders, first = np.unique(leader_of[living], return_index=True)
    new_leader = np.full(n_rows, -1, np.int32)
    new_leader[leaders] = first
    kept = table.select(new_leader[table.row_of_slot] >= 0)
    kept = kept._replace(row_of_slot=new_leader[kept.row_of_slot])
    rows = Rows.of_priorities(old.priority[living])
    followers = _chain(rows, new_leader[leader_of[living]])
    rows.describe(kept)
    ids = Texts(Stored.of(parts.ids.texts_of(living)))
    archive = parts.archive.stored(living)
    return Parts(parts.columns, rows, build_blocks(kept), ids, archive, followers)


def _chain(rows: Rows, leader_of: np.ndarray) -> dict[int, int]:
    own = np.arange(len(leader_of), dtype=np.int32)
    followers = {int(row): int(leader_of[row]) for row in own[leader_of != own]}
    for row, leader in followers.items():
        rows.chain(leader, row)
    return followers
