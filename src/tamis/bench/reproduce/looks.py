"""How much of itself the index looks at for an event, in the unit of the papers' plans.

A plan of GEM or DEXIN costs one for every subscription that it passes, excluding it or asking it
on one more attribute; costs are told as a share of all subscriptions. What the index passes in
one step is a word of 64 bits, ANDed, or a subscription, tested: both count as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import uint64 as u64

from tamis.index import Index
from tamis.index.blocks import Block
from tamis.index.dense_block import DenseBlock
from tamis.index.sparse_block import SparseBlock
from tamis.kernels.compiled import kernel
from tamis.kernels.dense_match import and_first, and_next, collect, list_lines, prepare
from tamis.kernels.dense_scratch import AT_ONCE, open_part
from tamis.kernels.sparse_match import (
    aim_words,
    clear_event,
    encode_event,
    find_blocks,
    find_groups,
    take_words,
)
from tamis.kernels.sparse_scratch import open_handle
from tamis.kernels.sparse_strips import BLOCK
from tamis.slots.encoding import Vector

_LINE_WORDS = 8
_AXES_A_WORD = 3


def share_looked_at(index: Index, vector: Vector) -> float:
    """Words and subscriptions that an event passes, as a share of all subscriptions.

    ``index`` holds boxes; ``vector`` has a value for each of their attributes.
    """
    parts = index._engine.state.parts
    return sum(_count(block, vector) for block in parts) / len(index)


def _count(block: Block, vector: Vector) -> int:
    if isinstance(block, DenseBlock):
        return int(count_dense(block._handle(), vector[block.bounds.columns]))
    if isinstance(block, SparseBlock):
        return int(count_sparse(block._handle(), vector))
    return block.n_slots


@kernel
def count_dense(handle: Any, event: Any) -> Any:
    """Words that ``dense_match.match_one`` ANDs for event: f8[M], and rows that it verifies."""
    n_used = prepare(handle, event)
    part = open_part(handle)
    n_looks = part.coarse.shape[0] * part.coarse.shape[2]
    n_lines = list_lines(handle)
    n_looks += AT_ONCE * _LINE_WORDS * n_lines
    n_lines, n_done = and_first(handle, n_lines)
    for j in range(AT_ONCE, n_used):
        n_looks += _LINE_WORDS * n_lines
        n_lines, n_done = and_next(handle, j, n_lines, n_done)
    t = u64(0)
    while t < n_done:
        t, n_candidates = collect(handle, t, n_done)
        n_looks += n_candidates
    return n_looks


@kernel
def count_sparse(handle: Any, event: Any) -> Any:
    """Words that ``sparse_match.match_one`` ANDs for event: f8[C], and places that it tests."""
    part, _, scratch = open_handle(handle)
    n_present = encode_event(part, scratch, event)
    n_places, n_words = find_groups(part, scratch, n_present)
    n_looks = BLOCK * find_blocks(part, scratch, n_present)
    for span in range(n_places):
        n_looks += scratch.place_span[2 * span + 1] - scratch.place_span[2 * span]
    n_taken = np.int64(0)
    n_aimed = aim_words(part, scratch, n_taken, n_words)
    while n_aimed:
        n_looks += _AXES_A_WORD * n_aimed + take_words(part, scratch, n_aimed)
        n_taken += n_aimed
        n_aimed = aim_words(part, scratch, n_taken, n_words)
    clear_event(part, scratch, n_present)
    return n_looks
