"""Batch: many plain events at once, in kernels that hold no GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tamis.index.blocks import Array, Block
from tamis.index.engine import State
from tamis.kernels.emit import N_PRIORITIES, Found, arrange, settle_many


class _Gathered(NamedTuple):
    """Rows by event: event e has ``rows[offsets[e]:offsets[e + 1]]``."""

    rows: Array  # i4[...]
    offsets: Array  # i8[E + 1]


def match_matrix(
    state: State, matrix: Array, one_by_one: Callable[[int], Array]
) -> tuple[Array, Array]:
    """The rows of every event of a matrix, as offsets and rows, highest priority first.

    ``one_by_one`` matches an event by its number; it is asked for those that need more than
    kernels can decide.
    """
    is_open = np.zeros(len(matrix), np.uint8)
    all_plain = not state.rows.flagged.any()
    gathered = []
    for block in state.parts:
        slots, offsets = block.slots_of(matrix)
        if all_plain:
            gathered.append(_Gathered(block.rows_of(slots), offsets))
        else:
            gathered.append(_settle(state, block, matrix, slots, offsets, is_open))
    if state.moving is not None:
        gathered.append(_Gathered(*state.moving.match_many(matrix, state.version, is_open)))
    opened = np.nonzero(is_open)[0]
    if len(opened):
        gathered = [_without(one, is_open) for one in gathered]
        gathered.append(_one_by_one(opened, len(matrix), one_by_one))
    return _in_order(state, gathered, len(matrix))


def _settle(
    state: State, block: Block, matrix: Array, slots: Array, starts: Array, is_open: Array
) -> _Gathered:
    """The rows of what a block found; marks the events that must be matched one by one."""
    held = (block.row_of_slot, block.tests, block.decides)
    nowhere = np.empty(1, np.int32)
    offsets = np.zeros(len(starts), np.int64)
    parts, event = [], 0
    while event < len(matrix):
        room = len(slots) + 2 * len(state.rows.birth)
        found = Found(np.empty(room, np.int32), nowhere, nowhere, np.zeros(3, np.int64))
        own = np.zeros(len(starts), np.int64)
        first = event
        event = settle_many(
            slots, starts, first, held, matrix, state.rows, state.version, found, own, is_open
        )
        offsets[first + 1 : event + 1] = offsets[first] + own[first + 1 : event + 1]
        parts.append(found.rows[: own[event]])
    return _Gathered(parts[0] if len(parts) == 1 else np.concatenate(parts), offsets)


def _without(gathered: _Gathered, is_open: Array) -> _Gathered:
    """What was gathered, without the events that are matched one by one."""
    counts = np.diff(gathered.offsets)
    is_kept = np.repeat(is_open == 0, counts)
    counts[is_open != 0] = 0
    return _Gathered(gathered.rows[is_kept], _offsets_of(counts))


def _one_by_one(opened: Array, n_events: int, match_one: Callable[[int], Array]) -> _Gathered:
    found = [match_one(event).copy() for event in opened.tolist()]
    counts = np.zeros(n_events, np.int64)
    counts[opened] = [len(rows) for rows in found]
    return _Gathered(np.concatenate(found), _offsets_of(counts))


def _offsets_of(counts: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _in_order(state: State, gathered: list[_Gathered], n_events: int) -> tuple[Array, Array]:
    if len(gathered) == 1 and state.has_one_priority:
        return gathered[0].offsets, gathered[0].rows
    offsets = np.zeros(n_events + 1, np.int64)
    if not gathered:
        return offsets, np.zeros(0, np.int32)
    rows = gathered[0].rows
    if len(gathered) > 1:
        rows = np.concatenate([one.rows for one in gathered])
    before = np.cumsum([0, *(len(one.rows) for one in gathered[:-1])])[:, np.newaxis]
    places = np.stack([one.offsets for one in gathered]) + before
    ordered = np.empty(len(rows), np.int32)
    n_levels = 1 if state.has_one_priority else N_PRIORITIES
    arrange(rows, places, n_levels, state.rows.priority, ordered, offsets)
    return offsets, ordered
