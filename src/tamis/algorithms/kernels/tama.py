"""TAMA: layered cells.

The cells of an attribute are numbered as a binary heap: cell 1 is the whole domain, cells
2 c and 2 c + 1 are the halves of cell c, and the finest layer has ``n_leaves`` cells from
``n_leaves`` on.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.cells import cell_of
from tamis.kernels.compiled import kernel
from tamis.kernels.counting import count_list


@kernel
def write_cells(stored, k, domains, n_leaves, cells):
    """Write the fewest cells that cover constraint k to ``cells``; return how many.

    The outermost are of the finest layer and may stick out. A constraint that excludes a value
    is given the whole domain. At most two a layer.
    """
    m = np.int64(stored.attribute[k])
    if stored.negated[k]:
        cells[0] = 1
        return 1
    low = n_leaves + cell_of(domains, m, stored.low[k], n_leaves)
    high = n_leaves + cell_of(domains, m, stored.high[k], n_leaves) + 1
    n_cells = 0
    while low < high:
        if low & 1:
            cells[n_cells] = low
            n_cells += 1
            low += 1
        if high & 1:
            high -= 1
            cells[n_cells] = high
            n_cells += 1
        low >>= 1
        high >>= 1
    return n_cells


@kernel
def count_cells(stored, slots, domains, n_leaves, counts):
    """Add to counts (i8[M x 2 n_leaves]) how many entries each cell gets; return their sum."""
    cells = np.empty(64, np.int64)
    n_entries = 0
    for i in range(slots.size):
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            n_cells = write_cells(stored, k, domains, n_leaves, cells)
            first = np.int64(stored.attribute[k]) * 2 * n_leaves
            for c in range(n_cells):
                counts[first + cells[c]] += 1
            n_entries += n_cells
    return n_entries


@kernel
def fill_cells(stored, slots, domains, n_leaves, keys, owners):
    """Write the cells of all constraints of slots, and whose they are; return how many.

    keys, owners: i4[n], large enough. O(constraints x layers).
    """
    cells = np.empty(64, np.int64)
    at = 0
    for i in range(slots.size):
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            n_cells = write_cells(stored, k, domains, n_leaves, cells)
            first = np.int64(stored.attribute[k]) * 2 * n_leaves
            for c in range(n_cells):
                keys[at] = first + cells[c]
                owners[at] = slots[i]
                at += 1
    return at


@kernel
def count_satisfied(lists, domains, n_leaves, event, first, last, counts):
    """Count for every slot the attributes on which a cell of its constraint holds the value.

    Attributes ``first`` to ``last - 1``; counts: u1[P], u2[P] or u4[P].
    O(entries of one cell a layer and attribute).
    """
    for m in range(first, last):
        if np.isnan(event[m]):
            continue
        cell = n_leaves + cell_of(domains, m, event[m], n_leaves)
        while cell:
            count_list(lists, m * 2 * n_leaves + cell, counts)
            cell >>= 1
