"""Express: the highest priorities of a large block once more, as a small block of their own.

A small block is searched in a fraction of the time of a large one, so what it finds can be told
before the large one is looked at. It is made when somebody first asks for matches one by one;
``match`` does without it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tamis.index.blocks import Array, Block
from tamis.index.building import build_blocks
from tamis.kernels.ordering import N_PRIORITIES

MIN_SLOTS = 65_536  # smaller blocks are quick as they are
SMALL_SHARE = 1 / 8  # of the slots: so many may be on the express, or ...
LARGEST_SHARE = 1 / 2  # ... those of the highest priority alone, if they are not more


class Express(NamedTuple):
    """Blocks of all slots up to a priority number, and perhaps of others."""

    level: int  # -1 if there is nothing to gain
    blocks: tuple[Block, ...]


class Expresses:
    """The express of every block that was asked for."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Block, Express] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def over(self, blocks: Sequence[Block], priority: Array) -> Express:
        """What finds all matches up to some level in all these blocks.

        ``priority``: u1[R]. The row that a slot belongs to has the highest priority of those
        that share the slot.
        """
        found: list[Block] = []
        level = N_PRIORITIES
        for block in blocks:
            if block.n_slots < MIN_SLOTS:
                found.append(block)
                continue
            one = self._of(block, priority)
            found.extend(one.blocks)
            level = min(level, one.level)
        is_useful = 0 <= level < N_PRIORITIES
        return Express(level, tuple(found)) if is_useful else Express(-1, ())

    def memory_bytes(self) -> int:
        """Bytes of all that was made."""
        with self._lock:
            made = list(self._made.values())
        return sum(block.memory_bytes() for one in made for block in one.blocks)

    def _of(self, block: Block, priority: Array) -> Express:
        with self._lock:  # one thread makes it, others that need it wait
            made = self._made.get(block)
            if made is None:
                made = self._made[block] = _build(block, priority)
            return made


def _build(block: Block, priority: Array) -> Express:
    table = block.table()
    levels = priority[table.row_of_slot]
    level = _level_of(np.cumsum(np.bincount(levels, minlength=N_PRIORITIES)))
    return Express(level, build_blocks(table.select(levels <= level)) if level >= 0 else ())


def _level_of(n_up_to: Array) -> int:
    """The last level of the express; ``n_up_to``: the slots of each level and the higher ones."""
    n_slots = n_up_to[-1]
    small = np.nonzero((n_up_to > 0) & (n_up_to <= SMALL_SHARE * n_slots))[0]
    if len(small):
        return int(small[-1])
    highest = int(np.nonzero(n_up_to)[0][0])
    return highest if n_up_to[highest] <= LARGEST_SHARE * n_slots else -1
