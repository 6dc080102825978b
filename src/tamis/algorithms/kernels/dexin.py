"""DEXIN: bounds in two arrays of slots an attribute, and what an event excludes by them.

The paper's slots are called buckets here, as a slot is a subscription's number everywhere else.
A third array holds excluded values. Inside a bucket the bounds ascend, or are in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.bits import set_bit
from tamis.kernels.cells import cell_of
from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.slot_lists import Lists

LOW, HIGH, EXCLUDED, N_SIDES = 0, 1, 2, 3


class Buckets(NamedTuple):
    """The buckets of M attributes, B a side; the value beside a slot is its bound."""

    lists: Lists
    n_buckets: int
    is_ordered: bool
    n_bounds: Array  # i8[M, 2, B + 1], how many bounds there are, as Fenwick trees


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
            if stored.negated[k]:
                n_entries += 1
            else:
                n_entries += 1 if stored.low[k] > -np.inf else 0
                n_entries += 1 if stored.high[k] < np.inf else 0
    return n_entries


@kernel
def fill_bounds(stored, slots, domains, n_buckets, keys, owners, values):
    """Write each bound's bucket, slot and value; a bound that is absent has no entry.

    keys, owners: i4[n]; values: f8[n], as many as ``count_bounds`` says. O(constraints).
    """
    at = 0
    for i in range(slots.size):
        slot = slots[i]
        for k in range(stored.start[slot], stored.end[slot]):
            m, low, high = np.int64(stored.attribute[k]), stored.low[k], stored.high[k]
            side = EXCLUDED if stored.negated[k] else LOW
            if side == EXCLUDED or low > -np.inf:
                keys[at] = first_list(m, side, n_buckets) + cell_of(domains, m, low, n_buckets)
                owners[at], values[at] = slot, low
                at += 1
            if side == LOW and high < np.inf:
                keys[at] = first_list(m, HIGH, n_buckets) + cell_of(domains, m, high, n_buckets)
                owners[at], values[at] = slot, high
                at += 1


@kernel
def count_buckets(buckets, keys, more):
    """Add ``more`` (1 or -1) to the counters of buckets (keys: i4[n]). O(n log B)."""
    n = buckets.n_buckets
    for i in range(keys.size):
        m, side = keys[i] // (N_SIDES * n), keys[i] // n % N_SIDES
        at = keys[i] % n + 1
        while side != EXCLUDED and at <= n:
            buckets.n_bounds[m, side, at] += more
            at += at & -at


@kernel
def recount_buckets(buckets):
    """Write the counters of all buckets by their sizes. O(M B)."""
    n = buckets.n_buckets
    for m in range(buckets.n_bounds.shape[0]):
        for side in range(EXCLUDED):
            for at in range(1, n + 1):
                size = buckets.lists.size[first_list(m, side, n) + at - 1]
                buckets.n_bounds[m, side, at] = size
            for at in range(1, n + 1):
                above = at + (at & -at)
                if above <= n:
                    buckets.n_bounds[m, side, above] += buckets.n_bounds[m, side, at]


@inlined
def count_below(n_bounds, m, side, bucket):
    """How many bounds are in the buckets below one. O(log B)."""
    n_below, at = 0, bucket
    while at > 0:
        n_below += n_bounds[m, side, at]
        at -= at & -at
    return n_below


@kernel
def find_rates(buckets, domains, n_asking, n_held, event, rates):
    """Write the share of subscriptions that match on each attribute, by the counters.

    Formula 3: the value's own buckets count as not matching. n_asking: i8[M]; n_held:
    subscriptions in all; event, rates: f8[M]. O(M log B).
    """
    n = buckets.n_buckets
    for m in range(event.size):
        if np.isnan(event[m]):
            rates[m] = 1.0 - n_asking[m] / max(1, n_held)
            continue
        cell = cell_of(domains, m, event[m], n)
        n_low = count_below(buckets.n_bounds, m, LOW, n)
        n_low -= count_below(buckets.n_bounds, m, LOW, cell)
        n_high = count_below(buckets.n_bounds, m, HIGH, cell + 1)
        rates[m] = max(0.0, 1.0 - (n_low + n_high) / max(1, n_held))


@kernel
def exclude(buckets, columns, domains, event, plan, words):
    """Set the bit of every slot that does not match on the excluding attributes of a plan.

    columns: see kernels/columns.py; event: f8[M]; plan: (order i4[M], how many exclude); words:
    u8[W], written whole. Stops when nobody is left. O(entries passed).
    """
    order, n_excluding = plan
    for at in range(words.size):
        words[at] = columns.absent[at]
    for k in range(n_excluding):
        m = np.int64(order[k])
        if np.isnan(event[m]):
            for at in range(words.size):
                words[at] |= columns.asked[m, at]
        else:
            exclude_by_bounds(buckets, domains, m, event[m], words)
        if is_full(words):
            return


@kernel
def is_full(words):
    """Whether every bit is set; one unset bit near the front answers at once."""
    for at in range(words.size):
        if ~words[at]:
            return False
    return True


@kernel
def exclude_by_bounds(buckets, domains, m, value, words):
    """Set the bits of low bounds above a value, high bounds below it and itself (Algorithm 1).

    O(bounds on the wrong side, and a look into the value's own buckets).
    """
    lists, n = buckets.lists, buckets.n_buckets
    cell = cell_of(domains, m, value, n)
    low, high = first_list(m, LOW, n), first_list(m, HIGH, n)
    mark_lists(lists, low + cell + 1, low + n, words)
    mark_lists(lists, high, high + cell, words)
    own = (low + cell, high + cell, first_list(m, EXCLUDED, n) + cell)
    if buckets.is_ordered:
        mark_ordered(lists, own, value, words)
    else:
        mark_unordered(lists, own, value, words)


@kernel
def mark_lists(lists, first, last, words):
    """Set the bits of all slots in lists first..last - 1."""
    for b in range(first, last):
        start = np.uint64(lists.start[b])
        for i in range(start, start + np.uint64(lists.size[b])):
            set_bit(words, lists.slots[i])


@kernel
def mark_ordered(lists, own, value, words):
    """Set the bits of a value's own buckets: low above it, high below it, excluded ones equal.

    own: three lists, their values ascending. O(log size + bits set).
    """
    low, high, excluded = own
    start = first_not_below(lists, low, value)
    end = lists.start[low] + lists.size[low]
    while start < end and lists.values[start] == value:
        start += 1
    for i in range(start, end):
        set_bit(words, lists.slots[i])
    for i in range(lists.start[high], first_not_below(lists, high, value)):
        set_bit(words, lists.slots[i])
    i, end = first_not_below(lists, excluded, value), lists.start[excluded] + lists.size[excluded]
    while i < end and lists.values[i] == value:
        set_bit(words, lists.slots[i])
        i += 1


@kernel
def mark_unordered(lists, own, value, words):
    """The same for buckets in any order. O(size)."""
    low, high, excluded = own
    for i in range(lists.start[low], lists.start[low] + lists.size[low]):
        if lists.values[i] > value:
            set_bit(words, lists.slots[i])
    for i in range(lists.start[high], lists.start[high] + lists.size[high]):
        if lists.values[i] < value:
            set_bit(words, lists.slots[i])
    for i in range(lists.start[excluded], lists.start[excluded] + lists.size[excluded]):
        if lists.values[i] == value:
            set_bit(words, lists.slots[i])


@kernel
def first_not_below(lists, b, value):
    """The first entry of list b, values ascending, that is not below a value. O(log size)."""
    first, last = lists.start[b], lists.start[b] + lists.size[b]
    while first < last:
        middle = (first + last) >> 1
        if lists.values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def order_tails(lists, numbers, n_new):
    """Put the last n_new[i] entries of each list numbers[i] where they belong.

    Requires that the values before them ascend; ensures that all do. numbers, n_new: i8[n].
    O(size + n_new log n_new) each, O(entries that move) for a single one.
    """
    for i in range(numbers.size):
        b, n = numbers[i], n_new[i]
        start = lists.start[b]
        first, end = start + lists.size[b] - n, start + lists.size[b]
        order = np.argsort(lists.values[first:end]) if n > 1 else np.zeros(1, np.int64)
        values, slots = lists.values[first:end][order], lists.slots[first:end][order]
        old, at = first - 1, end - 1
        for new in range(n - 1, -1, -1):
            while old >= start and lists.values[old] > values[new]:
                lists.values[at], lists.slots[at] = lists.values[old], lists.slots[old]
                old -= 1
                at -= 1
            lists.values[at], lists.slots[at] = values[new], slots[new]
            at -= 1


@kernel
def discard_ordered(lists, keys, slots, values):
    """Take slots[i] with values[i] out of list keys[i], which stays in order.

    keys, slots: i4[n]; values: f8[n]. Requires that it is there. O(size) each.
    """
    for i in range(keys.size):
        b = keys[i]
        at, last = first_not_below(lists, b, values[i]), lists.start[b] + lists.size[b] - 1
        while lists.slots[at] != slots[i]:
            at += 1
        for j in range(at, last):
            lists.slots[j], lists.values[j] = lists.slots[j + 1], lists.values[j + 1]
        lists.size[b] -= 1
