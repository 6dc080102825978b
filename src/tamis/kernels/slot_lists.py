"""Slot lists: many short lists of slots in one pool, which grow and shrink.

A list that is full moves to the end of the pool, to a place twice as large; what it leaves
behind is garbage until the pool is built anew.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.kernels.compiled import Array, kernel


class Lists(NamedTuple):
    """B lists: list b is ``slots[start[b] : start[b] + size[b]]``, in no promised order."""

    start: Array  # i8[B]
    size: Array  # i8[B]
    capacity: Array  # i8[B]
    slots: Array  # i4[Q]
    values: Array  # f8[Q], a value beside each slot, or empty


@kernel
def count_keys(keys, counts):
    """Add to counts (i8[B]) how often each list occurs in keys (i4[n])."""
    for i in range(keys.size):
        counts[keys[i]] += 1


@kernel
def move_lists(old, new):
    """Copy every list from its old place to its new one. O(entries)."""
    for b in range(old.start.size):
        source, target = old.start[b], new.start[b]
        for i in range(old.size[b]):
            new.slots[target + i] = old.slots[source + i]
            if old.values.size:
                new.values[target + i] = old.values[source + i]
        new.size[b] = old.size[b]


@kernel
def append_entries(lists, keys, slots, values, first, tail):
    """Append entries from ``first`` on, until the pool is full.

    keys, slots: i4[n]; values: f8[n] or empty; tail: the first free place behind all lists.
    Returns how many are appended in all and the new tail. Amortised O(1) an entry.
    """
    for i in range(first, keys.size):
        b = keys[i]
        if lists.size[b] == lists.capacity[b]:
            wanted = max(4, 2 * lists.capacity[b])
            if tail + wanted > lists.slots.size:
                return i, tail
            for j in range(lists.size[b]):
                lists.slots[tail + j] = lists.slots[lists.start[b] + j]
                if lists.values.size:
                    lists.values[tail + j] = lists.values[lists.start[b] + j]
            lists.start[b] = tail
            lists.capacity[b] = wanted
            tail += wanted
        at = lists.start[b] + lists.size[b]
        lists.slots[at] = slots[i]
        if lists.values.size:
            lists.values[at] = values[i]
        lists.size[b] += 1
    return keys.size, tail


@kernel
def discard_entries(lists, keys, slots):
    """Take slots[i] (i4[n]) out of list keys[i]; the list's last entry takes its place.

    Requires that it is there. O(size of the list) each.
    """
    for i in range(keys.size):
        b, slot = keys[i], slots[i]
        at = lists.start[b]
        while lists.slots[at] != slot:
            at += 1
        last = lists.start[b] + lists.size[b] - 1
        lists.slots[at] = lists.slots[last]
        if lists.values.size:
            lists.values[at] = lists.values[last]
        lists.size[b] -= 1


@kernel
def discard_slots(lists, is_gone):
    """Take every slot with is_gone[slot] (b1[P]) out of all lists, which keep their order."""
    for b in range(lists.start.size):
        start, n_kept = lists.start[b], 0
        for i in range(lists.size[b]):
            slot = lists.slots[start + i]
            if is_gone[slot]:
                continue
            lists.slots[start + n_kept] = slot
            if lists.values.size:
                lists.values[start + n_kept] = lists.values[start + i]
            n_kept += 1
        lists.size[b] = n_kept
