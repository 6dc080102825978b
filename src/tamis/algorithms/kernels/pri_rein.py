"""Pri-REIN: the order in which the bit set of REIN is read."""

from __future__ import annotations

import numpy as np

from tamis.kernels.bits import has_bit
from tamis.kernels.compiled import kernel


@kernel
def write_unset_in_order(lists, first, last, words, out, n_out):
    """Append the slots of lists first..last - 1 whose bit is 0 to out[:n_out]; the new length.

    words: u8[P / 64]. O(slots of the lists).
    """
    for level in range(first, last):
        start = np.uint64(lists.start[level])
        for i in range(start, start + np.uint64(lists.size[level])):
            slot = lists.slots[i]
            out[n_out] = slot
            n_out += 1 - np.int64(has_bit(words, slot))
    return n_out


@kernel
def write_unset_of_level(lists, level, start, end, words, out, n_out):
    """The same for places start..end - 1 of one list."""
    first = np.uint64(lists.start[level])
    for i in range(first + np.uint64(start), first + np.uint64(end)):
        slot = lists.slots[i]
        out[n_out] = slot
        n_out += 1 - np.int64(has_bit(words, slot))
    return n_out


@kernel
def estimate_selectivity(stored, slots, domains, selectivity):
    """Write to selectivity[i] (f8[n]) the share of events that slots[i] (i4[n]) accepts.

    Of uniform and independent values: the product of the shares of the domains.
    """
    for i in range(slots.size):
        product = 1.0
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            m = np.int64(stored.attribute[k])
            first, last = domains.low[m], domains.low[m] + domains.width[m]
            low, high = max(stored.low[k], first), min(stored.high[k], last)
            if not stored.negated[k]:
                product *= max(0.0, high - low) / domains.width[m]
        selectivity[i] = product


@kernel
def sort_tail(lists, b, n_sorted):
    """Bring list b into descending order of values; its first n_sorted entries are so already.

    Equal values keep their order. O(size) for one new entry, O(size log size) for many.
    """
    start, size = lists.start[b], lists.size[b]
    if size - n_sorted > 8:
        slots = lists.slots[start : start + size].copy()
        values = lists.values[start : start + size].copy()
        order = np.argsort(-values, kind="mergesort")
        for i in range(size):
            lists.slots[start + i] = slots[order[i]]
            lists.values[start + i] = values[order[i]]
        return
    for i in range(start + n_sorted, start + size):
        slot, value = lists.slots[i], lists.values[i]
        at = i
        while at > start and lists.values[at - 1] < value:
            lists.slots[at] = lists.slots[at - 1]
            lists.values[at] = lists.values[at - 1]
            at -= 1
        lists.slots[at] = slot
        lists.values[at] = value
