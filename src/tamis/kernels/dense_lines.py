"""Lines of bits as vectors.

Numba turns none of these loops over eight words into vector instructions, and a word at a time
they cost more than the cache misses that they wait for. Indexes are u8 and unchecked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.bit_lines import LINE_OF_WORDS, place_of

_I64 = ir.IntType(64)


def _call(builder, name, result, vector):
    kind = ir.FunctionType(result, [vector.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [vector])


def _count(builder, line):
    """The bits set in a line."""
    ones = _call(builder, "llvm.ctpop.v8i64", LINE_OF_WORDS, line)
    return _call(builder, "llvm.vector.reduce.add.v8i64", _I64, ones)


@intrinsic
def and_three(typingctx, pool, p, q, r, words, i):
    """Write pool[p:p+8] & pool[q:q+8] & pool[r:r+8] to words[i:]; return the bits set."""

    def codegen(context, builder, signature, args):
        line = ir.Constant(LINE_OF_WORDS, [-1] * 8)
        for at in args[1:4]:
            place = place_of(context, builder, signature.args[0], args[0], at, LINE_OF_WORDS)
            line = builder.and_(line, builder.load(place, align=8))
        place = place_of(context, builder, signature.args[4], args[4], args[5], LINE_OF_WORDS)
        builder.store(line, place, align=8)
        return _count(builder, line)

    u8 = types.uint64
    return types.int64(pool, u8, u8, u8, words, u8), codegen


@intrinsic
def and_two(typingctx, pool, p, q, words, i):
    """AND pool[p:p+8] and pool[q:q+8] to words[i:i+8]; return the bits set."""

    def codegen(context, builder, signature, args):
        kinds = signature.args
        place = place_of(context, builder, kinds[3], args[3], args[4], LINE_OF_WORDS)
        line = builder.load(place, align=8)
        for at in args[1:3]:
            other = place_of(context, builder, kinds[0], args[0], at, LINE_OF_WORDS)
            line = builder.and_(line, builder.load(other, align=8))
        builder.store(line, place, align=8)
        return _count(builder, line)

    u8 = types.uint64
    return types.int64(pool, u8, u8, words, u8), codegen
