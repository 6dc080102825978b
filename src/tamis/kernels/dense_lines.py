"""Lines of bits and rows of codes as vectors.

Numba turns none of these loops over eight or four words into vector instructions, and a word at
a time they cost more than the cache misses that they wait for. Indexes are u8 and unchecked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.dense_build import GUARD

_I64 = ir.IntType(64)
_LINE = ir.VectorType(_I64, 8)
_ROW = ir.VectorType(_I64, 4)


def _place(context, builder, kind, array, index, vector):
    """Where a vector begins at array[index]."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _call(builder, name, result, vector):
    kind = ir.FunctionType(result, [vector.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [vector])


def _count(builder, line):
    """The bits set in a line."""
    ones = _call(builder, "llvm.ctpop.v8i64", _LINE, line)
    return _call(builder, "llvm.vector.reduce.add.v8i64", _I64, ones)


@intrinsic
def and_three(typingctx, pool, p, q, r, words, k, done, d):
    """Write pool[p:p+8] & pool[q:q+8] & pool[r:r+8] to words[k:] and done[d:]; return its bits."""

    def codegen(context, builder, signature, args):
        kinds = signature.args
        line = ir.Constant(_LINE, [-1] * 8)
        for at in args[1:4]:
            place = _place(context, builder, kinds[0], args[0], at, _LINE)
            line = builder.and_(line, builder.load(place, align=8))
        for to in (4, 6):
            place = _place(context, builder, kinds[to], args[to], args[to + 1], _LINE)
            builder.store(line, place, align=8)
        return _count(builder, line)

    u8 = types.uint64
    return types.int64(pool, u8, u8, u8, words, u8, done, u8), codegen


@intrinsic
def and_one(typingctx, pool, p, words, i, k, done, d):
    """Write words[i:i+8] & pool[p:p+8] to words[k:] and done[d:]; return the bits set."""

    def codegen(context, builder, signature, args):
        kinds = signature.args
        held = builder.load(_place(context, builder, kinds[2], args[2], args[3], _LINE), align=8)
        other = builder.load(_place(context, builder, kinds[0], args[0], args[1], _LINE), align=8)
        line = builder.and_(held, other)
        for array, at in ((2, 4), (5, 6)):
            place = _place(context, builder, kinds[array], args[array], args[at], _LINE)
            builder.store(line, place, align=8)
        return _count(builder, line)

    u8 = types.uint64
    return types.int64(pool, u8, words, u8, u8, done, u8), codegen


@intrinsic
def set_words(typingctx, words, i):
    """A bit for each of words[i:i+8] that is not zero."""

    def codegen(context, builder, signature, args):
        place = _place(context, builder, signature.args[0], args[0], args[1], _LINE)
        is_set = builder.icmp_unsigned(
            "!=", builder.load(place, align=8), ir.Constant(_LINE, [0] * 8)
        )
        return builder.zext(builder.bitcast(is_set, ir.IntType(8)), _I64)

    return types.uint64(words, types.uint64), codegen


@intrinsic
def compare_row(typingctx, rows, p, keys, step):
    """Compare four words of a row with keys[:4] (possible) and keys[step:] (certain).

    Returns 1 if every code is at most the event's, 2 more if that is certain for the bounds.
    The guard bit of key - row is set where the row's code is at most the key's.
    """

    def codegen(context, builder, signature, args):
        kinds = signature.args
        row = builder.load(_place(context, builder, kinds[0], args[0], args[1], _ROW), align=8)
        guard = ir.Constant(_ROW, [GUARD] * 4)
        found = []
        for at in (ir.Constant(_I64, 0), args[3]):
            place = _place(context, builder, kinds[2], args[2], at, _ROW)
            rest = builder.and_(builder.sub(builder.load(place, align=8), row), guard)
            holds = builder.bitcast(builder.icmp_unsigned("==", rest, guard), ir.IntType(4))
            all_hold = builder.icmp_unsigned("==", holds, ir.Constant(ir.IntType(4), 15))
            found.append(builder.zext(all_hold, _I64))
        return builder.or_(found[0], builder.shl(found[1], ir.Constant(_I64, 1)))

    u8 = types.uint64
    return types.int64(rows, u8, keys, u8), codegen


@intrinsic
def slot_in(typingctx, rows, p):
    """The slot in the top bytes of the four words of a row, the least byte first."""

    def codegen(context, builder, signature, args):
        place = _place(context, builder, signature.args[0], args[0], args[1], _ROW)
        top = builder.lshr(builder.load(place, align=8), ir.Constant(_ROW, [56] * 4))
        placed = builder.shl(top, ir.Constant(_ROW, [0, 8, 16, 24]))
        slot = _call(builder, "llvm.vector.reduce.or.v4i64", _I64, placed)
        return builder.trunc(slot, ir.IntType(32))

    return types.int32(rows, types.uint64), codegen
