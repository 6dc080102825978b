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
from tamis.kernels.dense_build import LINE
from tamis.kernels.keeping import LANES, NUMBERS, n_set, squeeze
from tamis.kernels.vectors import declare, in_all_lanes

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BITS = ir.VectorType(ir.IntType(1), LANES)


@intrinsic
def touch(typingctx, array, i):
    """Load array[i] for the sake of its cache line: a prefetch may be dropped, and many are."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.load_atomic(builder.gep(data, [args[1]]), "monotonic", 8)  # is never optimised away
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


def _and_lines(context, builder, kinds, args, line):
    """AND a line with n others, two by two; store it; whether no bit is set."""
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
    is_any = store_line(context, builder, kinds[6], builder.load(left), words, i)
    return builder.xor(is_any, _I64(1))


@intrinsic
def and_many(typingctx, pool, stride, at, maps, first, n, words, i):
    """AND the lines at pool[maps[j] * stride + at] for n of j from first on; n is even.

    Writes them to words[i:i+8]; returns whether no bit is set, 0 or 1.
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
def end_runs_plainly(kept, i, before, runs, k):
    """``end_runs``, one after another."""
    for j in range(i, i + u64(LANES)):
        e = u64(kept[j]) // u64(LINE)
        runs[k] = (e << u64(32)) | (before + j + u64(1))
        k += u64(e != u64(kept[j + u64(1)]) // u64(LINE))
    return k


@intrinsic
def _end_runs(typingctx, kept, i, before, runs, k):
    def codegen(context, builder, signature, args):
        kept, i, before, runs, k = args
        kinds = signature.args
        events = []
        for first in range(2):
            at = builder.add(i, _I64(first))
            place = place_of(context, builder, kinds[0], kept, at, NUMBERS)
            shift = ir.Constant(NUMBERS, [LINE.bit_length() - 1] * LANES)
            events.append(builder.lshr(builder.load(place, align=4), shift))
        is_last = builder.icmp_unsigned("!=", *events)
        n_before = in_all_lanes(builder, NUMBERS, builder.trunc(builder.add(before, i), _I32))
        ends = builder.add(n_before, ir.Constant(NUMBERS, list(range(1, LANES + 1))))
        squeezed = [squeeze(builder, held, is_last) for held in (ends, events[0])]
        for first in (0, LANES // 2):
            lanes = [half + first + lane for lane in range(LANES // 2) for half in (0, LANES)]
            both = builder.shuffle_vector(*squeezed, ir.Constant(NUMBERS, lanes))
            place = place_of(context, builder, kinds[3], runs, builder.add(k, _I64(first)), NUMBERS)
            builder.store(both, place, align=8)
        return builder.add(k, n_set(builder, is_last))

    u8 = types.uint64
    return u8(kept, u8, u8, runs, u8), codegen


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
        pointer = NUMBERS.as_pointer()
        store = declare(
            builder, "llvm.masked.store.v16i32.p0", ir.VoidType(),
            [NUMBERS, pointer, _I32, _BITS],
        )  # fmt: skip
        with cgutils.for_range_slice(builder, _I64(0), n, _I64(LANES), _I64) as (i, _):
            place = place_of(context, builder, kinds[0], found, builder.add(start, i), NUMBERS)
            some = builder.load(place, align=4)
            n_left = in_all_lanes(builder, NUMBERS, builder.trunc(builder.sub(n, i), _I32))
            is_there = builder.icmp_signed("<", ir.Constant(NUMBERS, list(range(LANES))), n_left)
            place = place_of(context, builder, kinds[3], out, builder.add(at, i), NUMBERS)
            builder.call(store, [some, place, _I32(4), is_there])
        return context.get_dummy_value()

    u8 = types.uint64
    return types.void(found, u8, u8, out, u8), codegen


# Append to runs: u8 from k on those runs of events that end within kept[i:i+LANES]: u4, each as
# event << 32 | before + its end in kept, of which one more can be read; runs has room for LANES.
# Returns the new k.
end_runs = _end_runs if has_vectors else end_runs_plainly
# Copy found[start:start+n]: i4, after which LANES more can be read, to out: i4 from ``at`` on.
move_run = _move_run if has_vectors else move_run_plainly
