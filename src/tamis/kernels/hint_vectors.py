"""Hints of movers, 32 at a time.

Of a hint, column, low and high stand behind each other. AVX-512 puts them apart and looks the
values of 32 columns up in one instruction, if an event has no more than 64. Without it, or the
compiler, the same is done one by one.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.extending import intrinsic

from tamis.kernels.compiled import inlined
from tamis.kernels.vectors import declare, has_instructions

HINT = 3  # column, low, high as codes: a term, roughly
LANES = 32
TABLE = 64  # columns that can be looked up

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_I16, LANES)


@inlined
def hint_holds(hints, at, rough):
    """Whether what a hint stands for may hold."""
    value = rough[hints[at]]
    return (hints[at + 1] <= value) & (value <= hints[at + 2])


@inlined
def hints_hold_plainly(hints, first, rough):
    """``hints_hold``, one after another."""
    found = u64(0)
    for i in range(LANES):
        found |= u64(hint_holds(hints, (first + u64(i)) * u64(HINT), rough)) << u64(i)
    return found


def _every_third(builder, parts, start):
    """Numbers start, start + 3, ... of three vectors in a row."""
    wide, whole = ir.VectorType(_I32, 2 * LANES), list(range(2 * LANES))
    low = builder.shuffle_vector(parts[0], parts[1], ir.Constant(wide, whole))
    high = builder.shuffle_vector(parts[2], parts[2], ir.Constant(wide, whole))
    places = ir.Constant(ir.VectorType(_I32, LANES), [start + HINT * i for i in range(LANES)])
    return builder.shuffle_vector(low, high, places)


@intrinsic
def _hints_hold(typingctx, hints, first, rough):
    def codegen(context, builder, signature, args):
        pointer = _VECTOR.as_pointer()

        def load(base, at):
            return builder.load(builder.bitcast(builder.gep(base, [at]), pointer), align=2)

        start = builder.mul(args[1], _I64(HINT))
        parts = [load(args[0], builder.add(start, _I64(LANES * i))) for i in range(HINT)]
        column, low, high = (_every_third(builder, parts, i) for i in range(HINT))
        table = [load(args[2], _I64(LANES * i)) for i in range(TABLE // LANES)]
        pick = declare(builder, "llvm.x86.avx512.vpermi2var.hi.512", _VECTOR, [_VECTOR] * 3)
        value = builder.call(pick, [table[0], column, table[1]])
        holds = builder.and_(
            builder.icmp_unsigned("<=", low, value), builder.icmp_unsigned("<=", value, high)
        )
        return builder.zext(builder.bitcast(holds, ir.IntType(LANES)), _I64)

    return types.uint64(hints, types.uint64, rough), codegen


# Which of the 32 hints from ``first`` on may hold: a bit each. ``rough``: u2[TABLE], the values by
# column. A hint that always holds has a column beyond, and whatever is looked up for it is between
# its ends.
hints_hold = _hints_hold if has_instructions("avx512f", "avx512bw") else hints_hold_plainly
