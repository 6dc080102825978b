"""Scan: slots checked one after another; for the head, and for events that are not plain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, kernel

TOGETHER = 128  # events that a slot is compared with at once


class Constraints(NamedTuple):
    """The constraints of P slots: those of slot p are ``start[p]`` to ``start[p + 1]``."""

    start: Array  # i8[P + 1], ascending
    column: Array  # i4[K], unique within a slot
    low: Array  # f8[K]
    high: Array  # f8[K]


class Boxes(NamedTuple):
    """P slots that all constrain the same C columns."""

    columns: Array  # i4[C]
    bounds: Array  # f8[P, C, 2], low and high


@kernel
def scan(constraints, n_slots, low, high, out):
    """Write to ``out`` the slots whose every interval meets the event's; return their number.

    ``low``, ``high``: f8[M], the event's interval in each column, NaN where it has no value
    (the same array twice for a plain event). ``out``: i4[> n_slots]. The first constraint of
    all slots is looked at, then the second of those that are left, and so on: whether one
    holds cannot be foretold, so nothing branches on it. O(constraints).
    """
    start, columns, lows, highs = constraints
    n_left = n_slots
    if columns.size == 0 or low.size == 0:  # nobody has a constraint
        for slot in range(n_slots):
            out[slot] = slot
        return n_left
    has_more = n_slots > 0
    position = np.int64(0)
    while has_more:
        has_more = False
        n_before, n_left = n_left, 0
        for i in range(n_before):
            slot = np.uint64(out[i]) if position else np.uint64(i)
            k, stop = start[slot] + position, start[slot + np.uint64(1)]
            has_one = k < stop
            at = np.uint64(k) if has_one else np.uint64(0)
            column = np.uint64(columns[at]) if has_one else np.uint64(0)
            meets = (lows[at] <= high[column]) & (low[column] <= highs[at])
            out[n_left] = slot
            n_left += meets | (not has_one)
            has_more |= k + 1 < stop
        position += 1
    return n_left


@kernel
def scan_slots(constraints, slots, low, high):
    """Keep those of slots: i4[S], from its beginning, that ``scan`` would find; return how many.

    O(constraints of the slots).
    """
    n_kept = 0
    for i in range(slots.size):
        slot, meets = slots[i], True
        for k in range(constraints.start[slot], constraints.start[slot + 1]):
            column = constraints.column[k]
            meets &= (constraints.low[k] <= high[column]) & (low[column] <= constraints.high[k])
        slots[n_kept] = slot
        n_kept += meets
    return n_kept


@kernel
def _turn(matrix, first, values):
    """Write the events of matrix: f8[E, M] from ``first`` on to values: f8[M, TOGETHER].

    Behind the last event there are none.
    """
    for i in range(TOGETHER):
        for column in range(matrix.shape[1]):
            is_one = first + i < matrix.shape[0]
            values[column, i] = matrix[first + i, column] if is_one else np.nan


@kernel
def _mark(constraints, slot, values, marks):
    """Mark the events (u1[TOGETHER]) that a slot accepts; whether there are some."""
    marks[:] = 1
    for k in range(constraints.start[slot], constraints.start[slot + 1]):
        low, high, held = constraints.low[k], constraints.high[k], values[constraints.column[k]]
        for i in range(TOGETHER):
            marks[i] &= (low <= held[i]) & (held[i] <= high)
        is_any = np.uint8(0)
        for i in range(TOGETHER):
            is_any |= marks[i]
        if is_any == 0:
            return False
    return True


@kernel
def scan_some(constraints, n_slots, matrix, first, out, offsets):
    """``scan`` for the plain events of ``matrix``: f8[E, M] from ``first`` on.

    Event e's slots go to ``out`` from ``offsets[e]`` to ``offsets[e + 1]``, which is written,
    while there is room for all slots and one more. Returns the event to go on with. A slot is
    compared with some events at once. O(events x constraints).
    """
    values, marks = np.empty((matrix.shape[1], TOGETHER)), np.empty(TOGETHER, np.uint8)
    hits, n_hits = np.empty((TOGETHER, n_slots + 1), np.int32), np.empty(TOGETHER, np.int64)
    event = first
    while event < matrix.shape[0]:
        _turn(matrix, event, values)
        n_hits[:] = 0
        for slot in range(n_slots):
            if _mark(constraints, slot, values, marks):
                for i in range(TOGETHER):
                    hits[i, n_hits[i]] = slot
                    n_hits[i] += marks[i]
        for i in range(min(TOGETHER, matrix.shape[0] - event)):
            start = offsets[event]
            if start + n_slots + 1 > out.size:
                return event
            for k in range(n_hits[i]):
                out[start + k] = hits[i, k]
            event += 1
            offsets[event] = start + n_hits[i]
    return event


@kernel
def scan_boxes(boxes, low, high, out):
    """``scan`` for slots that all constrain the same columns. O(P x C)."""
    n_out = 0
    for slot in range(boxes.bounds.shape[0]):
        accepted = True
        for c in range(boxes.columns.size):
            column = boxes.columns[c]
            if not (
                boxes.bounds[slot, c, 0] <= high[column] and low[column] <= boxes.bounds[slot, c, 1]
            ):
                accepted = False
                break
        if accepted:
            out[n_out] = slot
            n_out += 1
    return n_out
