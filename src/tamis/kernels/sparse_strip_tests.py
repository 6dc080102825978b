"""Tests of strips: four constraints of a place at eight bits each, for blocks of places at once.

A constraint is three bytes: the *mark* of its axis, its low and its width (high - low), so that
one comparison of x - low, without sign, tells whether x is inside. A block holds the marks of the
constraints of its 16 places, then their lows, then their widths. An event has a table of what it
holds by mark. There are marks for the axes that most slots at the root constrain; a constraint on
another is left to the record. With AVX-512 a block is looked up and compared in a few
instructions, with AVX2 in some more, and without one place after another.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.memory import aligned_zeros
from tamis.kernels.sparse_strips import BLOCK, N_FENCES
from tamis.kernels.sparse_vectors import all_lanes
from tamis.kernels.vectors import declare, has_instructions

N_ITEMS = 4  # constraints of a test
ITEMS = BLOCK * N_ITEMS  # constraints of a block
MAX_RUN = 16  # blocks; a strip has no more
AHEAD = 64  # blocks whose tests are asked for before they are looked at
N_MARKS = 128
MAX_MARKED = N_MARKS - 2  # axes that are looked up
UNMARKED = N_MARKS - 1  # the mark of any other
ANYTHING = 254  # that of no constraint: what it stands for is found as 0 wherever it is looked up
N_STEPS = 254  # values of a byte; one more is greater than any
MISSING = 255


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
    mark[by_use[:MAX_MARKED]] = np.arange(min(n_axes, MAX_MARKED))
    return mark


@kernel
def write_strip_tests(bounds, pair, slot_of_place, mark, tests):
    """Write tests: u1[B, 3, BLOCK, N_ITEMS], marks, lows and widths. O(constraints).

    Of each place the constraints that say most beside what strip and run say of ``pair``. That of
    a place without a slot never holds.
    """
    mass, share, order = bounds.mass, bounds.share, bounds.order
    best, value = np.zeros(N_ITEMS, np.int64), np.zeros(N_ITEMS)
    tests[:, 0], tests[:, 1], tests[:, 2] = ANYTHING, 0, 255
    for place in range(slot_of_place.size):
        slot, block, at = slot_of_place[place], place // BLOCK, place % BLOCK
        if slot < 0:
            tests[block, 1, at, 0], tests[block, 2, at, 0] = 1, 0
            continue
        n = 0
        for q in range(bounds.start[slot], bounds.start[slot + 1]):
            k = order[q]
            if mark[bounds.axis[k]] == UNMARKED:
                continue
            v = share[k] + 1.0 / N_STEPS
            if k == pair[slot, 0] or k == pair[slot, 1]:
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
            tests[block, 0, at, x] = mark[bounds.axis[k]]
            tests[block, 1, at, x], tests[block, 2, at, x] = low, high - low


def build_strip_tests(bounds, pair, slot_of_place):
    """mark: u1[M], and the tests of all blocks: u1[B, 3, BLOCK, N_ITEMS]."""
    mark = mark_axes(bounds, slot_of_place[slot_of_place >= 0])
    tests = aligned_zeros((len(slot_of_place) // BLOCK, 3, BLOCK, N_ITEMS), np.uint8)
    write_strip_tests(bounds, pair, slot_of_place, mark, tests)
    return mark, tests


@inlined
def add_run_plainly(blocks, n, first):
    """``add_run``, one after another."""
    for i in range(MAX_RUN):
        blocks[n + i] = first + i


@inlined
def test_blocks_plainly(blocks, first, last, base, tests, table, kept, n_kept):
    """``test_blocks``, one after another."""
    for i in range(first, last):
        for lane in range(BLOCK):
            at, holds = 3 * ITEMS * blocks[i] + N_ITEMS * lane, True
            for x in range(at, at + N_ITEMS):
                inside = np.int64(table[tests[x] & (N_MARKS - 1)]) - tests[x + ITEMS]
                holds &= inside & 255 <= tests[x + 2 * ITEMS]
            kept[n_kept] = base + BLOCK * blocks[i] + lane
            n_kept += holds
    return n_kept


_I1, _I8, _I32, _I64 = (ir.IntType(n) for n in (1, 8, 32, 64))
_PLACES, _ITEMS = ir.VectorType(_I32, BLOCK), ir.VectorType(_I8, ITEMS)
_HALF = ir.VectorType(_I8, ITEMS // 2)


def _load(builder, pointer, index, kind=_ITEMS):
    place = builder.bitcast(builder.gep(pointer, [index]), kind.as_pointer())
    return builder.load(place, align=1)


def _inside(builder, held, low, width):
    """Which places have all of their items inside: a bit each."""
    inside = builder.sub(held, low)
    is_more = builder.icmp_unsigned(">", inside, width)
    greater = builder.select(is_more, inside, width)
    places = ir.VectorType(_I32, width.type.count // N_ITEMS)
    return builder.icmp_unsigned(
        "==", builder.bitcast(greater, places), builder.bitcast(width, places)
    )


def _hold(builder, held, tests, block):
    """Which places of a block hold what an event has: a bit each."""
    look_up = declare(builder, "llvm.x86.avx512.vpermi2var.qi.512", _ITEMS, [_ITEMS] * 3)
    at = builder.mul(block, _I64(3 * ITEMS))
    mark, low, width = (
        _load(builder, tests, builder.add(at, _I64(ITEMS * side))) for side in range(3)
    )
    return _inside(builder, builder.call(look_up, [held[0], mark, held[1]]), low, width)


def _take(builder, blocks, i, last, tests):
    """blocks[i], with the tests of that AHEAD of it asked for in the second-level cache."""

    def block_at(index):
        return builder.sext(builder.load(builder.gep(blocks, [index])), _I64)

    later = builder.add(i, _I64(AHEAD))
    is_there = builder.icmp_signed("<", later, last)
    at = builder.mul(block_at(builder.select(is_there, later, i)), _I64(3 * ITEMS))
    for side in range(3):
        place = builder.gep(tests, [builder.add(at, _I64(ITEMS * side))])
        kinds = [place.type, _I32, _I32, _I32]
        ask = declare(builder, "llvm.prefetch.p0i8", ir.VoidType(), kinds)
        builder.call(ask, [place, _I32(0), _I32(2), _I32(1)])
    return block_at(i)


def _keep(builder, holds, first, kept, n):
    """Append the places of a block that hold, the first of which is ``first``."""
    bits = ir.VectorType(_I1, BLOCK)
    squeeze = declare(
        builder, "llvm.x86.avx512.mask.compress.v16i32", _PLACES, [_PLACES, _PLACES, bits]
    )
    count = declare(builder, "llvm.ctpop.i64", _I64, [_I64])
    lane = ir.Constant(_PLACES, list(range(BLOCK)))
    places = builder.add(lane, all_lanes(builder, builder.trunc(first, _I32)))
    squeezed = builder.call(squeeze, [places, _PLACES(None), holds])
    before = builder.load(n)
    to = builder.bitcast(builder.gep(kept, [before]), _PLACES.as_pointer())
    builder.store(squeezed, to, align=4)
    is_kept = builder.zext(builder.bitcast(holds, ir.IntType(BLOCK)), _I64)
    builder.store(builder.add(before, builder.call(count, [is_kept])), n)


@intrinsic
def _test_vectors(typingctx, blocks, first, last, base, tests, table, kept, n_kept):
    def codegen(context, builder, signature, args):
        blocks, first, last, base, tests, table, kept, n_kept = args
        held = [_load(builder, table, _I64(at)) for at in (0, ITEMS)]
        n = cgutils.alloca_once_value(builder, n_kept)
        with cgutils.for_range(builder, last, first) as loop:
            block = _take(builder, blocks, loop.index, last, tests)
            holds = _hold(builder, held, tests, block)
            place = builder.add(base, builder.mul(block, _I64(BLOCK)))
            _keep(builder, holds, place, kept, n)
        return builder.load(n)

    i8 = types.int64
    return i8(blocks, i8, i8, i8, tests, table, kept, i8), codegen


def _look_up_half(builder, held, mark):
    """What an event holds by mark, from eight tables of 16; 0 for marks from 128 on."""
    look_up = declare(builder, "llvm.x86.avx2.pshuf.b", _HALF, [_HALF] * 2)
    add = declare(builder, "llvm.uadd.sat.v32i8", _HALF, [_HALF] * 2)
    found = _HALF(None)
    for t, table in enumerate(held):  # all but the table's own marks get their highest bit set
        own = builder.sub(mark, ir.Constant(_HALF, [16 * t] * _HALF.count))
        at = builder.call(add, [own, ir.Constant(_HALF, [0x70] * _HALF.count)])
        found = builder.or_(found, builder.call(look_up, [table, at]))
    return found


def _hold_halves(builder, held, tests, block):
    """``_hold`` as a number, by AVX2."""
    at, found = builder.mul(block, _I64(3 * ITEMS)), _I64(0)
    for half in range(2):
        mark, low, width = (
            _load(builder, tests, builder.add(at, _I64(ITEMS * side + ITEMS // 2 * half)), _HALF)
            for side in range(3)
        )
        holds = _inside(builder, _look_up_half(builder, held, mark), low, width)
        bits = builder.zext(builder.bitcast(holds, _I8), _I64)
        found = builder.or_(found, builder.shl(bits, _I64(8 * half)))
    return found


@intrinsic
def _test_halves(typingctx, blocks, first, last, base, tests, table, kept, n_kept):
    def codegen(context, builder, signature, args):
        blocks, first, last, base, tests, table, kept, n_kept = args
        twice = ir.Constant(ir.VectorType(_I32, _HALF.count), [*range(16)] * 2)
        tables = [
            _load(builder, table, _I64(16 * t), ir.VectorType(_I8, 16))
            for t in range(N_MARKS // 16)
        ]
        held = [builder.shuffle_vector(one, one, twice) for one in tables]
        n = cgutils.alloca_once_value(builder, n_kept)
        with cgutils.for_range(builder, last, first) as loop:
            block = _take(builder, blocks, loop.index, last, tests)
            bits = _hold_halves(builder, held, tests, block)
            with builder.if_then(builder.icmp_unsigned("!=", bits, _I64(0)), likely=False):
                place = builder.add(base, builder.mul(block, _I64(BLOCK)))
                for lane in range(BLOCK):
                    before = builder.load(n)
                    one = builder.trunc(builder.add(place, _I64(lane)), _I32)
                    builder.store(one, builder.gep(kept, [before]))
                    is_kept = builder.and_(builder.lshr(bits, _I64(lane)), _I64(1))
                    builder.store(builder.add(before, is_kept), n)
        return builder.load(n)

    i8 = types.int64
    return i8(blocks, i8, i8, i8, tests, table, kept, i8), codegen


@intrinsic
def _add_vector(typingctx, blocks, n, first):
    def codegen(context, builder, signature, args):
        lane = ir.Constant(_PLACES, list(range(BLOCK)))
        run = builder.add(lane, all_lanes(builder, builder.trunc(args[2], _I32)))
        to = builder.bitcast(builder.gep(args[0], [args[1]]), _PLACES.as_pointer())
        builder.store(run, to, align=4)
        return context.get_dummy_value()

    return types.void(blocks, types.int64, types.int64), codegen


# Write the numbers from ``first`` on to blocks[n:]: i4[.. + MAX_RUN], for the longest run.
add_run = _add_vector if has_instructions("avx512f") else add_run_plainly
# Append the places of blocks[first:last]: i4 whose tests hold to kept: i4[.. + BLOCK]; returns how
# many there are. Block 0 begins at place ``base``. ``tests``: u1[3 ITEMS B]. ``table``:
# u1[N_MARKS], what the event holds; that of ANYTHING, at its lowest seven bits, is 0.
WAYS_TO_TEST = {
    ("avx512vbmi",): _test_vectors,
    ("avx2",): _test_halves,
    (): test_blocks_plainly,
}
test_blocks = next(
    way for needed, way in WAYS_TO_TEST.items() if not needed or has_instructions(*needed)
)
