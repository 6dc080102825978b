"""Lines: which axes the words of a sparse part are made of.

A large group is cut into words of up to 64 slots that constrain the same one to three axes. A
slot chooses these axes so that few events touch its bit, and so that others choose the same: a
word costs an event the same however few slots it holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.sparse_directory import mix
from tamis.kernels.sparse_groups import (
    CHECK_NS,
    MAX_SCAN,
    N_BUCKETS,
    POINT,
    SCAN_NS,
    WORD_NS,
)
from tamis.kernels.sparse_reach import near_key

MAX_PICK = 6  # constraints of a slot that may become lines
NO_LINES = 0  # key of a slot that is scanned


class FirstRound(NamedTuple):
    """What the first choice of lines goes by, while nobody has chosen; see choose_lines."""

    n_slots: float  # of the group
    share: Array  # f8[M]
    colour: Array  # u1[M]


@inlined
def key_of_lines(a, b, c):
    """Up to three axes, ascending, as one number; -1 = none."""
    return (u64(a + 1) << u64(32)) | (u64(b + 1) << u64(16)) | u64(c + 1)


@inlined
def axis_of_key(key, x):
    """Axis 0..2 of a key, -1 = none."""
    return np.int64((key >> u64(32 - 16 * x)) & u64(0xFFFF)) - 1


@kernel
def pick_axes(bounds, lead, slot, pick, chance):
    """The axes a slot could use, ascending, with the share of events that touch its bit.

    Writes pick: i8[MAX_PICK] and chance: f8[MAX_PICK]; returns how many.
    """
    n = 0
    for q in range(bounds.start[slot], bounds.start[slot + 1]):
        k = bounds.order[q]
        if k == lead[slot, 1] or k == lead[slot, 2] or n == MAX_PICK:
            continue
        y = n
        while y and pick[y - 1] > bounds.axis[k]:
            pick[y], chance[y] = pick[y - 1], chance[y - 1]
            y -= 1
        pick[y] = bounds.axis[k]
        chance[y] = min(1.0, bounds.share[k] + 1.0 / N_BUCKETS)
        n += 1
    return n


@kernel
def best_lines(n, pick, chance, salt, tally, first, limit):
    """The cheapest lines of a slot below a cost ``limit``: key and entry of tally, -1 if none.

    ``first``: a FirstRound; lines of more than one colour cost more then, and at least as many
    slots as may be expected are taken to use them. Its share is empty in later rounds.
    """
    mask = u64(tally.size - 1)
    best, best_key, best_at = limit, u64(NO_LINES), np.int64(-1)
    for x in range(n):
        for y in range(x, n):
            for z in range(y, n):
                if y == x and z > y:
                    continue
                b, c, touched = -1, -1, chance[x]
                if y > x:
                    b, touched = pick[y], touched * chance[y]
                if z > y:
                    c, touched = pick[z], touched * chance[z]
                cost = CHECK_NS * touched + WORD_NS / 64
                n_others = 0.0
                if first.share.size:
                    n_others = first.n_slots * first.share[pick[x]]
                    n_others *= first.share[b] if b >= 0 else 1.0
                    n_others *= first.share[c] if c >= 0 else 1.0
                    if n > 4 and c >= 0:
                        if first.colour[pick[x]] != first.colour[b] or (
                            first.colour[b] != first.colour[c]
                        ):
                            cost += 1.0
                if cost >= best:
                    continue
                key = key_of_lines(pick[x], b, c)
                at = np.int64(mix(key ^ salt) & mask)
                cost += WORD_NS * 0.75 / (max(n_others, np.float64(tally[at])) + 1.0)
                if cost < best:
                    best, best_key, best_at = cost, key, at
    return best_key, best_at


@kernel
def choose_lines(bounds, groups, colour, share, tally, step, is_last, lines):
    """Choose the lines of every ``step``-th slot: lines: u8[P], keys as of key_of_lines.

    A round of a local search on ``tally``: i4[T], the number of slots by group and lines, by hash
    and so a little too high. The last round leaves it as it is. ``colour``: u1[M], for the first
    round, 0 or 1: any five axes have three of one colour, so slots with different axes agree on
    far fewer triples if they keep to one colour (Turan). ``share``: f8[M] of the slots that
    constrain an axis: where axes are so many that hardly two slots share three of them, slots
    must begin with one or two. Both are empty in later rounds. O(P).
    """
    lead, group_of_slot, group_size = groups.lead, groups.of_slot, groups.size
    pick, chance = np.zeros(MAX_PICK, np.int64), np.zeros(MAX_PICK)
    for slot in range(0, lines.size, step):
        group = np.int64(group_of_slot[slot])
        if group < 0 or group_size[group] <= MAX_SCAN:
            continue
        n = pick_axes(bounds, lead, slot, pick, chance)
        if n == 0:
            continue
        salt = u64(group + 1) << u64(48) ^ u64(group + 1) << u64(20)
        if lines[slot] != u64(NO_LINES) and not is_last:
            tally[mix(lines[slot] ^ salt) & u64(tally.size - 1)] -= step
        # Never scanned in the first round: without words nobody would begin one.
        limit = SCAN_NS if share.size == 0 else 1e30
        first = FirstRound(np.float64(group_size[group]), share, colour)
        lines[slot], at = best_lines(n, pick, chance, salt, tally, first, limit)
        if at >= 0 and not is_last:
            tally[at] += step


@kernel
def write_order(bounds, groups, second, first):
    """Write first: u2[P], what the slots of a group are ordered by. O(P).

    It is the mass of the leader's low, of those that have a ``second`` their ``near_key``.
    """
    lead, mass = groups.lead, bounds.mass
    for slot in range(first.size):
        first[slot] = mass[lead[slot, 1], 0] if lead[slot, 0] > POINT else 0
        if second[slot] >= 0:
            two = mass[second[slot], 0]
            first[slot] = near_key(first[slot], lead[slot, 3], two, lead[slot, 4])


@inlined
def constraint_on(start, axis, slot, a):
    """The constraint of a slot on axis a, which it has."""
    k = start[slot]
    while axis[k] != a:
        k += 1
    return k
