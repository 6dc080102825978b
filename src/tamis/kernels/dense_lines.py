"""Lines of bits and rows of codes as vectors.

Numba turns none of these loops over eight or four words into vector instructions, and a word at
a time they cost more than the cache misses that they wait for. Indexes are u8 and unchecked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.bit_lines import LINE_OF_WORDS, place_of
from tamis.kernels.dense_build import GUARD

_I64 = ir.IntType(64)
ROW_OF_WORDS = ir.VectorType(_I64, 4)


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


@intrinsic
def misfits(typingctx, rows, p, keys, step):
    """Which words of a row do not fit an event: bits 0-3 by keys[:4], bits 4-7 by keys[step:].

    Looks at rows[p:p+4]. A key holds 1023 less the event's codes, so that a sum has its guard bit
    set where the row's code is more than the event's.
    """

    def codegen(context, builder, signature, args):
        kinds = signature.args
        row = builder.load(
            place_of(context, builder, kinds[0], args[0], args[1], ROW_OF_WORDS), align=8
        )
        possible, certain = (
            builder.load(place_of(context, builder, kinds[2], args[2], at, ROW_OF_WORDS), align=8)
            for at in (ir.Constant(_I64, 0), args[3])
        )
        lanes = ir.VectorType(ir.IntType(32), 8)
        twice = builder.shuffle_vector(row, row, ir.Constant(lanes, [0, 1, 2, 3] * 2))
        key = builder.shuffle_vector(possible, certain, ir.Constant(lanes, list(range(8))))
        over = builder.and_(builder.add(twice, key), ir.Constant(LINE_OF_WORDS, [GUARD] * 8))
        is_over = builder.icmp_unsigned("!=", over, ir.Constant(LINE_OF_WORDS, [0] * 8))
        return builder.zext(builder.bitcast(is_over, ir.IntType(8)), _I64)

    u8 = types.uint64
    return types.int64(rows, u8, keys, u8), codegen


@intrinsic
def slot_in(typingctx, rows, p):
    """The slot in the top bytes of the four words of a row, the least byte first."""

    def codegen(context, builder, signature, args):
        bytes_of_row = ir.VectorType(ir.IntType(8), 32)
        place = place_of(context, builder, signature.args[0], args[0], args[1], bytes_of_row)
        row = builder.load(place, align=8)
        top = ir.Constant(ir.VectorType(ir.IntType(32), 4), [7, 15, 23, 31])
        return builder.bitcast(builder.shuffle_vector(row, row, top), ir.IntType(32))

    return types.int32(rows, types.uint64), codegen
