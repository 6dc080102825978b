"""REIN: subscriptions in buckets by their bounds, and the marking of those that do not match."""

from __future__ import annotations

import numpy as np

from tamis.kernels.bits import set_bit
from tamis.kernels.cells import cell_of
from tamis.kernels.compiled import inlined, kernel

LOW, HIGH, EXCLUDED, N_SIDES = 0, 1, 2, 3


@inlined
def first_list(m, side, n_buckets):
    """The number of the first bucket of one side of an attribute."""
    return (m * N_SIDES + side) * n_buckets


@kernel
def count_bounds(stored, slots):
    """How many entries ``fill_bounds`` makes of slots (i4[n])."""
    n_entries = 0
    for i in range(slots.size):
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            n_entries += 1 if stored.negated[k] else 2
    return n_entries


@kernel
def fill_bounds(stored, slots, domains, n_buckets, keys, owners, values):
    """Write each bound's bucket, slot and value: two entries an interval, one an excluded value.

    keys, owners: i4[n]; values: f8[n], as many as ``count_bounds`` says. O(constraints).
    """
    at = 0
    for i in range(slots.size):
        slot = slots[i]
        for k in range(stored.start[slot], stored.end[slot]):
            m, low, high = np.int64(stored.attribute[k]), stored.low[k], stored.high[k]
            side = EXCLUDED if stored.negated[k] else LOW
            keys[at] = first_list(m, side, n_buckets) + cell_of(domains, m, low, n_buckets)
            owners[at], values[at] = slot, low
            at += 1
            if side == LOW:
                keys[at] = first_list(m, HIGH, n_buckets) + cell_of(domains, m, high, n_buckets)
                owners[at], values[at] = slot, high
                at += 1


@kernel
def mark_lists(lists, first, last, words):
    """Set the bits of all slots in lists first..last - 1."""
    for b in range(first, last):
        start = np.uint64(lists.start[b])
        for i in range(start, start + np.uint64(lists.size[b])):
            set_bit(words, lists.slots[i])


@kernel
def mark_unmatched(lists, domains, n_buckets, event, words):
    """Set the bit of every slot with a constraint that the event (f8[M]) does not meet.

    words: u8[P / 64], written. A value's own bucket is compared entry by entry; what lies in the
    buckets beyond needs no comparison. O(bounds on the wrong side of the values).
    """
    for m in range(event.size):
        value = event[m]
        low, high = first_list(m, LOW, n_buckets), first_list(m, HIGH, n_buckets)
        excluded = first_list(m, EXCLUDED, n_buckets)
        if np.isnan(value):
            mark_lists(lists, low, low + n_buckets, words)
            mark_lists(lists, excluded, excluded + n_buckets, words)
            continue
        cell = cell_of(domains, m, value, n_buckets)
        for i in range(lists.start[low + cell], lists.start[low + cell] + lists.size[low + cell]):
            if lists.values[i] > value:
                set_bit(words, lists.slots[i])
        mark_lists(lists, low + cell + 1, low + n_buckets, words)
        mark_lists(lists, high, high + cell, words)
        b = high + cell
        for i in range(lists.start[b], lists.start[b] + lists.size[b]):
            if lists.values[i] < value:
                set_bit(words, lists.slots[i])
        b = excluded + cell
        for i in range(lists.start[b], lists.start[b] + lists.size[b]):
            if lists.values[i] == value:
                set_bit(words, lists.slots[i])
