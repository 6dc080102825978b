"""Tests of sparse boxes, sixteen at a time.

The number of axes is mostly small, so that what there is of an event fits into a few vector
registers, where AVX-512 looks sixteen axes up in one instruction. Without it, or the compiler, or
with more axes, the same is done one by one.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.extending import intrinsic

from tamis.kernels.compiled import inlined
from tamis.kernels.vectors import declare, has_instructions, in_all_lanes

LANES = 16
TABLE = 64  # numbers that can be looked up; scratch has room for so many

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_I32, LANES)
_BITS = ir.VectorType(ir.IntType(1), LANES)


@inlined
def passes(rough, item, low_at, width_at, axis_mask, mask):
    """Whether the event's rough mass is inside one constraint of a test."""
    inside = rough[item & axis_mask] - ((item >> low_at) & mask)
    return inside & u64(0xFFFFFFFF) <= (item >> width_at) & mask


@inlined
def which_hold_plainly(test, first, n, rough, low_at, width_at, axis_mask, mask, second):
    """``which_hold``, one after another."""
    found = u64(0)
    for i in range(n):
        one = u64(test[first + i])
        holds = passes(rough, one, low_at, width_at, axis_mask, mask) & passes(
            rough, one >> second, low_at, width_at, axis_mask, mask
        )
        found |= u64(holds) << u64(i)
    return found


def all_lanes(builder, number):
    """A vector with a number in every lane."""
    return in_all_lanes(builder, _VECTOR, number)


def look_up(builder, pointer, at):
    """pointer[at] of every lane, below TABLE."""
    table = [
        builder.load(
            builder.bitcast(builder.gep(pointer, [_I64(LANES * i)]), _VECTOR.as_pointer()), align=4
        )
        for i in range(TABLE // LANES)
    ]
    pick = declare(builder, "llvm.x86.avx512.vpermi2var.d.512", _VECTOR, [_VECTOR] * 3)
    low, high = (builder.call(pick, [table[i], at, table[i + 1]]) for i in (0, 2))
    half = ir.Constant(_VECTOR, [TABLE // 2] * LANES)
    is_high = builder.icmp_unsigned("!=", builder.and_(at, half), _VECTOR(None))
    return builder.select(is_high, high, low)


@intrinsic
def _test_vector(typingctx, test, first, n, rough, low_at, width_at, axis_mask, mask, second):
    def codegen(context, builder, signature, args):
        pointer = _VECTOR.as_pointer()
        load = declare(
            builder, "llvm.masked.load.v16i32.p0", _VECTOR, [pointer, _I32, _BITS, _VECTOR]
        )
        lane = ir.Constant(_VECTOR, list(range(LANES)))
        n_lanes = all_lanes(builder, builder.trunc(args[2], _I32))
        is_there = builder.icmp_unsigned("<", lane, n_lanes)
        place = builder.bitcast(builder.gep(args[0], [args[1]]), pointer)
        one = builder.call(load, [place, _I32(4), is_there, _VECTOR(None)])
        low_at, width_at, axis_mask, mask, second = (
            all_lanes(builder, builder.trunc(number, _I32)) for number in args[4:]
        )
        holds = is_there
        for item in (one, builder.lshr(one, second)):
            held = look_up(builder, args[3], builder.and_(item, axis_mask))
            low = builder.and_(builder.lshr(item, low_at), mask)
            width = builder.and_(builder.lshr(item, width_at), mask)
            inside = builder.icmp_unsigned("<=", builder.sub(held, low), width)
            holds = builder.and_(holds, inside)
        return builder.zext(builder.bitcast(holds, ir.IntType(LANES)), _I64)

    u8 = types.uint64
    return u8(test, u8, u8, rough, u8, u8, u8, u8, u8), codegen


# Which of test[first : first + n], n <= 16, hold: a bit each. ``rough``: u4[TABLE], of which the
# axes in use count; where the constraints of a test are is told by ``test_masks``.
which_hold = _test_vector if has_instructions("avx512f") else which_hold_plainly
