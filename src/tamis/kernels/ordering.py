"""Ordering: rows that were found, highest priority first.

Of each level in turn the rows that have it are picked out: with AVX-512 sixteen rows in a few
instructions, which takes a fifth of counting the levels and putting each row into its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba import uint64 as u64
from numba.core import cgutils
from numba.extending import intrinsic

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.memory import i4_at, i8_at, prefetch
from tamis.kernels.sparse_vectors import LANES, all_lanes
from tamis.kernels.vectors import declare, has_instructions

N_PRIORITIES = 10

_I1, _I8, _I32, _I64 = (ir.IntType(n) for n in (1, 8, 32, 64))
_ROWS, _LEVELS, _BITS = (ir.VectorType(kind, LANES) for kind in (_I32, _I8, _I1))


@inlined
def append_level_plainly(rows, levels, first, last, level, ordered, n):
    """``append_level``, one after another."""
    for i in range(first, last):
        ordered[n] = rows[i]
        n += levels[i] == level
    return n


def _first_lanes(builder, count):
    """The first so many lanes, at least none; ``count`` is signed."""
    n_lanes = all_lanes(builder, builder.trunc(count, _I32))
    return builder.icmp_signed("<", ir.Constant(_ROWS, list(range(LANES))), n_lanes)


def _load(builder, pointer, index, kind, is_there):
    """Some of LANES elements from an index on; 0 where none is there."""
    name = f"llvm.masked.load.v{LANES}i{kind.element.width}.p0"
    load = declare(builder, name, kind, [kind.as_pointer(), _I32, _BITS, kind])
    place = builder.bitcast(builder.gep(pointer, [index]), kind.as_pointer())
    return builder.call(load, [place, _I32(kind.element.width // 8), is_there, kind(None)])


@intrinsic
def _append_vectors(typingctx, rows, levels, first, last, level, ordered, n):
    def codegen(context, builder, signature, args):
        kinds = signature.args
        rows, levels, ordered = (
            context.make_array(kinds[i])(context, builder, args[i]).data for i in (0, 1, 5)
        )
        squeeze = declare(
            builder, "llvm.x86.avx512.mask.compress.v16i32", _ROWS, [_ROWS, _ROWS, _BITS]
        )
        store = declare(
            builder, "llvm.masked.store.v16i32.p0", ir.VoidType(),
            [_ROWS, _ROWS.as_pointer(), _I32, _BITS],
        )  # fmt: skip
        count = declare(builder, "llvm.ctpop.i64", _I64, [_I64])
        one = builder.insert_element(ir.Constant(_LEVELS, ir.Undefined), args[4], _I32(0))
        wanted = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_I32, LANES), [0] * 16))
        n = cgutils.alloca_once_value(builder, args[6])
        with cgutils.for_range_slice(builder, args[2], args[3], _I64(LANES), _I64) as (at, _):
            is_there = _first_lanes(builder, builder.sub(args[3], at))
            held = _load(builder, levels, at, _LEVELS, is_there)
            is_wanted = builder.and_(is_there, builder.icmp_unsigned("==", held, wanted))
            some = _load(builder, rows, at, _ROWS, is_there)
            squeezed = builder.call(squeeze, [some, _ROWS(None), is_wanted])
            bits = builder.zext(builder.bitcast(is_wanted, ir.IntType(LANES)), _I64)
            n_wanted, before = builder.call(count, [bits]), builder.load(n)
            place = builder.bitcast(builder.gep(ordered, [before]), _ROWS.as_pointer())
            builder.call(store, [squeezed, place, _I32(4), _first_lanes(builder, n_wanted)])
            builder.store(builder.add(before, n_wanted), n)
        return builder.load(n)

    i8 = types.int64
    return i8(rows, levels, i8, i8, types.uint8, ordered, i8), codegen


# Append those of rows[first:last]: i4 that have a level, as levels: u1 tells, to ordered: i4 from n
# on, which has room for one more; returns the new n.
has_vectors = has_instructions("avx512f", "avx512bw", "avx512vl")
append_level = _append_vectors if has_vectors else append_level_plainly


@kernel
def levels_of(rows, n_rows, priority, levels):
    """Write the priority of each of the first rows to levels: u1[n_rows]. O(n)."""
    for i in range(n_rows):
        prefetch(priority, u64(rows[i]))
    for i in range(n_rows):
        levels[i] = priority[u64(rows[i])]


@kernel
def order_by_priority(rows, n_rows, priority, ordered):
    """Write ``rows`` by ascending priority number, keeping their order, to ordered: i4[n_rows + 1].

    O(n).
    """
    levels = np.empty(n_rows, np.uint8)
    levels_of(rows, n_rows, priority, levels)
    n = np.int64(0)
    for level in range(N_PRIORITIES):
        n = append_level(rows, levels, np.int64(0), n_rows, np.uint8(level), ordered, n)


@kernel
def order_events(rows, offsets, priority, ordered):
    """``order_by_priority`` for the rows of each of some events.

    Event e has rows[offsets[e]:offsets[e + 1]]. ``ordered``: i4[rows + 1]. O(rows + E x levels).
    """
    levels = np.empty(rows.size, np.uint8)
    levels_of(rows, rows.size, priority, levels)
    n = np.int64(0)
    for e in range(offsets.size - 1):
        for level in range(N_PRIORITIES):
            n = append_level(rows, levels, offsets[e], offsets[e + 1], np.uint8(level), ordered, n)


def handle_of_parts(parts: Sequence[tuple[Array, Array]]) -> Array:
    """i8[B, 3]: of parts, each rows and their offsets, the addresses and how many rows there are.

    The parts must outlive it. A tuple of their arrays would be a type of its own for each number
    of parts.
    """
    held = [(rows.ctypes.data, offsets.ctypes.data, len(rows)) for rows, offsets in parts]
    return np.array(held, np.int64)


@kernel
def join(parts, rows, offsets):
    """Put together what several parts found, event by event, in the order of the parts.

    ``parts``: their handle; of part b, event e has ``b.rows[b.offsets[e]:b.offsets[e + 1]]``.
    Writes rows: i4[...] and offsets: i8[E + 1]. O(rows + E x B).
    """
    n = u64(0)
    for e in range(u64(offsets.size - 1)):
        for b in range(u64(len(parts))):
            found = carray(i4_at(parts[b, 0]), (parts[b, 2],))
            bounds = carray(i8_at(parts[b, 1]), (offsets.size,))
            first, n_found = u64(bounds[e]), u64(bounds[e + u64(1)] - bounds[e])
            for i in range(n_found):
                rows[n + i] = found[first + i]
            n += n_found
        offsets[e + u64(1)] = n
