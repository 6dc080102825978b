"""Fit: which of the places that were kept an event really satisfies.

A record is compared by codes, all its constraints at once where the processor has AVX-512 and
the axes fit into registers; exact bounds are read only where a code ties.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba import uint64 as u64
from numba.extending import intrinsic

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.memory import prefetch_at
from tamis.kernels.sparse_build import AXIS_BITS, CODE_BITS, N_AXES, N_FIELDS
from tamis.kernels.sparse_vectors import LANES, TABLE, all_lanes, look_up
from tamis.kernels.vectors import declare, has_instructions

NO_FIT, TIE, FIT = 0, 1, 3


@inlined
def fit_plainly(record, at, n_fields, codes, axis_mask, low_at, width_at, mask):
    """``fit``, one constraint after another."""
    fits = np.int64(FIT)
    for x in range(at + u64(1), at + n_fields):
        item = record[x]
        held = np.int64(codes[item & axis_mask])
        low = np.int64((item >> low_at) & mask)
        high = low + np.int64((item >> width_at) & mask)
        tie = held & 1
        margin = min(held - tie - low, high - held + tie)  # from the nearer bound, twofold
        fits &= np.int64(margin >= 0) | np.int64(margin >= tie) << 1
    return fits


_I1, _I32, _I64 = (ir.IntType(n) for n in (1, 32, 64))
_VECTOR, _BITS = ir.VectorType(_I32, LANES), ir.VectorType(_I1, LANES)


@intrinsic
def _fit_vector(typingctx, record, at, n_fields, codes, axis_mask, low_at, width_at, mask):
    def codegen(context, builder, signature, args):
        record, at, n_fields, codes, *numbers = args
        pointer = _VECTOR.as_pointer()
        load = declare(
            builder, "llvm.masked.load.v16i32.p0", _VECTOR, [pointer, _I32, _BITS, _VECTOR]
        )
        lane = ir.Constant(_VECTOR, list(range(LANES)))
        n_lanes = all_lanes(builder, builder.trunc(n_fields, _I32))
        is_one = builder.and_(
            builder.icmp_unsigned("<", lane, n_lanes),
            ir.Constant(_BITS, [False] + [True] * (LANES - 1)),
        )
        place = builder.bitcast(builder.gep(record, [at]), pointer)
        item = builder.call(load, [place, _I32(4), is_one, _VECTOR(None)])
        axis_mask, low_at, width_at, mask = (
            all_lanes(builder, builder.trunc(number, _I32)) for number in numbers
        )
        held = look_up(builder, codes, builder.and_(item, axis_mask))
        tie = builder.and_(held, ir.Constant(_VECTOR, [1] * LANES))
        code = builder.sub(held, tie)
        low = builder.and_(builder.lshr(item, low_at), mask)
        width = builder.and_(builder.lshr(item, width_at), mask)
        above, below = builder.sub(code, low), builder.sub(builder.add(low, width), code)
        margin = builder.select(builder.icmp_signed("<", above, below), above, below)
        found = []
        for least in (_VECTOR(None), tie):
            is_less = builder.and_(builder.icmp_signed("<", margin, least), is_one)
            bits = builder.bitcast(is_less, ir.IntType(LANES))
            found.append(builder.zext(builder.icmp_unsigned("==", bits, bits.type(0)), _I64))
        return builder.or_(found[0], builder.shl(found[1], _I64(1)))

    u8 = types.uint64
    return types.int64(record, u8, u8, codes, u8, u8, u8, u8), codegen


# How an event fits the record from record[at] on: NO_FIT, TIE or FIT. ``codes``: i4[TABLE] at
# least, twice the event's code on an axis, and one more where equal codes may tie.
fit = _fit_vector if has_instructions("avx512f") else fit_plainly


@inlined
def record_masks(layout):
    """Of a record: how many fields, the mask of an axis, where low and width are, their mask.

    Low and width are twofold, as the codes that they are compared with.
    """
    axis_bits, code_bits = u64(layout[AXIS_BITS]), u64(layout[CODE_BITS])
    axis_mask, mask = (u64(1) << axis_bits) - u64(1), (u64(2) << code_bits) - u64(2)
    low_at = axis_bits - u64(1)
    return u64(layout[N_FIELDS]), axis_mask, low_at, low_at + code_bits, mask


@inlined
def fit_of(record, at, codes, masks, n_axes):
    """``fit``, by vectors where the axes fit into registers."""
    n_fields, axis_mask, low_at, width_at, mask = masks
    if n_axes + 2 <= TABLE:
        return fit(record, at, n_fields, codes, axis_mask, low_at, width_at, mask)
    return fit_plainly(record, at, n_fields, codes, axis_mask, low_at, width_at, mask)


@inlined
def ask_for_records(part, s, first, end):
    """Ask for the records of the kept places from first to end."""
    n_fields = part.layout[N_FIELDS]
    for i in range(first, end):
        at = n_fields * s.kept[i]
        prefetch_at(part.record, u64(at))
        prefetch_at(part.record, u64(at + n_fields - 1))


@inlined
def holds(constraints, event, slot):
    """Whether the event satisfies the exact bounds of a slot."""
    ok = True
    k, end = constraints.start[slot], constraints.start[slot + 1]
    while ok and k < end:
        x = event[u64(constraints.column[k])]
        ok = constraints.low[k] <= x and x <= constraints.high[k]
        k += 1
    return ok


@kernel
def check_records(part, constraints, s, event, first, last, out, n_out):
    """Append the slots of kept[first:last] that match to out; returns the new length."""
    masks, n_axes = record_masks(part.layout), part.layout[N_AXES]
    n_ties = 0
    for i in range(first, last):
        at = masks[0] * u64(s.kept[i])
        fits = fit_of(part.record, at, s.codes, masks, n_axes)
        slot = part.record[at]
        out[u64(n_out)] = slot
        n_out += fits == FIT
        s.tie[n_ties] = slot
        n_ties += fits == TIE
    for i in range(n_ties):
        out[u64(n_out)] = s.tie[i]
        n_out += holds(constraints, event, s.tie[i])
    return n_out
