"""What a batch does with lines of bits and candidates of dense boxes, as vectors.

Indexes are u8 and unchecked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.bit_lines import LINE_OF_WORDS, has_vectors, place_of, store_line
from tamis.kernels.compiled import inlined
from tamis.kernels.vectors import declare, in_all_lanes

LANES = 16  # slots that are moved at once, more than a run mostly has; candidates kept at once

_I1, _I8, _I16, _I32, _I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
_SLOTS, _SLOT_BYTES, _SLOT_BITS = (ir.VectorType(kind, LANES) for kind in (_I32, _I8, _I1))


@intrinsic
def touch(typingctx, array, i):
    """Load array[i] for the sake of its cache line: a prefetch may be dropped, and many are."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.load_atomic(builder.gep(data, [args[1]]), "monotonic", 8)  # is never optimised away
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


def _and_lines(context, builder, kinds, args, line):
    """AND a line with n others, two by two; store it, and whether a bit is set."""
    pool, stride, at, maps, first, n, words, i = args
    numbers = context.make_array(kinds[3])(context, builder, maps).data
    left = cgutils.alloca_once(builder, LINE_OF_WORDS)
    builder.store(line, left)
    with cgutils.for_range_slice(builder, _I64(0), n, _I64(2), _I64) as (j, _):
        line = builder.load(left)
        for more in range(2):
            place = builder.add(builder.add(first, j), _I64(more))
            number = builder.zext(builder.load(builder.gep(numbers, [place])), _I64)
            start = builder.add(builder.mul(number, stride), at)
            place = place_of(context, builder, kinds[0], pool, start, LINE_OF_WORDS)
            line = builder.and_(line, builder.load(place, align=8))
        builder.store(line, left)
    return store_line(context, builder, kinds[6], builder.load(left), words, i)


@intrinsic
def and_many(typingctx, pool, stride, at, maps, first, n, words, i):
    """AND the lines at pool[maps[j] * stride + at] for n of j from first on; n is even.

    Writes them to words[i:i+8]; returns whether a bit is set, 0 or 1.
    """

    def codegen(context, builder, signature, args):
        line = ir.Constant(LINE_OF_WORDS, [-1] * 8)
        return _and_lines(context, builder, signature.args, args, line)

    u8 = types.uint64
    return u8(pool, u8, u8, maps, u8, u8, words, u8), codegen


@intrinsic
def and_more(typingctx, pool, stride, at, maps, first, n, words, i):
    """``and_many`` of what is in words[i:i+8] and more."""

    def codegen(context, builder, signature, args):
        place = place_of(context, builder, signature.args[6], args[6], args[7], LINE_OF_WORDS)
        line = builder.load(place, align=8)
        return _and_lines(context, builder, signature.args, args, line)

    u8 = types.uint64
    return u8(pool, u8, u8, maps, u8, u8, words, u8), codegen


@inlined
def keep_certain_plainly(candidates, misfits, i, out, k):
    """``keep_certain``, one after another."""
    for j in range(i, i + u64(LANES)):
        out[k] = candidates[j]
        k += u64(misfits[j] == 0)
    return k


@inlined
def keep_tied_plainly(candidates, misfits, i, out, k):
    """``keep_tied``, one after another."""
    for j in range(i, i + u64(LANES)):
        out[k] = candidates[j]
        k += u64(misfits[j] & 15 == 0) - u64(misfits[j] == 0)
    return k


def _keep(builder, context, kinds, args, choose):
    """Append the candidates whose misfits ``choose`` picks; the new k."""
    candidates, misfits, i, out, k = args
    place = place_of(context, builder, kinds[1], misfits, i, _SLOT_BYTES)
    is_kept = choose(builder, builder.load(place, align=1))
    place = place_of(context, builder, kinds[0], candidates, i, _SLOTS)
    squeeze = declare(
        builder, "llvm.x86.avx512.mask.compress.v16i32", _SLOTS, [_SLOTS, _SLOTS, _SLOT_BITS]
    )
    none = ir.Constant(_SLOTS, [0] * LANES)
    kept = builder.call(squeeze, [builder.load(place, align=4), none, is_kept])
    builder.store(kept, place_of(context, builder, kinds[3], out, k, _SLOTS), align=4)
    count = declare(builder, "llvm.ctpop.i16", _I16, [_I16])
    n_kept = builder.call(count, [builder.bitcast(is_kept, _I16)])
    return builder.add(k, builder.zext(n_kept, _I64))


_NO_MISFITS, _POSSIBLE = (ir.Constant(_SLOT_BYTES, [value] * LANES) for value in (0, 15))


@intrinsic
def _keep_certain(typingctx, candidates, misfits, i, out, k):
    def codegen(context, builder, signature, args):
        def is_certain(builder, some):
            return builder.icmp_unsigned("==", some, _NO_MISFITS)

        return _keep(builder, context, signature.args, args, is_certain)

    u8 = types.uint64
    return u8(candidates, misfits, u8, out, u8), codegen


@intrinsic
def _keep_tied(typingctx, candidates, misfits, i, out, k):
    def codegen(context, builder, signature, args):
        def is_tied(builder, some):
            possible = builder.icmp_unsigned("==", builder.and_(some, _POSSIBLE), _NO_MISFITS)
            return builder.and_(possible, builder.icmp_unsigned("!=", some, _NO_MISFITS))

        return _keep(builder, context, signature.args, args, is_tied)

    u8 = types.uint64
    return u8(candidates, misfits, u8, out, u8), codegen


@inlined
def move_run_plainly(found, start, n, out, at):
    """``move_run``, one after another."""
    for i in range(n):
        out[at + i] = found[start + i]


@intrinsic
def _move_run(typingctx, found, start, n, out, at):
    def codegen(context, builder, signature, args):
        found, start, n, out, at = args
        kinds = signature.args
        pointer = _SLOTS.as_pointer()
        store = declare(
            builder, "llvm.masked.store.v16i32.p0", ir.VoidType(),
            [_SLOTS, pointer, _I32, _SLOT_BITS],
        )  # fmt: skip
        with cgutils.for_range_slice(builder, _I64(0), n, _I64(LANES), _I64) as (i, _):
            place = place_of(context, builder, kinds[0], found, builder.add(start, i), _SLOTS)
            some = builder.load(place, align=4)
            n_left = in_all_lanes(builder, _SLOTS, builder.trunc(builder.sub(n, i), _I32))
            is_there = builder.icmp_signed("<", ir.Constant(_SLOTS, list(range(LANES))), n_left)
            place = place_of(context, builder, kinds[3], out, builder.add(at, i), _SLOTS)
            builder.call(store, [some, place, _I32(4), is_there])
        return context.get_dummy_value()

    u8 = types.uint64
    return types.void(found, u8, u8, out, u8), codegen


# Append those of candidates[i:i+LANES]: u4 that have no misfits: u1 to out from k on, which has
# room for LANES; returns the new k. And those that have none by "possible", but some by "certain".
keep_certain = _keep_certain if has_vectors else keep_certain_plainly
keep_tied = _keep_tied if has_vectors else keep_tied_plainly
# Copy found[start:start+n]: i4, after which LANES more can be read, to out: i4 from ``at`` on.
move_run = _move_run if has_vectors else move_run_plainly
