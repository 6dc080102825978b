"""Batch: many plain events at once, in kernels that hold no GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tamis.index.blocks import Array, Block
from tamis.index.engine import State
from tamis.kernels.emit import N_PRIORITIES, Found, order_batch, settle_pairs


class _Gathered(NamedTuple):
    """Rows, each with the event it belongs to."""

    rows: Array
    events: Array


def match_matrix(
    state: State, matrix: Array, one_by_one: Callable[[int], Array]
) -> tuple[Array, Array]:
    """The rows of every event of a matrix, as offsets and rows, highest priority first.

    ``one_by_one`` matches an event by its number; it is asked for those that need more than
    kernels can decide.
    """
    gathered: list[_Gathered] = []
    is_open = np.zeros(len(matrix), np.uint8)
    for block in state.parts:
        gathered += _match_block(state, block, matrix, is_open)
    for event in np.nonzero(is_open)[0].tolist():
        rows = one_by_one(event).copy()
        gathered.append(_Gathered(rows, np.full(len(rows), event, np.int32)))
    return _in_order(state, gathered, len(matrix), is_open)


def _match_block(state: State, block: Block, matrix: Array, is_open: Array) -> list[_Gathered]:
    """What one block finds; marks the events that must be matched one by one."""
    gathered = []
    held = (block.row_of_slot, block.tests, block.decides)
    one = np.empty(1, np.int32)
    all_plain = not state.rows.flagged.any()
    for pairs in block.pairs(matrix):
        if all_plain:
            gathered.append(_Gathered(block.rows_of(pairs[0]), pairs[1]))
            continue
        first, n_pairs = 0, len(pairs[0])
        while first < n_pairs:
            room = n_pairs + 2 * len(state.rows.birth)
            found = Found(np.empty(room, np.int32), one, one, np.zeros(3, np.int64))
            events = np.empty(room, np.int32)
            first = settle_pairs(
                pairs, first, held, matrix, state.rows, state.version, found, events, is_open
            )
            n_rows = found.counts[0]
            gathered.append(_Gathered(found.rows[:n_rows], events[:n_rows]))
    return gathered


def _in_order(
    state: State, gathered: list[_Gathered], n_events: int, is_open: Array
) -> tuple[Array, Array]:
    offsets = np.zeros(n_events + 1, np.int64)
    if not gathered:
        return offsets, np.zeros(0, np.int32)
    n_open = int(is_open.sum())
    if n_open:
        # What was gathered of open events before they were matched one by one does not count.
        closed = [
            _Gathered(one.rows[~kept], one.events[~kept])
            for one in gathered[:-n_open]
            for kept in [is_open[one.events].astype(bool)]
        ]
        gathered = closed + gathered[-n_open:]
    rows, events = gathered[0]
    if len(gathered) > 1:
        rows = np.concatenate([one.rows for one in gathered])
        events = np.concatenate([one.events for one in gathered])
    ordered = np.empty(len(rows), np.int32)
    n_levels = 1 if state.has_one_priority else N_PRIORITIES
    order_batch(rows, events, n_levels, state.rows.priority, ordered, offsets)
    return offsets, ordered
