"""Event scan: the events of a store that intervals let through, leaf by leaf."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.extending import intrinsic

from tamis.kernels.bits import lowest_bit
from tamis.kernels.compiled import IS_COMPILED, Array, inlined, kernel
from tamis.kernels.event_cells import GROUP, LEAF, open_cells
from tamis.kernels.memory import prefetch
from tamis.kernels.tests import Tests, judge
from tamis.kernels.verdicts import ACCEPTED, UNDECIDED

MISSING = 255  # the code of a row without a value
WORD = 64  # rows, a bit each
LINE = 64  # bytes that come at once
AHEAD = 8  # leaves that are asked for before they are looked at
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


@inlined
def and_codes_plainly(codes, at, least, width, bits):
    """``and_codes``, one after another."""
    left = u64(0)
    for w in range(bits.size):
        word = u64(0)
        for i in range(WORD):
            inside = (np.int64(codes[at + u64(WORD * w + i)]) - np.int64(least)) & 255
            word |= u64(inside <= width) << u64(i)
        bits[w] &= word
        left |= bits[w]
    return left


_I8, _I32, _I64 = (ir.IntType(n) for n in (8, 32, 64))
_CODES, _LANES = ir.VectorType(_I8, WORD), ir.VectorType(_I32, WORD)


def _in_all(builder, number):
    """A vector with a code in every lane."""
    one = builder.insert_element(ir.Constant(_CODES, ir.Undefined), number, _I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(_LANES, [0] * WORD))


@intrinsic
def _and_vectors(typingctx, codes, at, least, width, bits):
    def codegen(context, builder, signature, args):
        kinds = signature.args
        codes, bits = (context.make_array(kinds[i])(context, builder, args[i]).data for i in (0, 4))
        least, width = _in_all(builder, args[2]), _in_all(builder, args[3])
        left = _I64(0)
        for w in range(LEAF // WORD):
            place = builder.gep(codes, [builder.add(args[1], _I64(WORD * w))])
            held = builder.load(builder.bitcast(place, _CODES.as_pointer()), align=1)
            inside = builder.icmp_unsigned("<=", builder.sub(held, least), width)
            place = builder.gep(bits, [_I64(w)])
            word = builder.and_(builder.load(place), builder.bitcast(inside, _I64))
            builder.store(word, place)
            left = builder.or_(left, word)
        return left

    u1, u8 = types.uint8, types.uint64
    return u8(codes, u8, u1, u1, bits), codegen


# Unset the bits (u8[LEAF / 64]) of the rows of a leaf whose code, from codes[at] on, is not among
# the ``width`` + 1 from ``least`` on (u1); returns whether bits are left, 0 if not.
and_codes = _and_vectors if IS_COMPILED else and_codes_plainly


@kernel
def _and_values(cells, column, first, n_rows, low, high, bits):
    """``and_codes`` by the values themselves, of the rows from ``first`` on."""
    high_of, left = cells.high_of[column], u64(0)
    for w in range(bits.size):
        word = u64(0)
        for i in range(WORD * w, min(n_rows, WORD * (w + 1))):
            lowest = cells.low[column, first + i]
            highest = lowest if high_of < 0 else cells.high[high_of, first + i]
            word |= u64((low <= highest) & (lowest <= high)) << u64(i - WORD * w)
        bits[w] &= word
        left |= bits[w]
    return left


@inlined
def _leaf_bits(cells, codes, leaf, n_rows, wanted, order, bits):
    """Set the bits of the rows of a leaf that may meet all intervals; whether there are some."""
    n_columns = cells.codes.shape[1]
    for w in range(bits.size):
        n = min(max(n_rows - WORD * w, 0), WORD)
        bits[w] = ~u64(0) if n == WORD else (u64(1) << u64(n)) - u64(1)
    for j in range(order.size):
        k = order[j]
        column = wanted.column[k]
        zone_low, scale = cells.zone_low[column, leaf], 0.0
        if codes.size and cells.high_of[column] < 0:
            scale = _scale_of(zone_low, cells.zone_high[column, leaf])
        if scale > 0:
            least = _code_of(wanted.low[k], zone_low, scale)
            most = _code_of(wanted.high[k], zone_low, scale)
            at = u64((leaf * n_columns + column) * LEAF)
            left = and_codes(codes, at, least, np.uint8(most - least), bits)
        else:
            first, low, high = leaf * LEAF, wanted.low[k], wanted.high[k]
            left = _and_values(cells, column, first, n_rows, low, high, bits)
        if left == 0:
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
def _list_rows(cells, lows, wanted, first, bits, out, n_out):
    """Append the rows of a leaf that have a bit; asks for what ``_settle`` reads."""
    n_rows = u64(cells.until.size)
    for w in range(bits.size):
        word = bits[w]
        while word:
            row = u64(first + WORD * w) + lowest_bit(word)
            word &= word - u64(1)
            out[n_out] = row
            n_out += 1
            for k in range(wanted.column.size):
                prefetch(lows, u64(wanted.column[k]) * n_rows + row)
            prefetch(cells.until, row)
            prefetch(cells.death, row)
    return n_out


@kernel
def find_rows(handle, n_rows, intervals, now, version, leaves, out):
    """Write the rows of the events that are there and meet all intervals; return how many.

    ``handle``: of the cells. ``intervals``: f8[3, K], columns, lows and highs, as each array
    that is handed over costs 0.2 us. ``leaves``: i4[leaves], scratch. ``out``: i4[> n_rows],
    ascending.
    Leaves are chosen by their zones, rows by their codes, and what is left by the values
    themselves, when many have been listed: they are asked for before. Whether a row passes cannot
    be foretold, so nothing branches on it. O(leaves + rows of those that are left).
    """
    cells = open_cells(handle)
    wanted = Wanted(intervals[0].astype(np.int64), intervals[1], intervals[2])
    order = _by_share(cells, wanted)
    n_leaves = _find_leaves(cells, n_rows, wanted, order, now, leaves)
    bits = np.empty(LEAF // WORD, np.uint64)
    lows = cells.low.reshape(cells.low.size)
    codes, n_columns = cells.codes.reshape(cells.codes.size), cells.codes.shape[1]
    n_out = n_listed = 0
    for i in range(-AHEAD, n_leaves):
        if codes.size and i + AHEAD < n_leaves:
            _ask_for(codes, n_columns, np.int64(leaves[i + AHEAD]), wanted)
        if i < 0:
            continue
        leaf = np.int64(leaves[i])
        first = leaf * LEAF
        if not _leaf_bits(cells, codes, leaf, min(n_rows - first, LEAF), wanted, order, bits):
            continue
        n_listed = _list_rows(cells, lows, wanted, first, bits, out, n_listed)
        if n_listed - n_out >= LISTED:
            n_out = n_listed = _settle(cells, wanted, order, now, version, out, n_out, n_listed)
    return _settle(cells, wanted, order, now, version, out, n_out, n_listed)


@kernel
def judge_rows(
    handle, out, n_found, reads, n_columns, n_places, is_rough, unsure, given, list_start, lists
):
    """Keep the rows of out[:n_found] that tests accept; return how many.

    Writes those that only the filter can tell of to ``unsure``: i4[> n_found], and returns their
    number too: rows that the tests leave open, and those that ``is_rough`` (u1[N], or nothing if
    none is) says the columns do not tell all of. Both stay ascending. ``reads``: i4[R, 2], a place
    among the ``n_places`` of an event's vector, and the column that it is filled from; places after
    the columns hold 0 if a column that they are filled from has a value. ``given``: f8[4, T],
    operations, columns, lows and highs, as each array that is handed over costs 0.2 us; the last
    two are of `Tests`. O(n_found x tests).
    """
    cells = open_cells(handle)
    start = np.zeros(2, np.int32)
    start[1] = given.shape[1]
    operation, column = given[0].astype(np.uint8), given[1].astype(np.int32)
    tests = Tests(start, operation, column, given[2], given[3], list_start, lists)
    vector = np.full(n_places, np.nan)
    n_out = n_unsure = 0
    for i in range(n_found):
        row = out[i]
        vector[n_columns:] = np.nan
        for r in range(reads.shape[0]):
            place, value = reads[r, 0], cells.low[reads[r, 1], row]
            if place < n_columns:
                vector[place] = value
            elif value == value:
                vector[place] = 0.0
        said = judge(tests, vector, 0)
        if is_rough.size and is_rough[row]:
            said = UNDECIDED
        out[n_out] = unsure[n_unsure] = row
        n_out += said == ACCEPTED
        n_unsure += said == UNDECIDED
    return n_out, n_unsure


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
