"""Compaction: the same index with only the living, numbered anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.index.archive import Archive
from tamis.index.blocks import Block
from tamis.index.building import build_blocks
from tamis.index.moving import Moving, MovingParts
from tamis.index.rows import Rows
from tamis.index.slot_table import SlotTable
from tamis.slots.columns import Columns
from tamis.slots.texts import Stored, Texts


class Parts(NamedTuple):
    """All that an index is."""

    columns: Columns
    rows: Rows
    blocks: Sequence[Block]
    ids: Texts
    archive: Archive
    moving: MovingParts | None = None


def compact(parts: Parts, table: SlotTable, moving: Moving | None) -> Parts:
    """The parts of an index of the living rows; ``table`` holds all its slots."""
    old = parts.rows.table
    n_rows = parts.rows.n_rows
    living = np.nonzero(old.death[:n_rows] == 0)[0].astype(np.int32)
    leader_of = parts.rows.leaders()
    # The first of the highest priority in a chain that still lives leads it from now on.
    by_priority = np.argsort(old.priority[living], kind="stable")
    leaders, first = np.unique(leader_of[living][by_priority], return_index=True)
    new_leader = np.full(n_rows, -1, np.int32)
    new_leader[leaders] = by_priority[first]
    kept = table.select(new_leader[table.row_of_slot] >= 0)
    kept = kept._replace(row_of_slot=new_leader[kept.row_of_slot])
    rows = Rows.of_priorities(old.priority[living], new_leader[leader_of[living]])
    rows.describe(kept)
    ids = Texts(Stored.of(parts.ids.texts_of(living)))
    archive = parts.archive.stored(living)
    new_row = np.full(n_rows, -1, np.int32)
    new_row[living] = np.arange(len(living))
    movers = None if moving is None else moving.compacted(new_row)
    return Parts(parts.columns, rows, build_blocks(kept), ids, archive, movers)
