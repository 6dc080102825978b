"""Batch: many plain events at once, in kernels that hold no GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tamis.index.blocks import Array, Block, ScanBlock
from tamis.index.engine import State
from tamis.kernels.emit import Found, order_batch, settle_batch
from tamis.kernels.scan import Constraints

_MIN_ROOM = 1 << 20


class _HeadBlock(ScanBlock):
    """The head, of whose tests only the number is known."""

    decides = False


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
    for block in _blocks(state):
        gathered += _match_block(state, block, matrix, is_open)
    for event in np.nonzero(is_open)[0].tolist():
        rows = one_by_one(event).copy()
        gathered.append(_Gathered(rows, np.full(len(rows), event, np.int32)))
    return _in_order(state, gathered, len(matrix), is_open)


def _blocks(state: State) -> list[Block]:
    if not state.head_slots:
        return list(state.blocks)
    start, *rest = state.head_constraints
    bounds = Constraints(start[: state.head_slots + 1], *rest)
    return [*state.blocks, _HeadBlock(bounds, state.head_rows, state.head_tests)]


def _match_block(state: State, block: Block, matrix: Array, is_open: Array) -> list[_Gathered]:
    """What one block finds; marks the events that must be matched one by one."""
    gathered = []
    slots = np.empty(2 * block.n_slots + _MIN_ROOM, np.int32)
    rows = np.empty(2 * len(state.rows.birth) + _MIN_ROOM, np.int32)
    few = np.empty(block.n_slots + 1, np.int32)
    first = 0
    while first < len(matrix):
        part = matrix[first:]
        offsets = np.zeros(len(part) + 1, np.int64)
        n_events = block.candidates_many(part, 0, slots, offsets)
        rows_end = np.zeros(n_events, np.int64)
        found = Found(rows, few, few.copy(), np.zeros(3, np.int64))
        n_done = settle_batch(
            slots, offsets, block.row_of_slot, block.tests, part, block.decides, state.rows,
            state.version, found, rows_end, is_open[first:],
        )  # fmt: skip
        ends = rows_end[:n_done]
        counts = np.diff(ends, prepend=0)
        events = np.repeat(np.arange(first, first + n_done, dtype=np.int32), counts)
        gathered.append(_Gathered(rows[: len(events)].copy(), events))
        first += n_done
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
    rows = np.concatenate([one.rows for one in gathered])
    events = np.concatenate([one.events for one in gathered])
    ordered = np.empty(len(rows), np.int32)
    order_batch(rows, events, len(rows), n_events, state.rows.priority, ordered, offsets)
    return offsets, ordered
