"""Groups: how an event comes to the slots of a sparse part.

A slot is in one group, found by one of its *leaders*:

point   a constraint low == high on a rare value: axis and value; one probe an event
cell    a narrow constraint: axis and 1-d cell of its low; two probes
pair    two narrow constraints: axes and 2-d cell of their lows; four probes
root    none selective enough: see sparse_strips

Cells are of equal mass, 2**level on an axis, and no narrower than the interval: so its low is in
the event's cell, or in the one before and there in no quarter before the event's. A *kind* is a
type with its axes and levels; every kind costs an event its probes, so a slot prefers kinds that
many others use. A kind of points or cells has a second axis, too, if there is one that most of
its slots are narrow on: it leads nowhere, but words are made along it (``sparse_reach``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.sparse_directory import find, mix

ROOT, POINT, CELL, PAIR = -1, 0, 1, 2
MIN_LEVEL, MAX_LEVEL = 2, 12
MAX_SCAN = 96  # groups up to this size are scanned, larger ones have words
N_BUCKETS = 64  # of a line; an event touches one
# Costs in ns: checking a slot, scanning one, ANDing a word, probing for a pair, for a cell
CHECK_NS, SCAN_NS, WORD_NS, PAIR_NS, CELL_NS = 7.0, 3.0, 12.0, 300.0, 200.0
IN_REACH = 0.5  # of the words of a point or cell


class Bounds(NamedTuple):
    """The K constraints of P slots as axes see them."""

    start: Array  # i8[P + 1]: those of slot p are start[p] to start[p + 1]
    axis: Array  # i4[K]
    code: Array  # u2[K, 2] of low, high
    mass: Array  # u2[K, 2]
    share: Array  # f4[K], expected share of events it accepts
    order: Array  # i4[K], constraint numbers of each slot, most selective first


class Groups(NamedTuple):
    """Where P slots are, and G groups."""

    lead: Array  # i4[P, 5], as of choose_leaders
    of_slot: Array  # i4[P], -1 = root
    size: Array  # i8[G]
    kind: Array  # i4[G]


@kernel
def count_points(axis, low, high, directory, n_same, entry):
    """Count constraints low == high by axis and value: n_same: i4[D], entries as in directory.

    Writes entry: i4[K], the entry of a constraint, -1 if it is no point. O(K).
    """
    kinds, keys = directory.kind, directory.key
    bits, mask = low.view(np.uint64), u64(keys.size - 1)
    for k in range(axis.size):
        entry[k] = -1
        if low[k] == high[k]:
            key = bits[k] if low[k] != 0.0 else u64(0)  # -0.0 is 0.0
            h = find(kinds, keys, mask, axis[k], key)
            kinds[h], keys[h] = axis[k], key
            n_same[h] += 1
            entry[k] = h


@kernel
def order_constraints(bounds, entry, n_same, count):
    """Fill bounds.share and bounds.order; count: i8[M], constraints of each axis. O(K)."""
    start, axis, mass, share, order = (
        bounds.start, bounds.axis, bounds.mass, bounds.share, bounds.order,
    )  # fmt: skip
    for slot in range(start.size - 1):
        for k in range(start[slot], start[slot + 1]):
            share[k] = (np.float64(mass[k, 1]) - np.float64(mass[k, 0]) + 1.0) / 65536.0
            if entry[k] >= 0:
                share[k] = n_same[entry[k]] / count[axis[k]]
            j = k
            while j > start[slot] and share[order[j - 1]] > share[k]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = k


@inlined
def level_of(mass, k):
    """The finest level whose cells are no narrower than the interval of constraint k."""
    width = np.int64(mass[k, 1]) - np.int64(mass[k, 0])
    level = 0
    while level < MAX_LEVEL and width <= 65536 >> (level + 1):
        level += 1
    return level


@inlined
def quarter_of(mass, level):
    """The quarter, 0 to 3, of its cell of a level that a mass is in."""
    return (mass >> (14 - level)) & 3


@inlined
def kind_key(kind_type, a, level, b, level_b):
    """A kind as one number; axes have 16 bits."""
    return (
        ((u64(a) << u64(16) | u64(b)) << u64(16))
        | (u64(level) << u64(10))
        | (u64(level_b) << u64(4))
        | u64(kind_type)
    )


@inlined
def order_pair(axis, level, x, y, i, j, max_level):
    """Constraints i, j by axis, with their levels, made coarser until they sum to max_level."""
    l1, l2 = level[x], level[y]
    if axis[j] < axis[i]:
        i, j, l1, l2 = j, i, l2, l1
    while l1 + l2 > max_level:
        if l1 >= l2:
            l1 -= 1
        else:
            l2 -= 1
    return i, j, l1, l2


@inlined
def visit_cost(size):
    """Cost in ns of a slot in a group of so many that an event comes to, but for checking it."""
    if size <= MAX_SCAN:
        return SCAN_NS
    return IN_REACH * WORD_NS / min(48.0, 1.0 + size / 80.0)


@inlined
def cell_cost(n_used, level, share, rest):
    """Cost in ns of a slot in a cell, if n_used slots use the kind.

    ``share``: of events, which for a frequent value is more than that of its narrow cell.
    """
    each = visit_cost(n_used >> level)
    return (each + CHECK_NS * rest) * max(share, 2.0 / (1 << level)) + CELL_NS / n_used


@inlined
def point_cost(n_same, share, rest):
    """Cost in ns of a slot among n_same with the same value."""
    return share * (visit_cost(n_same) + CHECK_NS * rest)


@kernel
def count_kinds(bounds, tally, max_level, step):
    """Count in tally: i4[T], by hash, the slots that could use a kind at its finest level. O(P)."""
    start, axis, mass, order = bounds.start, bounds.axis, bounds.mass, bounds.order
    mask = u64(tally.size - 1)
    level = np.zeros(3, np.int64)
    for slot in range(0, start.size - 1, step):
        p = start[slot]
        for x in range(min(start[slot + 1] - p, 3)):
            i = order[p + x]
            level[x] = level_of(mass, i)
            if level[x] >= MIN_LEVEL:
                tally[mix(kind_key(CELL, axis[i], level[x], 0, 0)) & mask] += step
            for y in range(x):
                a, b, la, lb = order_pair(axis, level, x, y, i, order[p + y], max_level)
                if la >= MIN_LEVEL and lb >= MIN_LEVEL:
                    tally[mix(kind_key(PAIR, axis[a], la, axis[b], lb)) & mask] += step


@kernel
def choose_leaders(bounds, entry, n_same, used, tally, max_level, step, lead):
    """Choose the kind of every ``step``-th slot; write lead: i4[P, 5].

    A row is the type, the constraint, the second one of a pair, and their levels. Options are
    the three most selective constraints and their pairs, at their own level or a coarser one.
    ``used``: i4[T], as of count_kinds or of the round before, says how many slots use a kind;
    ``tally``: i4[T], from zeros, is the same for this round. ``max_level``: of a pair. O(P).
    """
    start, axis, mass = bounds.start, bounds.axis, bounds.mass
    share, order = bounds.share, bounds.order
    mask = u64(tally.size - 1)
    level = np.zeros(3, np.int64)
    for slot in range(0, start.size - 1, step):
        p, n = start[slot], min(start[slot + 1] - start[slot], 3)
        rest, best, chosen = 1.0, 1e30, u64(0)
        kind_type, one, two, level_one, level_two = ROOT, -1, -1, 0, 0
        for x in range(1, n):  # share left by two lines on constraints other than the leader
            rest *= min(1.0, share[order[p + x]] + 1.0 / N_BUCKETS)
        if n:
            best = 0.1 + CHECK_NS * min(1.0, share[order[p]] + 1.0 / N_BUCKETS) * rest
        for x in range(n):
            i = order[p + x]
            level[x] = level_of(mass, i)
            if entry[i] >= 0:
                cost = point_cost(n_same[entry[i]], share[i], rest)
                if cost < best:
                    best, kind_type, one, two, level_one, level_two = cost, POINT, i, -1, 0, 0
            for la in range(max(MIN_LEVEL, level[x] - 2), level[x] + 1):
                h = mix(kind_key(CELL, axis[i], la, 0, 0)) & mask
                if used[h]:
                    cost = cell_cost(used[h], la, share[i], rest)
                    if cost < best:
                        best, kind_type, one, two, level_one, level_two = cost, CELL, i, -1, la, 0
                        chosen = h
            for y in range(x):
                a, b, l1, l2 = order_pair(axis, level, x, y, i, order[p + y], max_level)
                for la in range(max(MIN_LEVEL, l1 - 1), l1 + 1):
                    for lb in range(max(MIN_LEVEL, l2 - 1), l2 + 1):
                        h = mix(kind_key(PAIR, axis[a], la, axis[b], lb)) & mask
                        if used[h]:
                            cost = SCAN_NS * 4.0 / (1 << (la + lb)) + PAIR_NS / used[h]
                            if cost < best:
                                best, kind_type, one, two = cost, PAIR, a, b
                                level_one, level_two, chosen = la, lb, h
        lead[slot, 0], lead[slot, 1], lead[slot, 2] = kind_type, one, two
        lead[slot, 3], lead[slot, 4] = level_one, level_two
        if kind_type > POINT:
            tally[chosen] += step


@kernel
def enter_groups(bounds, low, lead, known, directory, kinds, group_of_slot):
    """Number kinds and groups; returns how many of each.

    ``known``: a directory of the same size for the kinds themselves. Writes directory,
    kinds: i4[.., 5] (type, axis, level, second axis, its level) and group_of_slot: i4[P],
    -1 = root. O(P).
    """
    axis, mass = bounds.axis, bounds.mass
    bits, mask = low.view(np.uint64), u64(directory.key.size - 1)
    n_groups = n_kinds = 0
    for slot in range(lead.shape[0]):
        group_of_slot[slot] = -1
        kind_type = lead[slot, 0]
        if kind_type == ROOT:
            continue
        i, j, la, lb = lead[slot, 1], lead[slot, 2], lead[slot, 3], lead[slot, 4]
        b = axis[j] if kind_type == PAIR else np.int32(0)
        if kind_type == POINT:
            cell = bits[i] if low[i] != 0.0 else u64(0)
        else:
            cell = u64(mass[i, 0] >> (16 - la)) << u64(16)
            if kind_type == PAIR:
                cell |= u64(mass[j, 0] >> (16 - lb))
        key = kind_key(kind_type, axis[i], la, b, lb)
        h = find(known.kind, known.key, mask, 0, key)
        if known.kind[h] < 0:
            known.kind[h], known.key[h], known.group[h] = 0, key, n_kinds
            kinds[n_kinds, 0], kinds[n_kinds, 1], kinds[n_kinds, 2] = kind_type, axis[i], la
            kinds[n_kinds, 3], kinds[n_kinds, 4] = b, lb
            n_kinds += 1
        kind = known.group[h]
        h = find(directory.kind, directory.key, mask, kind, cell)
        if directory.kind[h] < 0:
            directory.kind[h], directory.key[h], directory.group[h] = kind, cell, n_groups
            n_groups += 1
        group_of_slot[slot] = directory.group[h]
    return n_groups, n_kinds
