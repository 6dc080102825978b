"""Reach: which words of a group can hold anything at the place of an event.

A crowded cell has hundreds of words, and most of them hold slots of another corner of it. So the
slots of a word are near each other on the axis that leads to the group and on the second axis of
its kind (``near_key``), and a word has a *reach*: from the least low to the greatest high on one
axis or on both. It is four numbers of 15 bits, which one subtraction compares with those of an
event.
"""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.sparse_groups import CELL, PAIR

ANYWHERE = 0  # reach of a word that no event is too far from
EVERYWHERE = 0x7FFF7FFF  # place of an event, on an axis, that no reach is too far from
NO_AXIS = -1  # second of a kind whose slots are not narrow on any
_WORTH = 0.25  # share of events that a second axis excludes at least
_GUARDS = 0x8000800080008000  # a bit above each number, which the subtraction may take


@inlined
def reach_on(least, greatest):
    """The reach on an axis, of masses; and the place of an event there, whose masses are equal."""
    return u64(least) >> u64(1) | (u64(65535 - greatest) >> u64(1)) << u64(16)


def choose_second_axes(bounds, groups, slots, kinds):
    """Write the second axis of kinds that are no pairs; kinds: i4[.., 5].

    It is the one on which the intervals of their ``slots`` exclude most events.
    """
    is_pair = kinds[:, 0] == PAIR
    kinds[~is_pair, 3] = NO_AXIS
    first, n = bounds.start[slots], np.diff(bounds.start)[slots]
    slot = np.repeat(slots, n)
    k = np.repeat(first + n - np.cumsum(n), n) + np.arange(len(slot))
    slot, k = (held[k != groups.lead[slot, 1]] for held in (slot, k))
    kind_of_k = groups.kind[groups.of_slot[slot]].astype(np.int64)
    keys, at = np.unique(kind_of_k << 32 | bounds.axis[k], return_inverse=True)
    excluded = np.bincount(at, 1 - bounds.share[k], len(keys))
    n_slots = np.bincount(groups.kind[groups.of_slot[slots]], minlength=len(kinds))
    order = np.argsort(excluded)  # the best axis of a kind is its last
    for key, sum_excluded in zip(keys[order].tolist(), excluded[order].tolist(), strict=True):
        kind, axis = divmod(key, 1 << 32)
        if not is_pair[kind] and sum_excluded >= _WORTH * n_slots[kind]:
            kinds[kind, 3] = axis


@kernel
def find_seconds(bounds, groups, kinds, is_in_word, second):
    """Write second: i4[P], the constraint on the second axis of a slot's kind, -1 = none. O(K)."""
    start, axis = bounds.start, bounds.axis
    for slot in range(second.size):
        second[slot] = -1
        if is_in_word[slot]:
            a = kinds[groups.kind[groups.of_slot[slot]], 3]
            for k in range(start[slot], start[slot + 1]):
                if axis[k] == a:
                    second[slot] = k


@inlined
def is_in_reach(reach, place):
    """Whether an event at a place may be inside a reach: none of its numbers is greater."""
    guards = u64(_GUARDS)
    return ((place | guards) - reach) & guards == guards


@inlined
def spread_bits(x):
    """The eight bits of a number, every second one."""
    x = (x | x << u64(4)) & u64(0x0F0F)
    x = (x | x << u64(2)) & u64(0x3333)
    return (x | x << u64(1)) & u64(0x5555)


@inlined
def near_key(mass, level, mass_two, level_two):
    """A number of 16 bits, alike for masses that are near each other in a cell (Z-order)."""
    one = (u64(mass) << u64(level) & u64(0xFFFF)) >> u64(8)
    two = (u64(mass_two) << u64(level_two) & u64(0xFFFF)) >> u64(8)
    return spread_bits(one) << u64(1) | spread_bits(two)


@kernel
def write_reach(bounds, slot_of_place, lead, second, words, reach):
    """Write reach: u8[W], ANYWHERE where its slots have neither leader nor second. O(places)."""
    mass = bounds.mass
    for w in range(reach.size):
        kind_type = lead[slot_of_place[words.place[w]], 0]
        least = least_two = 65535
        greatest = greatest_two = 0
        for place in range(words.place[w], words.end[w]):
            slot = slot_of_place[place]
            if kind_type >= CELL:
                k = lead[slot, 1]
                least = min(least, np.int64(mass[k, 0]))
                greatest = max(greatest, np.int64(mass[k, 1]))
            k = second[slot]
            if k < 0:
                least_two, greatest_two = 0, 65535
            else:
                least_two = min(least_two, np.int64(mass[k, 0]))
                greatest_two = max(greatest_two, np.int64(mass[k, 1]))
        reach[w] = reach_on(least, greatest) if kind_type >= CELL else u64(ANYWHERE)
        reach[w] |= reach_on(least_two, greatest_two) << u64(32)
