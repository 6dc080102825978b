"""Groups: how an event comes to the slots of a sparse part.

A slot is in one group, found by one of its *leaders*:

point   a constraint low == high on a rare value: axis and value; one probe an event
cell    a narrow constraint: axis and 1-d cell of its low; two probes
pair    two narrow constraints: axes and 2-d cell of their lows; four probes
root    none selective enough: see sparse_lines

Cells are of equal mass, 2**level on an axis, and no narrower than the interval: so its low is in
the event's cell or in the one before. A *kind* is a type with its axes and levels; every kind
costs an event its probes, so a slot prefers kinds that many others use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.sparse_directory import find, mix

ROOT, POINT, CELL, PAIR = -1, 0, 1, 2
MAX_LEVEL = 12
MAX_SCAN = 192  # groups up to this size are scanned, larger ones have words
N_BUCKETS = 64  # of a line; an event touches one
# Costs in ns: checking a slot, scanning one, ANDing a word, probing for a pair, for a cell
CHECK_NS, SCAN_NS, WORD_NS, PAIR_NS, CELL_NS = 7.0, 3.0, 12.0, 300.0, 200.0


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


@kernel
def count_points(axis, low, high, directory, n_same):
    """Count constraints low == high by axis and value: n_same: i4[D], entries as in directory.

    Returns entry: i4[K], the entry of a constraint, -1 if it is no point. O(K).
    """
    kinds, keys = directory.kind, directory.key
    bits, mask = low.view(np.uint64), u64(keys.size - 1)
    entry = np.full(axis.size, -1, np.int32)
    for k in range(axis.size):
        if low[k] == high[k]:
            key = bits[k] if low[k] != 0.0 else u64(0)  # -0.0 is 0.0
            h = find(kinds, keys, mask, axis[k], key)
            kinds[h], keys[h] = axis[k], key
            n_same[h] += 1
            entry[k] = h
    return entry


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
def kind_key(kind_type, a, level, b, level_b):
    """A kind as one number; axes have 16 bits."""
    return (
        ((u64(a) << u64(16) | u64(b)) << u64(16))
        | (u64(level) << u64(10))
        | (u64(level_b) << u64(4))
        | u64(kind_type)
    )


@inlined
def group_cost(size):
    """Cost in ns a slot of a group of that size: scanned, or in words, which fill as it grows."""
    return SCAN_NS if size <= MAX_SCAN else WORD_NS / min(48.0, 1.0 + size / 80.0)


@kernel
def choose_leaders(bounds, entry, n_same, used, tally, max_level, step, lead):
    """Choose the kind of every ``step``-th slot; write lead: i4[P, 5].

    A row is the type, the constraint, the second one of a pair, and their levels.

    Options are the three most selective constraints and their pairs, at their own level or a
    coarser one. ``used``: i4[T] counts, by hash and so a little too high, the slots that could
    use a kind (in the second round) or do use it; ``tally``: i4[T] is counted anew. The first
    round, when used is empty, only counts. ``max_level``: of both levels of a pair. O(P).
    """
    start, axis, mass = bounds.start, bounds.axis, bounds.mass
    share, order = bounds.share, bounds.order
    mask = u64(tally.size - 1)
    is_first = used.size == 0
    level = np.zeros(3, np.int64)
    for slot in range(0, start.size - 1, step):
        p, n = start[slot], start[slot + 1] - start[slot]
        lead[slot, 0] = ROOT
        lead[slot, 1] = lead[slot, 2] = -1
        if n == 0:
            continue
        rest = 1.0  # share left by two lines on constraints other than the leader
        for j in range(1, min(n, 3)):
            rest *= min(1.0, share[order[p + j]] + 1.0 / N_BUCKETS)
        best = 0.1 + CHECK_NS * min(1.0, share[order[p]] + 1.0 / N_BUCKETS) * rest
        chosen = u64(0)
        for x in range(min(n, 3)):
            i = order[p + x]
            level[x] = level_of(mass, i)
            if entry[i] >= 0:
                cost = share[i] * (group_cost(n_same[entry[i]]) + CHECK_NS * rest)
                if cost < best:
                    best = cost
                    lead[slot, 0], lead[slot, 1], lead[slot, 2] = POINT, i, -1
                    lead[slot, 3], lead[slot, 4] = 0, 0
            for la in range(max(2, level[x] - 2), level[x] + 1):
                h = mix(kind_key(CELL, axis[i], la, 0, 0)) & mask
                if is_first:
                    tally[h] += step * (la == level[x])
                elif used[h]:
                    cost = (group_cost(used[h] >> la) + CHECK_NS * rest) * 2.0 / (1 << la)
                    cost += CELL_NS / used[h]
                    if cost < best:
                        best, chosen = cost, h
                        lead[slot, 0], lead[slot, 1], lead[slot, 2] = CELL, i, -1
                        lead[slot, 3], lead[slot, 4] = la, 0
            for y in range(x):
                j = order[p + y]
                first, second, l1, l2 = i, j, level[x], level[y]
                if axis[j] < axis[i]:
                    first, second, l1, l2 = j, i, level[y], level[x]
                while l1 + l2 > max_level:
                    if l1 >= l2:
                        l1 -= 1
                    else:
                        l2 -= 1
                for la in range(max(2, l1 - 1), l1 + 1):
                    for lb in range(max(2, l2 - 1), l2 + 1):
                        h = mix(kind_key(PAIR, axis[first], la, axis[second], lb)) & mask
                        if is_first:
                            tally[h] += step * (la == l1 and lb == l2)
                        elif used[h]:
                            cost = SCAN_NS * 4.0 / (1 << (la + lb)) + PAIR_NS / used[h]
                            if cost < best:
                                best, chosen = cost, h
                                lead[slot, 0], lead[slot, 1], lead[slot, 2] = PAIR, first, second
                                lead[slot, 3], lead[slot, 4] = la, lb
        if lead[slot, 0] > POINT:
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
