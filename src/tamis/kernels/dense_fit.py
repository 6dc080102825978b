"""Dense boxes, fit: whether a row of codes fits an event, and which codes do not tell.

An event has two keys for each of the W words of a row, 2 W in all: the first four "possible", the
first four "certain", then the rest of each. A key holds 1023 less the event's codes, so that its
sum with a word has the guard bit of a field set where the row's code is more than the event's.
What fits by "possible" and not by "certain" ties: only the exact bounds decide it.

Indexes are u8 and unchecked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic

from tamis.kernels.bit_lines import LINE_OF_WORDS, place_of
from tamis.kernels.compiled import inlined
from tamis.kernels.dense_build import FIELD_BITS, FIELDS, GUARD

WORDS_OF_BITS = FIELD_BITS  # words of which no two fields have the same one of ``tied_bits``

_I8, _I32, _I64 = (ir.IntType(n) for n in (8, 32, 64))
_ROW_OF_WORDS = ir.VectorType(_I64, 4)


@inlined
def possible_key(w, n_words):
    """Where the "possible" key for word w of a row is, of n_words."""
    return w + (u64(0) if w < u64(4) else u64(4))


@inlined
def certain_key(w, n_words):
    """Where the "certain" key for word w of a row is, of n_words."""
    return w + (u64(4) if w < u64(4) else u64(n_words))


@intrinsic
def misfits_of(typingctx, rows, p, keys, k):
    """Which of rows[p:p+4] do not fit the keys from k on: bits 0-3 "possible", 4-7 "certain"."""

    def codegen(context, builder, signature, args):
        kinds = signature.args
        place = place_of(context, builder, kinds[0], args[0], args[1], _ROW_OF_WORDS)
        row = builder.load(place, align=8)
        place = place_of(context, builder, kinds[2], args[2], args[3], LINE_OF_WORDS)
        lanes = ir.Constant(ir.VectorType(_I32, 8), [0, 1, 2, 3] * 2)
        added = builder.add(builder.shuffle_vector(row, row, lanes), builder.load(place, align=8))
        over = builder.and_(added, ir.Constant(LINE_OF_WORDS, [GUARD] * 8))
        is_over = builder.icmp_unsigned("!=", over, ir.Constant(LINE_OF_WORDS, [0] * 8))
        return builder.zext(builder.bitcast(is_over, _I8), _I64)

    u8 = types.uint64
    return u8(rows, u8, keys, u8), codegen


@inlined
def misfits_beyond(rows, p, keys, k, n_words):
    """``misfits_of`` the words of a row after the fourth: bit 0 "possible", bit 4 "certain"."""
    possible = certain = u64(0)
    for w in range(u64(4), n_words):
        possible |= rows[p + w] + keys[k + possible_key(w, n_words)]
        certain |= rows[p + w] + keys[k + certain_key(w, n_words)]
    return u64(possible & u64(GUARD) != u64(0)) | u64(certain & u64(GUARD) != u64(0)) << u64(4)


@inlined
def tied_bits(rows, p, keys, k, n_words, w):
    """A bit for each field that ties, of WORDS_OF_BITS words of a row from w on, at most.

    One loop over bits, mostly one, is quicker than a loop over the fields of each word, whose ends
    nobody foresees.
    """
    bits = u64(0)
    for i in range(min(u64(WORDS_OF_BITS), n_words - w)):
        over = rows[p + w + i] + keys[k + certain_key(w + i, n_words)]
        bits |= (over & u64(GUARD)) >> i
    return bits


@inlined
def field_of(bits, w):
    """The field that the lowest of ``tied_bits`` is of."""
    at = u64(trailing_zeros(bits))
    word = w + u64(FIELD_BITS - 1) - at % u64(FIELD_BITS)
    return word * u64(FIELDS) + at // u64(FIELD_BITS)


@intrinsic
def slot_in(typingctx, rows, p):
    """The slot in the top bytes of the four words of a row, the least byte first."""

    def codegen(context, builder, signature, args):
        bytes_of_row = ir.VectorType(_I8, 32)
        place = place_of(context, builder, signature.args[0], args[0], args[1], bytes_of_row)
        row = builder.load(place, align=8)
        top = ir.Constant(ir.VectorType(_I32, 4), [7, 15, 23, 31])
        return builder.bitcast(builder.shuffle_vector(row, row, top), _I32)

    return types.int32(rows, types.uint64), codegen
