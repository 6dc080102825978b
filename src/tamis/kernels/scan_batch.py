"""Few slots, scanned: many events at once.

Event after event, each is compared with every slot. Here a slot is asked about a thousand events
at once, as in ``sparse_batch``. The values that the events have in a column are cut into cells,
and of each cell it is known which events are below it, a bit each. An interval may hold for the
events that are below the end of its last cell and not below its first, so a slot of F constraints
takes 2 F rows of bits; what that leaves is decided by the values themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64
from numba.cpython.unsafe.numbers import trailing_zeros

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.memory import aligned_zeros
from tamis.kernels.scan_vectors import count_at_most
from tamis.kernels.sparse_batch_vectors import WORDS, and_ranges

GROUP = 64 * WORDS  # events at once
N_CUTS = 128  # between the cells of a column, of which the last is NaN
N_TOPS = 8  # cuts that are looked at first, every sixteenth
ROWS = N_CUTS + 1  # of bits, of a column: of nobody, and below each cut, the last of all present
MAX_COLUMNS = (1 << 16) // ROWS - 1  # whose rows a u2 numbers


class Cells(NamedTuple):
    """What E events have in the C columns that are asked for."""

    place: Array  # i4[M], of a column: its number among those, or -1
    tops: Array  # f8[C*N_TOPS], every sixteenth of the cuts, NaN at the end
    cuts: Array  # f8[C*N_CUTS], ascending, NaN at the end
    below: Array  # u8[(C*ROWS + 2)*WORDS], bit e of row c + 1: event e is below cut c; nobody, all


def cells_of(events: Array, columns: Array) -> Cells:
    """The cells of at most GROUP events: f8[E, M] in the columns that are asked for."""
    place = np.full(events.shape[1], -1, np.int32)
    place[columns] = np.arange(len(columns))
    values = np.ascontiguousarray(events.T[columns])
    values.sort(axis=1)
    cuts = values[:, np.arange(1, N_CUTS + 1) * len(events) // (N_CUTS + 1)]
    cuts[:, -1] = np.nan
    tops = cuts[:, N_CUTS // N_TOPS - 1 :: N_CUTS // N_TOPS]
    below = aligned_zeros((len(columns) * ROWS + 2) * WORDS, np.uint64)
    cells = Cells(place, _in_a_row(tops), _in_a_row(cuts), below)
    fill_below(events, columns, cells)
    return cells


def _in_a_row(values: Array) -> Array:
    """What kernels address as they lie: a reshaped slice of one row may still have gaps."""
    return np.ascontiguousarray(values).reshape(-1)


@kernel
def mark_columns(constraints, n_slots, is_asked):
    """Set is_asked: u1[M] of the columns that slots constrain. O(constraints)."""
    for k in range(constraints.start[n_slots]):
        is_asked[constraints.column[k]] = 1


@inlined
def _n_below(cells, c, value):
    """How many cuts of a column are at most a value."""
    step = u64(N_CUTS // N_TOPS)
    first = step * count_at_most(cells.tops, c * u64(N_TOPS), value)
    at = c * u64(N_CUTS) + first
    return (
        first
        + count_at_most(cells.cuts, at, value)
        + count_at_most(cells.cuts, at + step // u64(2), value)
    )


@kernel
def fill_below(matrix, columns, cells):
    """Write ``below``, from zeros, for the events of matrix: f8[E, M] in columns: i4[C].

    O(C x (E + ROWS)).
    """
    below, n_columns = cells.below, u64(len(columns))
    for c in range(n_columns):
        column, first = columns[c], c * u64(ROWS * WORDS)
        for e in range(u64(len(matrix))):
            value = matrix[e, column]
            if value == value:
                at = first + (_n_below(cells, c, value) + u64(1)) * u64(WORDS)
                below[at + (e >> u64(6))] |= u64(1) << (e & u64(63))
        for w in range(first + u64(WORDS), first + u64(ROWS * WORDS)):
            below[w] |= below[w - u64(WORDS)]
    last = (n_columns * u64(ROWS) + u64(1)) * u64(WORDS)
    for e in range(u64(len(matrix))):
        below[last + (e >> u64(6))] |= u64(1) << (e & u64(63))


@kernel
def find_many(constraints, n_slots, matrix, cells, counts):
    """The slots that each event of matrix: f8[E, M] satisfies, one event after another: i4[...].

    Adds to counts: i8[E] how many each has. O(n_slots x F + matches).
    """
    words = np.empty(u64(n_slots) * u64(WORDS), np.uint64)
    done = np.empty(n_slots + 1, np.int32)
    ranges = np.empty(2 * len(cells.place) + 2, np.uint16)
    start, n_done, n_found = constraints.start, u64(0), np.int64(0)
    for slot in range(u64(n_slots)):
        first, last = u64(start[slot]), u64(start[slot + u64(1)])
        n = _write_ranges(constraints, first, last, cells, ranges)
        at = n_done * u64(WORDS)
        if and_ranges(ranges, u64(0), n, cells.below, words, at):
            n_held = _keep_held(constraints, first, last, matrix, words, at, counts)
            done[n_done] = slot
            n_done += u64(n_held > 0)
            n_found += n_held
    slots = np.empty(n_found, np.int32)
    _place(words, done, n_done, counts, slots)
    return slots


@inlined
def _write_ranges(constraints, first, last, cells, ranges):
    """Write the rows that tell whom some constraints may hold for; returns how many ranges."""
    n = u64(0)
    for k in range(first, last):
        c = u64(cells.place[u64(constraints.column[k])])
        row = c * u64(ROWS)
        ranges[n] = row + _n_below(cells, c, constraints.low[k])
        ranges[n + u64(1)] = row + _n_below(cells, c, constraints.high[k]) + u64(1)
        n += u64(2)
    if n == u64(0):  # match all
        row = u64(len(cells.cuts) // N_CUTS * ROWS)
        ranges[u64(0)], ranges[u64(1)] = row, row + u64(1)
        n = u64(2)
    return n >> u64(1)


@kernel
def _keep_held(constraints, first, last, matrix, words, at, counts):
    """Keep those events in words[at:at+WORDS] for which constraints hold; count them."""
    n_held = 0
    for w in range(u64(WORDS)):
        left = words[at + w]
        kept = left
        while left:
            bit = u64(trailing_zeros(left))
            left &= left - u64(1)
            e = u64(64) * w + bit
            holds = True
            for k in range(first, last):
                value = matrix[e, u64(constraints.column[k])]
                if not (constraints.low[k] <= value <= constraints.high[k]):
                    holds = False
                    break
            kept ^= u64(not holds) << bit
            counts[e] += np.int64(holds)
            n_held += holds
        words[at + w] = kept
    return n_held


@kernel
def _place(words, done, n_done, counts, slots):
    """Write the slots done to the events in their words. O(n_done x WORDS + matches)."""
    ends = np.empty(len(counts), np.int64)
    n = np.int64(0)
    for e in range(len(counts)):
        ends[e] = n
        n += counts[e]
    for t in range(n_done):
        for w in range(u64(WORDS)):
            left = words[t * u64(WORDS) + w]
            while left:
                e = u64(64) * w + u64(trailing_zeros(left))
                left &= left - u64(1)
                slots[u64(ends[e])] = done[t]
                ends[e] += 1
