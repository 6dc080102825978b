"""What a scan of many events does with values, as vectors. Indexes are u8 and unchecked."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tamis.kernels.bit_lines import place_of
from tamis.kernels.vectors import declare

_VALUES = ir.VectorType(ir.DoubleType(), 8)
_I8, _I64 = ir.IntType(8), ir.IntType(64)


@intrinsic
def count_at_most(typingctx, array, i, value):
    """How many of array[i:i+8]: f8 are at most a value."""

    def codegen(context, builder, signature, args):
        array, i, value = args
        place = place_of(context, builder, signature.args[0], array, i, _VALUES)
        held = builder.load(place, align=8)
        one = builder.insert_element(ir.Constant(_VALUES, ir.Undefined), value, ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
        wanted = builder.shuffle_vector(one, one, lanes)
        is_below = builder.fcmp_ordered("<=", held, wanted)
        count = declare(builder, "llvm.ctpop.i8", _I8, [_I8])
        return builder.zext(builder.call(count, [builder.bitcast(is_below, _I8)]), _I64)

    return types.uint64(array, types.uint64, types.float64), codegen
