"""Event scan: the events of a store that intervals let through, leaf by leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.event_cells import GROUP, LEAF, open_cells
from tamis.kernels.memory import prefetch
from tamis.kernels.tests import Tests, judge

MISSING = 255  # the code of a row without a value
LINE = 64  # bytes that come at once
AHEAD = 2  # leaves that are asked for before they are looked at
LISTED = 256  # rows that wait for what was asked for, at least


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
        least, most = cells.least[column], cells.most[column]
        share = 1.0
        if -np.inf < least < most < np.inf:
            share = (min(wanted.high[k], most) - max(wanted.low[k], least)) / (most - least)
        i = k
        while i > 0 and shares[i - 1] > share:
            shares[i], order[i] = shares[i - 1], order[i - 1]
            i -= 1
        shares[i], order[i] = share, k
    return order


@inlined
def _meets(zone_low, zone_high, zone, wanted, order):
    """Whether a zone meets all intervals."""
    for k in order:
        column = wanted.column[k]
        if wanted.low[k] > zone_high[column, zone] or zone_low[column, zone] > wanted.high[k]:
            return False
    return True


@kernel
def _find_leaves(cells, n_rows, wanted, order, now, leaves):
    """Write the leaves whose zones meet all intervals to ``leaves``; return how many."""
    n_found, n_leaves = 0, (n_rows + LEAF - 1) // LEAF
    for group in range((n_leaves + GROUP - 1) // GROUP):
        if not _meets(cells.group_low, cells.group_high, group, wanted, order):
            continue
        for leaf in range(group * GROUP, min(n_leaves, (group + 1) * GROUP)):
            if _meets(cells.zone_low, cells.zone_high, leaf, wanted, order):
                leaves[n_found] = leaf
                n_found += cells.zone_until[leaf] > now
    return n_found


@inlined
def _scale_of(low, high):
    """How many codes a unit of the column takes in a zone; 0 if there are no codes."""
    if not (-np.inf < low and high < np.inf and high - low < np.inf):
        return 0.0
    scale = 255.0 / (high - low) if high > low else 1.0
    return scale if scale < np.inf else 1.0


@inlined
def _code_of(value, low, scale):
    """Which of 255 cells from ``low`` on holds a value (not NaN); never decreases with it."""
    return np.uint8(min(max((value - low) * scale, 0.0), MISSING - 1.0))


@kernel
def _mark_codes(codes, first, last, marks):
    """Unmark the rows of a leaf whose code is not from first to last (u1)."""
    width = np.uint8(last - first)
    for i in range(LEAF):
        marks[i] &= np.uint8(np.uint8(codes[i] - first) <= width)


@kernel
def _mark_values(lows, highs, low, high, marks):
    """Unmark the rows whose values do not meet an interval."""
    for i in range(lows.size):
        marks[i] &= (low <= highs[i]) & (lows[i] <= high)


@kernel
def _mark_leaf(cells, leaf, n_rows, wanted, order, marks):
    """Mark the rows of a leaf that may meet all intervals; whether there are some."""
    first, has_codes = leaf * LEAF, cells.codes.shape[0] > 0
    for i in range(LEAF):
        marks[i] = i < n_rows
    words = marks.view(np.uint64)
    for k in order:
        column = wanted.column[k]
        high_of = cells.high_of[column]
        zone_low, scale = cells.zone_low[column, leaf], 0.0
        if has_codes and high_of < 0:
            scale = _scale_of(zone_low, cells.zone_high[column, leaf])
        if scale > 0:
            least = _code_of(wanted.low[k], zone_low, scale)
            most = _code_of(wanted.high[k], zone_low, scale)
            _mark_codes(cells.codes[leaf, column], least, most, marks)
        else:
            lows = cells.low[column, first : first + n_rows]
            highs = lows if high_of < 0 else cells.high[high_of, first : first + n_rows]
            _mark_values(lows, highs, wanted.low[k], wanted.high[k], marks)
        is_any = np.uint64(0)
        for word in words:
            is_any |= word
        if is_any == 0:
            return False
    return True


@inlined
def _ask_for(codes, n_columns, leaf, wanted):
    """Ask for the cache lines of a leaf's codes that an interval will be compared with."""
    for k in range(wanted.column.size):
        first = np.uint64((leaf * n_columns + wanted.column[k]) * LEAF)
        for line in range(LEAF // LINE):
            prefetch(codes, first + np.uint64(line * LINE))


@kernel
def _keep_exact(cells, wanted, order, out, first, n_out):
    """Keep the rows of out[first:n_out] that meet all intervals; the new length."""
    for k in order:
        column = wanted.column[k]
        low, high, high_of = wanted.low[k], wanted.high[k], cells.high_of[column]
        n_before, n_out = n_out, first
        for at in range(first, n_before):
            row = out[at]
            lowest = cells.low[column, row]
            highest = lowest if high_of < 0 else cells.high[high_of, row]
            out[n_out] = row
            n_out += (low <= highest) & (lowest <= high)
    return n_out


@kernel
def _settle(cells, wanted, order, now, version, out, first, n_out):
    """Keep the rows of out[first:n_out] that are there and meet all intervals; the new length."""
    n_before, n_out = _keep_exact(cells, wanted, order, out, first, n_out), first
    for at in range(first, n_before):
        row = out[at]
        death = cells.death[row]
        out[n_out] = row
        n_out += (cells.until[row] > now) & ((death == 0) | (death > version))
    return n_out


@inlined
def _list_rows(cells, wanted, first, marks, words, out, n_out):
    """Append the marked rows of the leaf from first on; asks for what ``_settle`` reads."""
    n_before, n_rows = n_out, np.uint64(cells.until.size)
    for w in range(words.size):
        if words[w]:
            for at in range(8 * w, 8 * w + 8):
                out[n_out] = first + at
                n_out += np.int64(marks[at])
    lows = cells.low.reshape(cells.low.size)
    for i in range(n_before, n_out):
        row = np.uint64(out[i])
        for k in range(wanted.column.size):
            prefetch(lows, np.uint64(wanted.column[k]) * n_rows + row)
        prefetch(cells.until, row)
        prefetch(cells.death, row)
    return n_out


@kernel
def find_rows(handle, n_rows, column, low, high, now, version, leaves, out):
    """Write the rows of the events that are there and meet all intervals; return how many.

    ``handle``: of the cells. The next are of `Wanted` and `Moment`, which as tuples would cost
    2 us a call. ``leaves``: i4[leaves], scratch. ``out``: i4[> n_rows], ascending.
    Leaves are chosen by their zones, rows by their codes, and what is left by the values
    themselves, when many have been listed: they are asked for before. Whether a row passes cannot
    be foretold, so nothing branches on it. O(leaves + rows of those that are left).
    """
    cells, wanted = open_cells(handle), Wanted(column, low, high)
    order = _by_share(cells, wanted)
    n_leaves = _find_leaves(cells, n_rows, wanted, order, now, leaves)
    marks = np.empty(LEAF, np.uint8)
    words = marks.view(np.uint64)
    codes, n_columns = cells.codes.reshape(cells.codes.size), cells.codes.shape[1]
    n_out = n_listed = 0
    for i in range(n_leaves):
        if i + AHEAD < n_leaves and codes.size:
            _ask_for(codes, n_columns, np.int64(leaves[i + AHEAD]), wanted)
        first = leaves[i] * LEAF
        if not _mark_leaf(cells, leaves[i], min(n_rows - first, LEAF), wanted, order, marks):
            continue
        n_listed = _list_rows(cells, wanted, first, marks, words, out, n_listed)
        if n_listed - n_out >= LISTED:
            n_out = n_listed = _settle(cells, wanted, order, now, version, out, n_out, n_listed)
    return _settle(cells, wanted, order, now, version, out, n_out, n_listed)


@kernel
def judge_rows(vectors, verdicts, start, operation, column, low, high, list_start, lists):
    """Write what the tests of slot 0 say of each event (f8[E, M]) to verdicts (u1[E]).

    From ``start`` on: of `Tests`.
    """
    tests = Tests(start, operation, column, low, high, list_start, lists)
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


@kernel
def fill_codes(values, zone_low, zone_high, column, codes):
    """Write the codes of one column of single numbers. O(N).

    ``values``: f8[N]; ``zone_low``, ``zone_high``: f8[L]; ``codes``: u1[L, C, LEAF].
    """
    for leaf in range(zone_low.size):
        scale = _scale_of(zone_low[leaf], zone_high[leaf])
        if scale == 0:
            continue
        first = leaf * LEAF
        for row in range(first, min(values.size, first + LEAF)):
            value = values[row]
            code = MISSING if value != value else _code_of(value, zone_low[leaf], scale)
            codes[leaf, column, row - first] = code
