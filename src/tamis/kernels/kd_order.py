"""The k-d order: boxes that few events have to look at lie together.

A split parts a set of boxes by one bound: those that reach less far to its side go right. The
values that a set can meet on an axis go from its least low to its greatest high; the share of
them that the right part can meet is its *reach*, as an event with another value is done with it.
The fewer boxes go right the less they reach, and the more go left, which reach as far as before.

How many are best is told by the *power* of a split. If an event looks at n ** power of n units,
then after a split into shares s and 1 - s at s ** power + reach * (1 - s) ** power of that; the
power for which this is 1 is what splitting on and on in this way comes to, and the least is best
(search trees are compared by their branching numbers in the same way). Uniform bounds are split
at about two thirds, a few narrow boxes among wide ones farther out.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

LEAF = 16  # positions the order stops at
N_SAMPLED = 128  # boxes that choose where to split
N_SHARES = 16  # the share that goes left is a multiple of one of so many, and at least a half
MIN_GAIN = 1e-4  # what a split must be better by than another, in the sum that is to be 1
N_HALVINGS = 12  # that find a power
SPLIT_BITS, COUNT_BITS = 3, 4  # of a rank, passed over where boxes are parted, and counted


@kernel
def kd_order(ranks, n_ranks, line, order):
    """Permute order: i4[N] to the leaves of a k-d tree over all bounds.

    ``ranks``: u2[N, 2M], those of low and high of each attribute, all below n_ranks; small means
    wide. Sets of more than a line are split into lines, lines into leaves. O(N x M x log N).
    """
    n = len(order)
    spare = np.empty(n, np.int32)
    counts = np.empty((ranks.shape[1], n_ranks >> COUNT_BITS), np.int32)
    cells = np.empty(n_ranks >> SPLIT_BITS, np.int64)
    stack = np.empty((64, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top = 1
    while top:
        top -= 1
        start, stop = stack[top, 0], stack[top, 1]
        unit = line if stop - start > line else LEAF
        if stop - start <= unit:
            continue
        f, middle = _pick_split(ranks, order, start, stop, unit, counts)
        _split(ranks[:, f], order, spare, start, stop, middle, cells)
        larger = 0 if middle - start > stop - middle else 1  # waits, so that the stack stays short
        stack[top + larger, 0], stack[top + larger, 1] = start, middle
        stack[top + 1 - larger, 0], stack[top + 1 - larger, 1] = middle, stop
        top += 2


@kernel
def _pick_split(ranks, order, start, stop, unit, counts):
    """The bound to part start:stop by, and the middle, some units after start.

    ``counts``: i4[2M, C], scratch. O(M x (N_SAMPLED + C)).
    """
    n_units = (stop - start + unit - 1) // unit
    step = max(1, (stop - start) // N_SAMPLED)
    n_counted = _count_cells(ranks, order[start:stop:step], counts)
    best, best_left, power = 0, n_units // 2, 1.0
    for f in range(counts.shape[0]):
        begin, width = _extent(counts, f)
        c, before, last = begin, 0, 0
        for k in range(N_SHARES // 2, N_SHARES):
            n_left = (n_units * k + N_SHARES // 2) // N_SHARES
            if n_left == last or n_left >= n_units:
                continue
            last = n_left
            while before + counts[f, c] <= n_left * n_counted // n_units:
                before += counts[f, c]
                c += 1
            reach = max(0.0, width - (c - begin)) / width
            if _remains(n_left / n_units, reach, power) < 1.0 - MIN_GAIN:
                best, best_left = f, n_left
                power = _power_of(n_left / n_units, reach, power)
    return best, start + best_left * unit


@kernel
def _count_cells(ranks, sample, counts):
    """Count the cells of the bounds of some boxes; returns how many boxes there are."""
    counts[:] = 0
    for i in range(len(sample)):
        for f in range(counts.shape[0]):
            counts[f, ranks[sample[i], f] >> COUNT_BITS] += 1
    return len(sample)


@kernel
def _extent(counts, f):
    """The first cell of a bound, and how many cells its attribute has from there to the other."""
    begin = other = 0
    while counts[f, begin] == 0:
        begin += 1
    while counts[f ^ 1, other] == 0:
        other += 1
    return begin, max(1, counts.shape[1] - begin - other)


@kernel
def _remains(share, reach, power):
    """What a split leaves of a cost of that power."""
    return share**power + reach * (1.0 - share) ** power


@kernel
def _power_of(share, reach, most):
    """The power that a split comes to, which is less than ``most``."""
    least = 0.0
    for _ in range(N_HALVINGS):
        power = 0.5 * (least + most)
        if _remains(share, reach, power) < 1.0:
            most = power
        else:
            least = power
    return most


@kernel
def _split(ranks, order, spare, start, stop, middle, cells):
    """Permute order[start:stop]: the boxes with the smallest of ``ranks`` before middle.

    ``cells``: i8[C], scratch.
    """
    cells[:] = 0
    for i in range(start, stop):
        cells[ranks[order[i]] >> SPLIT_BITS] += 1
    c = below = 0
    while below + cells[c] <= middle - start:
        below += cells[c]
        c += 1
    ties = middle - start - below  # boxes of cell c that go left
    i_left, i_right = start, middle
    for i in range(start, stop):
        slot = order[i]
        cell = ranks[slot] >> SPLIT_BITS
        left = (cell < c) | ((cell == c) & (ties > 0))
        ties -= cell == c
        spare[i_left if left else i_right] = slot
        i_left += left
        i_right += 1 - left
    order[start:stop] = spare[start:stop]
