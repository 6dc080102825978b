"""Lines of bits as vectors: storing one, and listing the bits of many.

With AVX-512 the bits of a word are listed in a few instructions whatever their number. Without
it the same is done bit by bit. Indexes are u8 and unchecked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic

from tamis.kernels.compiled import inlined
from tamis.kernels.vectors import declare, has_instructions, in_all_lanes

LANES = 16  # numbers of 32 bits that are written at once
MANY = 64  # places that ``list_bits`` may write

_I1, _I8, _I32, _I64 = (ir.IntType(n) for n in (1, 8, 32, 64))
_NUMBERS = ir.VectorType(_I32, LANES)
_BYTES, _BYTE_BITS = (ir.VectorType(kind, MANY) for kind in (_I8, _I1))
LINE_OF_WORDS = ir.VectorType(_I64, 8)


def place_of(context, builder, kind, array, index, vector):
    """Where a vector begins at array[index]."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def store_line(context, builder, kind, line, words, i):
    """Store a line in words[i:i+8]; whether a bit is set."""
    builder.store(line, place_of(context, builder, kind, words, i, LINE_OF_WORDS), align=8)
    is_set = builder.icmp_unsigned("!=", line, ir.Constant(LINE_OF_WORDS, [0] * 8))
    is_any = builder.icmp_unsigned("!=", builder.bitcast(is_set, _I8), _I8(0))
    return builder.zext(is_any, _I64)


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
            in_all_lanes(builder, LINE_OF_WORDS, base),
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
        bases = in_all_lanes(builder, _NUMBERS, builder.trunc(base, _I32))

        def put(first):
            lanes = ir.Constant(_NUMBERS, list(range(first, first + LANES)))
            some = builder.zext(builder.shuffle_vector(bits, bits, lanes), _NUMBERS)
            at = builder.add(k, _I64(first))
            place = place_of(context, builder, signature.args[2], out, at, _NUMBERS)
            builder.store(builder.add(some, bases), place, align=4)

        put(0)
        with builder.if_then(builder.icmp_unsigned(">", n_bits, _I64(LANES)), likely=False):
            for first in range(LANES, MANY, LANES):
                put(first)
        return builder.add(k, n_bits)

    u8 = types.uint64
    return u8(u8, u8, out, u8), codegen


has_vectors = has_instructions("avx512f", "avx512bw", "avx512vl", "avx512vbmi2")
# Append those of words[i:i+8] that are not zero to full: u8 from k on, and base + 64 w to
# places: u8 for the w-th; both have room for eight. Returns the new k.
list_words = _list_words if has_vectors else list_words_plainly
# Append base + b for each bit b of a word to out: u4 from k on, which has room for MANY; returns
# the new k.
list_bits = _list_bits if has_vectors else list_bits_plainly
