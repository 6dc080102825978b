"""Reach: which words of a group can hold anything at the place of an event.

A crowded cell has hundreds of words, and most of them hold slots of another corner of it. So the
slots of a word are near each other on the axes that lead to the group (``near_key``), and a word
has a *reach*: from the least low to the greatest high on one axis or on both. It is four numbers
of 15 bits, which one subtraction compares with those of an event.
"""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.sparse_groups import CELL, PAIR

ANYWHERE = 0  # reach of a word that no event is too far from
_GUARDS = 0x8000800080008000  # a bit above each number, which the subtraction may take


@inlined
def reach_on(least, greatest):
    """The reach on an axis, of masses; and the place of an event there, whose masses are equal."""
    return u64(least) >> u64(1) | (u64(65535 - greatest) >> u64(1)) << u64(16)


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
def write_reach(bounds, slot_of_place, lead, words, reach):
    """Write reach: u8[W], ANYWHERE where no interval leads to a word. O(places)."""
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
            if kind_type == PAIR:
                k = lead[slot, 2]
                least_two = min(least_two, np.int64(mass[k, 0]))
                greatest_two = max(greatest_two, np.int64(mass[k, 1]))
        reach[w] = reach_on(least, greatest) if kind_type >= CELL else u64(ANYWHERE)
        if kind_type == PAIR:
            reach[w] |= reach_on(least_two, greatest_two) << u64(32)
