"""State: what a reader of the index works on, whatever writers do meanwhile."""

from __future__ import annotations

from typing import NamedTuple

from tamis.index.blocks import Block
from tamis.index.head import HeadView
from tamis.index.moving import MovingView
from tamis.kernels.emit import RowTable

Segment = tuple[Block, ...]  # blocks that were built together


class State(NamedTuple):
    """What a reader works on."""

    version: int
    segments: tuple[Segment, ...]
    blocks: tuple[Block, ...]  # those of all segments
    n_slots: int  # of all blocks and the head
    rows: RowTable
    n_rows: int
    has_one_priority: bool
    is_plain: bool  # all rows are, see kernels.emit
    head: HeadView
    only: Block | None  # where all slots are, if they are plain rows and nobody has a place
    moving: MovingView | None = None  # who has a place

    @property
    def parts(self) -> tuple[Block, ...]:
        """Where slots are: the blocks and, unless it is empty, the head."""
        return (*self.blocks, self.head) if self.head.n_slots else self.blocks
