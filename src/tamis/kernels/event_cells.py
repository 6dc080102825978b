"""Event cells: the columns of a part of an event store, and how kernels get at them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from tamis.kernels.compiled import Array, inlined
from tamis.kernels.memory import f8_at, i4_at, i8_at, u1_at

LEAF = 256
GROUP = 32  # leaves


class Cells(NamedTuple):
    """N events, column by column, in leaves of LEAF neighbours and groups of GROUP leaves.

    Of an event that holds more than single numbers a column says the interval from ``low`` to
    ``high``; NaN where an event has no value. ``zone_low`` to ``zone_high`` holds every value of
    a column in a leaf, and is empty (inf to -inf) where there is none. There are codes only of
    columns that ``low`` says it all of; the head has none (L = 0).
    """

    low: Array  # f8[C, N]
    high: Array  # f8[H, N]
    high_of: Array  # i4[C], the row of a column in ``high``; -1: ``low`` says it all
    until: Array  # i8[N], valid before
    death: Array  # i8[N], the version that deleted an event, 0 for none
    zone_low: Array  # f8[C, L]
    zone_high: Array  # f8[C, L]
    zone_until: Array  # i8[L], the latest of a leaf
    codes: Array  # u1[L, C, LEAF], in which of 255 cells of its zone a value lies, or MISSING
    group_low: Array  # f8[C, G], as the zones, of GROUP leaves
    group_high: Array  # f8[C, G]
    least: Array  # f8[C], of the whole column
    most: Array  # f8[C]


def handle_of(cells: Cells) -> Array:
    """i8[17]: four sizes and the addresses of the cells, which must outlive it.

    Handing over 13 arrays costs 9 us a call, one handle 0.4.
    """
    sizes = (*cells.low.shape, len(cells.high), len(cells.codes))
    assert all(array.flags.c_contiguous for array in cells)
    return np.array([*sizes, *(array.ctypes.data for array in cells)], np.int64)


@inlined
def open_cells(h):
    """The cells behind a handle."""
    c, n, n_highs = h[0], h[1], h[2]
    n_leaves = (n + LEAF - 1) // LEAF
    n_groups = (n_leaves + GROUP - 1) // GROUP
    return Cells(
        carray(f8_at(h[4]), (c, n)),
        carray(f8_at(h[5]), (n_highs, n)),
        carray(i4_at(h[6]), (c,)),
        carray(i8_at(h[7]), (n,)),
        carray(i8_at(h[8]), (n,)),
        carray(f8_at(h[9]), (c, n_leaves)),
        carray(f8_at(h[10]), (c, n_leaves)),
        carray(i8_at(h[11]), (n_leaves,)),
        carray(u1_at(h[12]), (h[3], c, LEAF)),
        carray(f8_at(h[13]), (c, n_groups)),
        carray(f8_at(h[14]), (c, n_groups)),
        carray(f8_at(h[15]), (c,)),
        carray(f8_at(h[16]), (c,)),
    )
