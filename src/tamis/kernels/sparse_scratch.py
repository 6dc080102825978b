"""Scratch: what a thread needs to match events, and how kernels get at it.

Kernels see all arrays through pointers, which index like flat arrays, know no size and cost
nothing to hand on. Without the compiler, the same kernels work on the arrays themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, kernel
from tamis.kernels.memory import f8_at, i4_at, i8_at, u1_at, u4_at, u8_at
from tamis.kernels.scan import Constraints
from tamis.kernels.sparse_build import SparsePart
from tamis.kernels.sparse_groups import N_BUCKETS
from tamis.kernels.sparse_strip_tests import ANYTHING, MAX_RUN, MISSING, N_MARKS
from tamis.kernels.sparse_vectors import LANES, TABLE

CHUNK = 512  # words ANDed at once
ROOM = 4 * CHUNK * 64  # places decided at once
NO_MASS = 1 << 30  # of a missing value
NOTHING = 1 << 30  # its codes and rough mass: more than any width above any low


class Scratch(NamedTuple):
    """Of one thread. Between events, what there is of an event is "missing" everywhere."""

    present: Array  # i4[M + 1], axes on which the event has a value
    codes: Array  # i4[M + 2], at least TABLE: twice the code, one more where equal codes may tie
    mass: Array  # i4[M]
    rough: Array  # u4[M + 2], at least TABLE: mass at the precision of a test
    line: Array  # u4[M + 1], first word of the event's line
    table: Array  # u1[N_MARKS], see sparse_strip_tests
    cell: Array  # i4[M], see sparse_axes; only where present
    value: Array  # f8[M], the same
    value_bits: Array  # u8[M], the same
    place_span: Array  # i4[2S], places to scan: first, end
    word: Array  # i4[2W + 1], words to AND
    aim: Array  # u4[4 CHUNK], a word: where it is in three lines, the place of its bit 0
    bits: Array  # u8[CHUNK + 1], words with a bit left
    base: Array  # i4[CHUNK + 1], places of their bits 0
    candidate: Array  # i4[64 CHUNK + 4], places of their bits
    test: Array  # u4[64 CHUNK + LANES], their tests
    block: Array  # i4[B + MAX_RUN], blocks of strips
    kept: Array  # i4[ROOM + LANES], places whose test holds
    tie: Array  # i4[ROOM + 1], slots whose exact bounds are to be asked


def new_scratch(part: SparsePart) -> Scratch:
    """Scratch for one thread."""
    m, n_spans = len(part.columns), 4 * (len(part.kind) // 5) + 2
    n = max(m + 2, TABLE)
    codes, rough = np.zeros(n, np.int32), np.zeros(n, np.uint32)
    codes[:m] = rough[:m] = NOTHING
    codes[m + 1] = 1  # ties with a low of 0
    line = part.line_start + N_BUCKETS * part.line_length
    line[m] = 0
    value, table = np.zeros(m), np.full(N_MARKS, MISSING, np.uint8)
    table[ANYTHING % N_MARKS] = 0
    return Scratch(
        np.empty(m + 1, np.int32),
        codes,
        np.full(m, NO_MASS, np.int32),
        rough,
        line.astype(np.uint32),
        table,
        np.empty(m, np.int32),
        value,
        value.view(np.uint64),
        np.empty(2 * n_spans, np.int32),
        np.empty(2 * len(part.reach) + 1, np.int32),
        np.empty(4 * CHUNK, np.uint32),
        np.empty(CHUNK + 1, np.uint64),
        np.empty(CHUNK + 1, np.int32),
        np.empty(64 * CHUNK + 4, np.int32),
        np.empty(64 * CHUNK + LANES, np.uint32),
        np.empty(part.strip[-3] + MAX_RUN, np.int32),
        np.empty(ROOM + LANES, np.int32),
        np.empty(ROOM + 1, np.int32),
    )


def handle_of(part: SparsePart, constraints: Constraints, scratch: Scratch) -> Array:
    """i8[..]: the number of slots, then the addresses of all arrays, which must outlive it.

    Handing over 45 arrays costs 8 us a call, one handle 0.4; and arrays that are mapped and
    read-only are of no other type.
    """
    arrays = (*part, *constraints, *scratch)
    n_slots = len(constraints.start) - 1
    return np.array([n_slots] + [array.ctypes.data for array in arrays], np.int64)


@kernel
def open_handle(h):
    """The part, constraints and scratch behind a handle, as pointers."""
    part = SparsePart(
        i8_at(h[1]), i4_at(h[2]), i8_at(h[3]), f8_at(h[4]), i4_at(h[5]), f8_at(h[6]),
        i4_at(h[7]), u1_at(h[8]), u1_at(h[9]), u1_at(h[10]), i4_at(h[11]), i4_at(h[12]),
        i4_at(h[13]), u8_at(h[14]), i4_at(h[15]), i4_at(h[16]), i4_at(h[17]), i4_at(h[18]),
        i4_at(h[19]), i4_at(h[20]), u1_at(h[21]), u1_at(h[22]), u1_at(h[23]), i8_at(h[24]),
        i8_at(h[25]), u8_at(h[26]), u4_at(h[27]), u8_at(h[28]), u4_at(h[29]), u4_at(h[30]),
    )  # fmt: skip
    constraints = Constraints(
        i8_at(h[31]), i4_at(h[32]), f8_at(h[33]), f8_at(h[34]),
    )  # fmt: skip
    scratch = Scratch(
        i4_at(h[35]), i4_at(h[36]), i4_at(h[37]), u4_at(h[38]), u4_at(h[39]), u1_at(h[40]),
        i4_at(h[41]), f8_at(h[42]), u8_at(h[43]), i4_at(h[44]), i4_at(h[45]), u4_at(h[46]),
        u8_at(h[47]), i4_at(h[48]), i4_at(h[49]), u4_at(h[50]), i4_at(h[51]), i4_at(h[52]),
        i4_at(h[53]),
    )  # fmt: skip
    return part, constraints, scratch
