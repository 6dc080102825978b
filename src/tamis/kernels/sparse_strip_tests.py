"""Tests of strips: four constraints of a place at eight bits each, for runs of places at once.

A test is three numbers of four bytes, a byte for each constraint: the *mark* of its axis, its low
and its width (high - low), so that one comparison of x - low, without sign, tells whether x is
inside. An event has a table of what it holds by mark. There are marks for the axes that most
slots at the root constrain; a constraint on another is left to the record. With AVX-512 sixteen
places, 64 constraints, are looked up and compared by a few instructions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.sparse_strips import N_FENCES
from tamis.kernels.vectors import declare, has_instructions

N_ITEMS = 4  # constraints of a test
LANES = 16  # places at once; tests have room for so many more
N_MARKS = 128
ANYTHING, UNMARKED = N_MARKS - 2, N_MARKS - 1  # of no constraint; of axes that are not looked up
N_STEPS = 254  # values of a byte; one more is greater than any
MISSING = 255


class StripTests(NamedTuple):
    """The tests of R places, and the mark of every axis."""

    mark: Array  # u1[M]
    test_mark: Array  # u4[R + LANES], a byte a constraint
    test_low: Array  # u4[R + LANES]
    test_width: Array  # u4[R + LANES]


@inlined
def step_of(mass):
    """A mass as a byte."""
    return mass * N_STEPS >> 16


def mark_axes(bounds, slots):
    """mark: u1[M] of the axes that most of the slots constrain."""
    n_axes = int(bounds.axis.max(initial=-1)) + 1
    is_own = np.zeros(len(bounds.start) - 1, bool)
    is_own[slots] = True
    used = bounds.axis[np.repeat(is_own, np.diff(bounds.start))]
    by_use = np.argsort(-np.bincount(used, minlength=n_axes), kind="stable")
    mark = np.full(n_axes, UNMARKED, np.uint8)
    mark[by_use[:ANYTHING]] = np.arange(min(n_axes, ANYTHING))
    return mark


@kernel
def write_strip_tests(bounds, pair, slot_of_place, mark, items):
    """Write items: u1[3, R + LANES, N_ITEMS], marks, lows and widths. O(constraints).

    Of each place the constraints that say most beside what strip and run say of ``pair``.
    """
    mass, share, order = bounds.mass, bounds.share, bounds.order
    best, value = np.zeros(N_ITEMS, np.int64), np.zeros(N_ITEMS)
    items[0], items[1], items[2] = ANYTHING, 0, 255
    for place in range(slot_of_place.size):
        slot = slot_of_place[place]
        n = 0
        for q in range(bounds.start[slot], bounds.start[slot + 1]):
            k = order[q]
            if mark[bounds.axis[k]] == UNMARKED:
                continue
            v = share[k] + 1.0 / N_STEPS
            if k == pair[slot, 1]:
                v /= v + 2.0 / N_FENCES
            elif k == pair[slot, 0]:
                v /= v + 4.0 / N_FENCES
            if n == N_ITEMS and v >= value[n - 1]:
                continue
            n = min(n + 1, N_ITEMS)
            x = n - 1
            while x and value[x - 1] > v:
                best[x], value[x] = best[x - 1], value[x - 1]
                x -= 1
            best[x], value[x] = k, v
        for x in range(n):
            k = best[x]
            low, high = step_of(np.int64(mass[k, 0])), step_of(np.int64(mass[k, 1]))
            items[0, place, x] = mark[bounds.axis[k]]
            items[1, place, x], items[2, place, x] = low, high - low


def build_strip_tests(bounds, pair, slot_of_place):
    """The tests of the places of all strips."""
    mark = mark_axes(bounds, slot_of_place)
    items = np.empty((3, len(slot_of_place) + LANES, N_ITEMS), np.uint8)
    write_strip_tests(bounds, pair, slot_of_place, mark, items)
    return StripTests(mark, *items.reshape(3, -1).view(np.uint32))


@inlined
def test_runs_plainly(runs, first, last, base, marks, lows, widths, table, kept, n_kept):
    """``test_runs``, one after another."""
    for i in range(first, last):
        for k in range(runs[2 * i], runs[2 * i + 1]):
            mark, low, width = u64(marks[k]), u64(lows[k]), u64(widths[k])
            holds = True
            for _ in range(N_ITEMS):
                inside = u64(table[mark & u64(255)]) - low
                holds &= inside & u64(255) <= width & u64(255)
                mark, low, width = mark >> u64(8), low >> u64(8), width >> u64(8)
            kept[n_kept] = base + k
            n_kept += holds
    return n_kept


_I1, _I8, _I32, _I64 = (ir.IntType(n) for n in (1, 8, 32, 64))
_PLACES, _ITEMS = ir.VectorType(_I32, LANES), ir.VectorType(_I8, LANES * N_ITEMS)


def _all(builder, number):
    """A vector with a number in every lane."""
    one = builder.insert_element(ir.Constant(_PLACES, ir.Undefined), number, _I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(_PLACES, [0] * LANES))


def _load(builder, pointer, index):
    place = builder.bitcast(builder.gep(pointer, [index]), _ITEMS.as_pointer())
    return builder.load(place, align=1)


@intrinsic
def _test_vectors(typingctx, runs, first, last, base, marks, lows, widths, table, kept, n_kept):
    def codegen(context, builder, signature, args):
        runs, first_run, last_run, base, marks, lows, widths, table, kept, n_kept = args
        look_up = declare(builder, "llvm.x86.avx512.vpermi2var.qi.512", _ITEMS, [_ITEMS] * 3)
        squeeze = declare(
            builder, "llvm.x86.avx512.mask.compress.v16i32", _PLACES,
            [_PLACES, _PLACES, ir.VectorType(_I1, LANES)],
        )  # fmt: skip
        count = declare(builder, "llvm.ctpop.i64", _I64, [_I64])
        held = [_load(builder, table, _I64(at)) for at in (0, N_MARKS // 2)]
        lane = ir.Constant(_PLACES, list(range(LANES)))
        base = builder.trunc(base, _I32)
        n = cgutils.alloca_once_value(builder, n_kept)
        with cgutils.for_range(builder, last_run, first_run) as run:
            at = builder.gep(runs, [builder.mul(run.index, _I64(2))])
            first = builder.sext(builder.load(at), _I64)
            end = builder.sext(builder.load(builder.gep(at, [_I64(1)])), _I64)
            with cgutils.for_range_slice(builder, first, end, _I64(LANES), _I64) as (k, _):
                mark, low, width = (_load(builder, items, k) for items in (marks, lows, widths))
                inside = builder.sub(builder.call(look_up, [held[0], mark, held[1]]), low)
                is_more = builder.icmp_unsigned(">", inside, width)
                greater = builder.select(is_more, inside, width)
                all_hold = builder.icmp_unsigned(
                    "==", builder.bitcast(greater, _PLACES), builder.bitcast(width, _PLACES)
                )
                n_left = _all(builder, builder.trunc(builder.sub(end, k), _I32))
                holds = builder.and_(all_hold, builder.icmp_signed("<", lane, n_left))
                place = builder.add(
                    lane, _all(builder, builder.add(base, builder.trunc(k, _I32)))
                )
                squeezed = builder.call(squeeze, [place, _PLACES(None), holds])
                before = builder.load(n)
                to = builder.bitcast(builder.gep(kept, [before]), _PLACES.as_pointer())
                builder.store(squeezed, to, align=4)
                bits = builder.zext(builder.bitcast(holds, ir.IntType(LANES)), _I64)
                builder.store(builder.add(before, builder.call(count, [bits])), n)
        return builder.load(n)

    i8 = types.int64
    return i8(runs, i8, i8, i8, marks, lows, widths, table, kept, i8), codegen


# Append the places of runs[first:last] whose tests hold to kept: i4[.. + LANES]; returns how many
# there are. ``runs``: i4[2..], first place and end, from ``base`` on, as ``marks``, ``lows`` and
# ``widths``: u4[R + LANES] are. ``table``: u1[N_MARKS], what the event holds.
test_runs = _test_vectors if has_instructions("avx512vbmi", "avx512vl") else test_runs_plainly
