"""What a batch does with lines of bits, as vectors.

With AVX-512 the bits of a word are listed in a few instructions whatever their number. Without
it the same is done bit by bit. Indexes are u8 and unchecked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.core import cgutils
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic

from tamis.kernels.compiled import inlined
from tamis.kernels.dense_build import GUARD
from tamis.kernels.dense_lines import LINE_OF_WORDS, ROW_OF_WORDS, place_of
from tamis.kernels.vectors import declare, has_instructions

LANES = 16  # slots that are moved at once, more than a run mostly has
MANY = 64  # places that ``list_bits`` may write

_I1, _I8, _I32, _I64 = (ir.IntType(n) for n in (1, 8, 32, 64))
_SLOTS, _SLOT_BITS = (ir.VectorType(kind, LANES) for kind in (_I32, _I1))
_BYTES, _BYTE_BITS = (ir.VectorType(kind, MANY) for kind in (_I8, _I1))


def _in_all_lanes(builder, kind, number):
    """A vector of some kind with a number in every lane."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, _I32(0))
    return builder.shuffle_vector(
        one, one, ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count)
    )


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


def store_line(context, builder, kind, line, words, i):
    """Store a line in words[i:i+8]; whether a bit is set."""
    builder.store(line, place_of(context, builder, kind, words, i, LINE_OF_WORDS), align=8)
    is_set = builder.icmp_unsigned("!=", line, ir.Constant(LINE_OF_WORDS, [0] * 8))
    is_any = builder.icmp_unsigned("!=", builder.bitcast(is_set, _I8), _I8(0))
    return builder.zext(is_any, _I64)


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


@intrinsic
def misfits_of(typingctx, rows, p, keys, k):
    """``dense_lines.misfits`` of the keys from k on: four "possible", then four "certain"."""

    def codegen(context, builder, signature, args):
        kinds = signature.args
        place = place_of(context, builder, kinds[0], args[0], args[1], ROW_OF_WORDS)
        row = builder.load(place, align=8)
        place = place_of(context, builder, kinds[2], args[2], args[3], LINE_OF_WORDS)
        lanes = ir.Constant(ir.VectorType(_I32, 8), [0, 1, 2, 3] * 2)
        added = builder.add(builder.shuffle_vector(row, row, lanes), builder.load(place, align=8))
        over = builder.and_(added, ir.Constant(LINE_OF_WORDS, [GUARD] * 8))
        is_over = builder.icmp_unsigned("!=", over, ir.Constant(LINE_OF_WORDS, [0] * 8))
        return builder.zext(builder.bitcast(is_over, _I8), _I64)

    u8 = types.uint64
    return types.int64(rows, u8, keys, u8), codegen


@inlined
def list_words_plainly(words, i, base, full, places, k):
    """``list_words``, one after another."""
    for w in range(u64(8)):
        full[k] = words[i + w]
        places[k] = base + u64(64) * w
        k += u64(words[i + w] != u64(0))
    return k


@intrinsic
def _list_words(typingctx, words, i, base, full, places, k):
    def codegen(context, builder, signature, args):
        words, i, base, full, places, k = args
        kinds = signature.args
        place = place_of(context, builder, kinds[0], words, i, LINE_OF_WORDS)
        line, none = builder.load(place, align=8), ir.Constant(LINE_OF_WORDS, [0] * 8)
        is_set = builder.icmp_unsigned("!=", line, none)
        squeeze = declare(
            builder, "llvm.x86.avx512.mask.compress.v8i64", LINE_OF_WORDS,
            [LINE_OF_WORDS, LINE_OF_WORDS, is_set.type],
        )  # fmt: skip
        bases = builder.add(
            _in_all_lanes(builder, LINE_OF_WORDS, base),
            ir.Constant(LINE_OF_WORDS, [64 * w for w in range(8)]),
        )
        for kind, array, held in ((kinds[3], full, line), (kinds[4], places, bases)):
            place = place_of(context, builder, kind, array, k, LINE_OF_WORDS)
            builder.store(builder.call(squeeze, [held, none, is_set]), place, align=8)
        count = declare(builder, "llvm.ctpop.i8", _I8, [_I8])
        n_set = builder.call(count, [builder.bitcast(is_set, _I8)])
        return builder.add(k, builder.zext(n_set, _I64))

    u8 = types.uint64
    return u8(words, u8, u8, full, places, u8), codegen


@inlined
def list_bits_plainly(word, base, out, k):
    """``list_bits``, one after another."""
    while word:
        out[k] = base + u64(trailing_zeros(word))
        k += u64(1)
        word &= word - u64(1)
    return k


@intrinsic
def _list_bits(typingctx, word, base, out, k):
    def codegen(context, builder, signature, args):
        word, base, out, k = args
        squeeze = declare(
            builder, "llvm.x86.avx512.mask.compress.v64i8", _BYTES, [_BYTES, _BYTES, _BYTE_BITS]
        )
        numbers, none = (ir.Constant(_BYTES, list(x)) for x in (range(MANY), [0] * MANY))
        bits = builder.call(squeeze, [numbers, none, builder.bitcast(word, _BYTE_BITS)])
        n_bits = builder.call(declare(builder, "llvm.ctpop.i64", _I64, [_I64]), [word])
        bases = _in_all_lanes(builder, _SLOTS, builder.trunc(base, _I32))

        def put(first):
            lanes = ir.Constant(_SLOTS, list(range(first, first + LANES)))
            some = builder.zext(builder.shuffle_vector(bits, bits, lanes), _SLOTS)
            at = builder.add(k, _I64(first))
            place = place_of(context, builder, signature.args[2], out, at, _SLOTS)
            builder.store(builder.add(some, bases), place, align=4)

        put(0)
        with builder.if_then(builder.icmp_unsigned(">", n_bits, _I64(LANES)), likely=False):
            for first in range(LANES, MANY, LANES):
                put(first)
        return builder.add(k, n_bits)

    u8 = types.uint64
    return u8(u8, u8, out, u8), codegen


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
            n_left = _in_all_lanes(builder, _SLOTS, builder.trunc(builder.sub(n, i), _I32))
            is_there = builder.icmp_signed("<", ir.Constant(_SLOTS, list(range(LANES))), n_left)
            place = place_of(context, builder, kinds[3], out, builder.add(at, i), _SLOTS)
            builder.call(store, [some, place, _I32(4), is_there])
        return context.get_dummy_value()

    u8 = types.uint64
    return types.void(found, u8, u8, out, u8), codegen


has_vectors = has_instructions("avx512f", "avx512bw", "avx512vl", "avx512vbmi2")
# Append those of words[i:i+8] that are not zero to full: u8 from k on, and base + 64 w to
# places: u8 for the w-th; both have room for eight. Returns the new k.
list_words = _list_words if has_vectors else list_words_plainly
# Append base + b for each bit b of a word to out: u4 from k on, which has room for MANY; returns
# the new k.
list_bits = _list_bits if has_vectors else list_bits_plainly
# Copy found[start:start+n]: i4, after which LANES more can be read, to out: i4 from ``at`` on.
move_run = _move_run if has_vectors else move_run_plainly
