"""H-Tree: a bucket for every combination of cells of the indexed attributes.

An indexed attribute has n_cells cells of equal width and one more, n_cells, for subscriptions
that do not bound it. *Places* are values mapped to [0, 1], by the domain. An interval is split
into pieces no wider than a cell, and each belongs to the cell that holds its middle; so a value
can only lie in pieces of cells that reach half a width to either side of it.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.bits import has_bit, set_bit
from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.constraints import accepts

_SLACK = 1e-9  # more than rounding can move a place


@inlined
def place_of(domains, m, value):
    """Where a value lies in the domain, from 0 to 1; never decreases with the value."""
    place = (value - domains.low[m]) / domains.width[m]
    return min(max(place, 0.0), 1.0)


@inlined
def cell_at(place, n_cells):
    """The cell of a place, which may lie outside [0, 1]."""
    return min(max(np.int64(np.floor(place * n_cells)), 0), n_cells - 1)


@kernel
def write_span(stored, slot, domains, indexed, n_cells, span):
    """Write the first and last cell of each indexed attribute to span (i8[L, 2]).

    Returns how many buckets that is. The middles of neighbouring pieces are no further apart
    than a cell is wide, so the cells of a constraint are neighbours too.
    """
    n_buckets = 1
    for level in range(indexed.size):
        span[level, 0] = span[level, 1] = n_cells
        for k in range(stored.start[slot], stored.end[slot]):
            if stored.attribute[k] == indexed[level] and not stored.negated[k]:
                low = place_of(domains, indexed[level], stored.low[k])
                high = place_of(domains, indexed[level], stored.high[k])
                n_pieces = max(1.0, np.ceil((high - low) * n_cells))
                half = (high - low) / n_pieces / 2
                span[level, 0] = cell_at(low + half, n_cells)
                span[level, 1] = cell_at(high - half, n_cells)
        n_buckets *= span[level, 1] - span[level, 0] + 1
    return n_buckets


@inlined
def first_bucket(span, n_cells, at):
    """Set at (i8[L]) to the first cells of the span; return their bucket."""
    bucket = 0
    for level in range(at.size):
        at[level] = span[level, 0]
        bucket = bucket * (n_cells + 1) + at[level]
    return bucket


@kernel
def next_bucket(span, n_cells, at):
    """Move at (i8[L]) to the next combination of cells of the span; return its bucket."""
    level = at.size - 1
    while level > 0 and at[level] == span[level, 1]:
        at[level] = span[level, 0]
        level -= 1
    at[level] += 1
    bucket = 0
    for level in range(at.size):
        bucket = bucket * (n_cells + 1) + at[level]
    return bucket


@kernel
def count_buckets(stored, slots, domains, indexed, n_cells, counts):
    """Add to counts (i8[B], or empty) how many entries each bucket gets; return their sum."""
    span, at = np.empty((indexed.size, 2), np.int64), np.empty(indexed.size, np.int64)
    n_entries = 0
    for i in range(slots.size):
        n_buckets = write_span(stored, slots[i], domains, indexed, n_cells, span)
        n_entries += n_buckets
        if counts.size:
            bucket = first_bucket(span, n_cells, at)
            counts[bucket] += 1
            for _ in range(1, n_buckets):
                counts[next_bucket(span, n_cells, at)] += 1
    return n_entries


@kernel
def fill_buckets(stored, slots, domains, indexed, n_cells, keys, owners):
    """Write the buckets of slots (i4[n]) and whose they are, as many as ``count_buckets`` says."""
    span, at = np.empty((indexed.size, 2), np.int64), np.empty(indexed.size, np.int64)
    n = 0
    for i in range(slots.size):
        n_buckets = write_span(stored, slots[i], domains, indexed, n_cells, span)
        bucket = first_bucket(span, n_cells, at)
        for j in range(n_buckets):
            keys[n] = bucket
            owners[n] = slots[i]
            n += 1
            if j + 1 < n_buckets:
                bucket = next_bucket(span, n_cells, at)


@kernel
def write_visited(event, domains, indexed, n_cells, buckets):
    """Write the buckets an event must visit to buckets (i4[...]); return how many.

    Of each indexed attribute: the cells within half a cell's width, and that of the unbounded.
    """
    n_buckets = 1
    buckets[0] = 0
    for level in range(indexed.size):
        value = event[indexed[level]]
        first, last = n_cells, n_cells - 1
        if not np.isnan(value):
            place = place_of(domains, indexed[level], value)
            first = cell_at(place - 0.5 / n_cells - _SLACK, n_cells)
            last = cell_at(place + 0.5 / n_cells + _SLACK, n_cells)
        n_before = n_buckets
        for i in range(n_before):
            parent = buckets[i] * (n_cells + 1)
            buckets[i] = parent + n_cells
            for cell in range(first, last + 1):
                buckets[n_buckets] = parent + cell
                n_buckets += 1
    return n_buckets


@kernel
def verify_buckets(lists, buckets, stored, event, seen, out, n_out):
    """Append the slots of buckets (i4[n]) that accept the event to out[:n_out]; the new length.

    seen: u8[P / 64], the slots already looked at, updated. O(entries + constraints looked at).
    """
    for j in range(buckets.size):
        b = buckets[j]
        for i in range(lists.start[b], lists.start[b] + lists.size[b]):
            slot = lists.slots[i]
            if not has_bit(seen, slot):
                set_bit(seen, slot)
                if accepts(stored, slot, event):
                    out[n_out] = slot
                    n_out += 1
    return n_out
