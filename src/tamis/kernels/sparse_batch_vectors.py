"""What a batch does with the ranges of constraints, as vectors.

Indexes are u8 and unchecked. A row of bits is WORDS words, and begins on a cache line.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.bit_lines import LINE_OF_WORDS, place_of, store_line

WORDS = 16  # of a row of bits: two lines

_I64 = ir.IntType(64)


@intrinsic
def and_ranges(typingctx, ranges, at, n, below, words, i):
    """Who is in all of n ranges, a bit each: to words[i:i+WORDS]; returns whether anybody is.

    In a range are those of row e of ``below`` less those of row b, where b and e are the two
    numbers at ranges[at], ranges[at + 2] and so on.
    """

    def codegen(context, builder, signature, args):
        ranges, at, n, below, words, i = args
        kinds = signature.args
        numbers = context.make_array(kinds[0])(context, builder, ranges).data
        left = [cgutils.alloca_once(builder, LINE_OF_WORDS) for _ in range(0, WORDS, 8)]
        for one in left:
            builder.store(ir.Constant(LINE_OF_WORDS, [-1] * 8), one)

        def row_at(place):
            number = builder.zext(builder.load(builder.gep(numbers, [place])), _I64)
            start = builder.mul(number, _I64(WORDS))
            for w in range(0, WORDS, 8):
                first = builder.add(start, _I64(w))
                line = place_of(context, builder, kinds[3], below, first, LINE_OF_WORDS)
                yield builder.load(line, align=64)

        with cgutils.for_range_slice(builder, _I64(0), n, _I64(1), _I64) as (x, _):
            place = builder.add(at, builder.shl(x, _I64(1)))
            begins, ends = row_at(place), row_at(builder.add(place, _I64(1)))
            for one, begin, end in zip(left, begins, ends, strict=True):
                between = builder.and_(end, builder.not_(begin))
                builder.store(builder.and_(builder.load(one), between), one)
        is_any = _I64(0)
        for w, one in zip(range(0, WORDS, 8), left, strict=True):
            to = builder.add(i, _I64(w))
            stored = store_line(context, builder, kinds[4], builder.load(one), words, to)
            is_any = builder.or_(is_any, stored)
        return is_any

    u8 = types.uint64
    return u8(ranges, u8, u8, below, words, u8), codegen
