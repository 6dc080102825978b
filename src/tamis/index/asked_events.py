"""Asked events: the events of a batch as an index, which a block of few slots asks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from tamis.index.blocks import Array, Block, offsets_of
from tamis.kernels.compiled import IS_COMPILED
from tamis.kernels.scan import Constraints
from tamis.kernels.scan_batch import (
    GROUP,
    MAX_COLUMNS,
    Cells,
    cells_of,
    find_many,
    mark_columns,
)

MIN_EVENTS = 128  # fewer are better compared with each slot
MAX_EVENTS = 1 << 16  # more would take much memory: 16 bytes for each column that is asked for
SLOTS_AN_EVENT = 2  # of a group; of more, a block finds an event's own faster


class AskedEvents:
    """Events as rows of bits; see ``kernels.scan_batch``. They are made when first asked for."""

    def __init__(self, matrix: Array, blocks: Iterable[Block]) -> None:
        """``matrix``: f8[E, M], the events; ``blocks``: those that may ask."""
        self._matrix = matrix
        self._few = tuple(block for block in blocks if _is_few(block, *matrix.shape))

    def suit(self, block: Block) -> bool:
        """Whether the events are better asked by a block than the other way round."""
        return block in self._few

    def slots_of(self, block: Block) -> tuple[Array, Array]:
        """The slots that the events satisfy: event e those from ``offsets[e]`` on."""
        parts, counts = [], []
        for events, cells in self._groups:
            counts.append(np.zeros(len(events), np.int64))
            parts.append(find_many(block.bounds, block.n_slots, events, cells, counts[-1]))
        slots = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return slots, offsets_of(np.concatenate(counts))

    @cached_property
    def _groups(self) -> list[tuple[Array, Cells]]:
        matrix = np.ascontiguousarray(self._matrix)
        is_asked = np.zeros(matrix.shape[1], np.uint8)
        for block in self._few:
            mark_columns(block.bounds, block.n_slots, is_asked)
        columns = np.nonzero(is_asked)[0]
        groups = [matrix[first : first + GROUP] for first in range(0, len(matrix), GROUP)]
        return [(events, cells_of(events, columns)) for events in groups]


def _is_few(block: Block, n_events: int, n_columns: int) -> bool:
    if not MIN_EVENTS <= n_events <= MAX_EVENTS or n_columns > MAX_COLUMNS or not IS_COMPILED:
        return False
    is_small = block.n_slots <= SLOTS_AN_EVENT * min(n_events, GROUP)
    return is_small and isinstance(block.bounds, Constraints)
