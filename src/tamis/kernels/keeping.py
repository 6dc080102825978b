"""Keeping: those of many numbers that fit, sixteen at a time.

What fits is judged first, and told in bytes; who is kept, and where, is a loop of its own. In one
loop the place of each depends on what was judged before, which waits for memory, and the stores
whose place is not known hold up the loads behind them. Indexes are u8 and unchecked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.extending import intrinsic

from tamis.kernels.bit_lines import has_vectors, place_of
from tamis.kernels.compiled import inlined
from tamis.kernels.vectors import declare

LANES = 16

_I1, _I8, _I16, _I32, _I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
NUMBERS, _BYTES, _BITS = (ir.VectorType(kind, LANES) for kind in (_I32, _I8, _I1))


@inlined
def keep_certain_plainly(numbers, misfits, i, out, k):
    """``keep_certain``, one after another."""
    for j in range(i, i + u64(LANES)):
        out[k] = numbers[j]
        k += u64(misfits[j] == 0)
    return k


@inlined
def keep_tied_plainly(numbers, misfits, i, out, k):
    """``keep_tied``, one after another."""
    for j in range(i, i + u64(LANES)):
        out[k] = numbers[j]
        k += u64(misfits[j] & 15 == 0) - u64(misfits[j] == 0)
    return k


def _keep(builder, context, kinds, args, choose):
    """Append the numbers whose misfits ``choose`` picks; the new k."""
    numbers, misfits, i, out, k = args
    place = place_of(context, builder, kinds[1], misfits, i, _BYTES)
    is_kept = choose(builder, builder.load(place, align=1))
    place = place_of(context, builder, kinds[0], numbers, i, NUMBERS)
    kept = squeeze(builder, builder.load(place, align=4), is_kept)
    builder.store(kept, place_of(context, builder, kinds[3], out, k, NUMBERS), align=4)
    return builder.add(k, n_set(builder, is_kept))


def squeeze(builder, numbers, is_kept):
    """The kept ones of LANES numbers, one beside the other."""
    compress = declare(
        builder, "llvm.x86.avx512.mask.compress.v16i32", NUMBERS, [NUMBERS, NUMBERS, _BITS]
    )
    return builder.call(compress, [numbers, ir.Constant(NUMBERS, [0] * LANES), is_kept])


def n_set(builder, bits):
    """How many of LANES bits are set: u8."""
    count = declare(builder, "llvm.ctpop.i16", _I16, [_I16])
    return builder.zext(builder.call(count, [builder.bitcast(bits, _I16)]), _I64)


_NO_MISFITS, _POSSIBLE = (ir.Constant(_BYTES, [value] * LANES) for value in (0, 15))


@intrinsic
def _keep_certain(typingctx, numbers, misfits, i, out, k):
    def codegen(context, builder, signature, args):
        def is_certain(builder, some):
            return builder.icmp_unsigned("==", some, _NO_MISFITS)

        return _keep(builder, context, signature.args, args, is_certain)

    u8 = types.uint64
    return u8(numbers, misfits, u8, out, u8), codegen


@intrinsic
def _keep_tied(typingctx, numbers, misfits, i, out, k):
    def codegen(context, builder, signature, args):
        def is_tied(builder, some):
            possible = builder.icmp_unsigned("==", builder.and_(some, _POSSIBLE), _NO_MISFITS)
            return builder.and_(possible, builder.icmp_unsigned("!=", some, _NO_MISFITS))

        return _keep(builder, context, signature.args, args, is_tied)

    u8 = types.uint64
    return u8(numbers, misfits, u8, out, u8), codegen


# Append those of numbers[i:i+LANES]: u4 or i4 that have no misfits: u1 to out from k on, which has
# room for LANES; returns the new k. And those that have none by "possible", but some by "certain",
# as ``dense_fit.misfits_of`` tells them. ``out`` may be ``numbers``.
keep_certain = _keep_certain if has_vectors else keep_certain_plainly
keep_tied = _keep_tied if has_vectors else keep_tied_plainly
