"""Texts: a hash table from texts to their positions, over Arrow's buffers."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

_OFFSET = np.uint64(14695981039346656037)  # FNV-1a
_PRIME = np.uint64(1099511628211)


@kernel
def hash_text(letters, start, stop):
    """FNV-1a of ``letters[start:stop]``, u1. O(length)."""
    made = _OFFSET
    for i in range(start, stop):
        made = (made ^ np.uint64(letters[i])) * _PRIME
    return made ^ (made >> np.uint64(29))


@kernel
def fill_table(letters, offsets, table):
    """Enter every text; return the position of one that is there twice, or -1.

    ``letters``: u1[...]; ``offsets``: i4[N + 1]; ``table``: i4[2^k > N], zeros, becomes the
    position plus one of each text at the first free place after its hash. O(N).
    """
    mask = np.uint64(table.size - 1)
    for position in range(offsets.size - 1):
        start, stop = offsets[position], offsets[position + 1]
        place = hash_text(letters, start, stop) & mask
        while table[place]:
            if _is_same(letters, offsets, table[place] - 1, letters, start, stop):
                return position
            place = (place + np.uint64(1)) & mask
        table[place] = position + 1
    return -1


@kernel
def find_text(letters, offsets, table, wanted):
    """The position of a text (``wanted``: u1[...]), or -1. O(length)."""
    mask = np.uint64(table.size - 1)
    place = hash_text(wanted, 0, wanted.size) & mask
    while table[place]:
        if _is_same(letters, offsets, table[place] - 1, wanted, 0, wanted.size):
            return table[place] - 1
        place = (place + np.uint64(1)) & mask
    return -1


@kernel
def find_texts(letters, offsets, table, wanted, wanted_offsets, out):
    """``find_text`` for each of many, in the same layout; writes positions to out (i4[n])."""
    mask = np.uint64(table.size - 1)
    for i in range(out.size):
        start, stop = wanted_offsets[i], wanted_offsets[i + 1]
        place = hash_text(wanted, start, stop) & mask
        out[i] = -1
        while table[place]:
            if _is_same(letters, offsets, table[place] - 1, wanted, start, stop):
                out[i] = table[place] - 1
                break
            place = (place + np.uint64(1)) & mask


@kernel
def _is_same(letters, offsets, position, wanted, start, stop):
    first = offsets[position]
    if offsets[position + 1] - first != stop - start:
        return False
    for i in range(stop - start):
        if letters[first + i] != wanted[start + i]:
            return False
    return True
