"""Event scan: the events of a store that intervals let through, leaf by leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, kernel
from tamis.kernels.tests import judge

LEAF = 256


class Cells(NamedTuple):
    """N events, column by column, in leaves of LEAF neighbours.

    Of an event that holds more than single numbers a column says the interval from ``low`` to
    ``high``; NaN where an event has no value. ``zone_low`` to ``zone_high`` holds every value of
    a column in a leaf, and is empty (inf to -inf) where there is none.
    """

    low: Array  # f8[C, N]
    high: Array  # f8[H, N]
    high_of: Array  # i4[C], the row of a column in ``high``; -1: ``low`` says it all
    until: Array  # i8[N], valid before
    death: Array  # i8[N], the version that deleted an event, 0 for none
    zone_low: Array  # f8[C, L]
    zone_high: Array  # f8[C, L]
    zone_until: Array  # i8[L], the latest of a leaf
    least: Array  # f8[C], of the whole column
    most: Array  # f8[C]


class Wanted(NamedTuple):
    """K intervals, all to be met."""

    column: Array  # i8[K]
    low: Array  # f8[K]
    high: Array  # f8[K]


class Moment(NamedTuple):
    """When a reader looks: what has died by the version or is valid until now is not there."""

    now: int
    version: int


@kernel
def _by_share(cells, wanted):
    """The intervals by the share of their column that they span, the narrowest first: i8[K]."""
    n = wanted.column.size
    order, shares = np.empty(n, np.int64), np.empty(n)
    for k in range(n):
        column = wanted.column[k]
        width = cells.most[column] - cells.least[column]
        share = min(wanted.high[k], cells.most[column]) - max(wanted.low[k], cells.least[column])
        share = share / width if 0 < width < np.inf else 1.0
        i = k
        while i > 0 and shares[i - 1] > share:
            shares[i], order[i] = shares[i - 1], order[i - 1]
            i -= 1
        shares[i], order[i] = share, k
    return order


@kernel
def _find_leaves(cells, n_rows, wanted, order, now, leaves):
    """Write the leaves whose zones meet all intervals to ``leaves``; return how many."""
    n_left = 0
    for leaf in range((n_rows + LEAF - 1) // LEAF):
        leaves[n_left] = leaf
        n_left += cells.zone_until[leaf] > now
    for k in order:
        zone_low, zone_high = cells.zone_low[wanted.column[k]], cells.zone_high[wanted.column[k]]
        low, high = wanted.low[k], wanted.high[k]
        n_before, n_left = n_left, 0
        for i in range(n_before):
            leaf = leaves[i]
            leaves[n_left] = leaf
            n_left += (low <= zone_high[leaf]) & (zone_low[leaf] <= high)
    return n_left


@kernel
def find_rows(cells, n_rows, wanted, moment, leaves, out):
    """Write the rows of the events that are there and meet all intervals; return how many.

    ``leaves``: i4[leaves], scratch. ``out``: i4[> n_rows], ascending. Of a leaf the narrowest
    interval is looked at for all rows, the next for those that are left, and so on; whether one
    holds cannot be foretold, so nothing branches on it. O(leaves + rows of those that are left).
    """
    order = _by_share(cells, wanted)
    n_leaves = _find_leaves(cells, n_rows, wanted, order, moment.now, leaves)
    n_out = 0
    for i in range(n_leaves):
        first = leaves[i] * LEAF
        last = min(n_rows, first + LEAF)
        n_left = n_out + last - first
        for row in range(first, last):
            out[n_out + row - first] = row
        for k in order:
            column = wanted.column[k]
            lows = cells.low[column]
            highs = lows if cells.high_of[column] < 0 else cells.high[cells.high_of[column]]
            low, high = wanted.low[k], wanted.high[k]
            n_before, n_left = n_left, n_out
            for at in range(n_out, n_before):
                row = out[at]
                out[n_left] = row
                n_left += (low <= highs[row]) & (lows[row] <= high)
        n_before, n_left = n_left, n_out
        for at in range(n_out, n_before):
            row = out[at]
            death = cells.death[row]
            out[n_left] = row
            n_left += (cells.until[row] > moment.now) & ((death == 0) | (death > moment.version))
        n_out = n_left
    return n_out


@kernel
def judge_rows(tests, vectors, verdicts):
    """Write what the tests of slot 0 say of each event (f8[E, M]) to verdicts (u1[E])."""
    for i in range(vectors.shape[0]):
        verdicts[i] = judge(tests, vectors[i], 0)


@kernel
def fill_zones(low, high, zone_low, zone_high):
    """Write the least and the greatest value of each leaf of one column. O(N).

    ``low``, ``high``: f8[N]; ``zone_low``, ``zone_high``: f8[L].
    """
    for leaf in range(zone_low.size):
        least, most = np.inf, -np.inf
        for row in range(leaf * LEAF, min(low.size, (leaf + 1) * LEAF)):
            least = low[row] if low[row] < least else least
            most = high[row] if high[row] > most else most
        zone_low[leaf], zone_high[leaf] = least, most
