"""Event ranking: when the events that were found came, and what they are called.

Parts of a store are handed over as addresses, four each: of ``moment`` and ``sequence`` (i8, a
number an event), and of the offsets (i4) and letters (u1) of ids in Arrow's layout, which are 0 of
a part that has its ids elsewhere. Of P parts with C0, C1, ... events found each, ``rows`` lists the
events of the first part, then those of the next. Every event lies somewhere else in memory, so
what will be read is asked for before.
"""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, kernel
from tamis.kernels.memory import i4_at, i8_at, prefetch_at, u1_at


def where_of(moment: Array, sequence: Array, *ids: Array) -> Array:
    """The addresses of a part, i8[4]; whoever has them keeps the arrays."""
    held = (moment, sequence, *ids)
    assert all(array.flags.c_contiguous for array in held)
    addresses = [array.ctypes.data if array.size else 0 for array in held]
    return np.array([*addresses, 0, 0][:4], np.int64)


@kernel
def gather_keys(where, counts, rows, keys):
    """Write sequence and moment of each event to keys: i8[2, N]. O(N).

    ``where``: i8[4 P]; ``counts``: i8[P]; ``rows``: i4[N]. Asks for the offsets of ids too.
    """
    for ask in (True, False):
        first = 0
        for p in range(counts.size):
            moment, sequence = i8_at(where[4 * p]), i8_at(where[4 * p + 1])
            offsets = i4_at(where[4 * p + 2])
            for i in range(first, first + counts[p]):
                row = u64(rows[i])
                if ask:
                    prefetch_at(moment, row)
                    prefetch_at(sequence, row)
                    prefetch_at(offsets, row)
                else:
                    keys[0, i], keys[1, i] = sequence[row], moment[row]
            first += counts[p]


@kernel
def join_ids(where, counts, rows, chosen):
    """The letters of the chosen events' ids one after the other, a zero behind each: u1[...].

    ``chosen``: i8[K], positions in ``rows``; the rest as above. Where a part has no ids here there
    is nothing before the zero. O(P + N + letters).
    """
    part_of = np.empty(rows.size, np.int32)
    first = 0
    for p in range(counts.size):
        part_of[first : first + counts[p]] = p
        first += counts[p]
    start, stop = np.zeros((2, chosen.size), np.int64)
    n_letters = np.int64(chosen.size)
    for i in range(chosen.size):
        p, row = part_of[chosen[i]], u64(rows[chosen[i]])
        if where[4 * p + 3]:
            offsets = i4_at(where[4 * p + 2])
            start[i], stop[i] = offsets[row], offsets[row + u64(1)]
            prefetch_at(u1_at(where[4 * p + 3]), u64(start[i]))
            n_letters += stop[i] - start[i]
    joined = np.zeros(n_letters, np.uint8)
    at = np.int64(0)
    for i in range(chosen.size):
        letters = u1_at(where[4 * part_of[chosen[i]] + 3])
        for k in range(start[i], stop[i]):
            joined[at] = letters[k]
            at += 1
        at += 1
    return joined
