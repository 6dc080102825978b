"""Counting: subscriptions whose number of satisfied constraints is complete."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

_GROUP = 64


@kernel
def write_complete(counts, needed, n_slots, out):
    """Write the slots with counts[slot] = needed[slot] to ``out``, ascending; return how many.

    counts, needed: u1[P], u2[P] or u4[P]. Groups without any are passed over by vector comparisons.
    O(P).
    """
    n_out = 0
    whole = n_slots // _GROUP * _GROUP
    for first in range(0, whole, _GROUP):
        some = np.uint8(0)
        for slot in range(first, first + _GROUP):
            some |= np.uint8(counts[slot] == needed[slot])
        if some:
            for slot in range(first, first + _GROUP):
                out[n_out] = slot
                n_out += counts[slot] == needed[slot]
    for slot in range(whole, n_slots):
        if counts[slot] == needed[slot]:
            out[n_out] = slot
            n_out += 1
    return n_out


@kernel
def count_list(lists, b, counts):
    """Add one to the counts of every slot of list b."""
    start = np.uint64(lists.start[b])
    for i in range(start, start + np.uint64(lists.size[b])):
        counts[np.uint32(lists.slots[i])] += 1


@kernel
def write_newly_complete(counts, needed, n_slots, out, n_out):
    """Append the slots with counts[slot] = needed[slot] to out[:n_out]; return the new length.

    Their counts become one more, so that they are not written again: requires that a complete
    slot is counted no further. Passes over groups as ``write_complete`` does. O(P).
    """
    whole = n_slots // _GROUP * _GROUP
    for first in range(0, whole, _GROUP):
        some = np.uint8(0)
        for slot in range(first, first + _GROUP):
            some |= np.uint8(counts[slot] == needed[slot])
        if some:
            n_out = append_newly_complete(counts, needed, first, first + _GROUP, out, n_out)
    return append_newly_complete(counts, needed, whole, n_slots, out, n_out)


@kernel
def append_newly_complete(counts, needed, first, last, out, n_out):
    """The same for slots first to last - 1, one by one."""
    for slot in range(first, last):
        if counts[slot] == needed[slot]:
            counts[slot] += 1
            out[n_out] = slot
            n_out += 1
    return n_out
