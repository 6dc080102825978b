"""Scratch: what a thread needs to match events against dense boxes, and how kernels get at it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numba import uint64 as u64

from tamis.kernels.bit_lines import MANY
from tamis.kernels.compiled import Array, inlined
from tamis.kernels.dense_build import (
    GROUP,
    LINE,
    N_BUCKETS,
    N_COARSE,
    N_RANKS,
    DensePart,
    n_group_words,
    row_words,
)
from tamis.kernels.keeping import LANES
from tamis.kernels.memory import aligned_zeros, f8_at, i4_at, i8_at, u1_at, u2_at, u4_at, u8_at

AT_ONCE = 3  # attributes that every line is ANDed with before it is asked how much is left
TOP_STEP = 32  # every so many edges one is a top: all tops stay in the cache
PLAN_MORE = AT_ONCE + 1  # attributes that a plan has beyond the last
CHUNK = 1024  # words whose bits are listed before they are verified, about
MANY_CANDIDATES = 64 * CHUNK + LINE  # of so many words


class Work(NamedTuple):
    """Scratch of one thread."""

    alive: Array  # u8[LW] bit l: line l may hold a match
    lines: Array  # u4[L + MANY] the numbers of those lines
    words: Array  # u8[L*8 + 8] the bits of the i-th of them
    left: Array  # u4[L + 1] which of them are ANDed still
    done: Array  # u4[L + 1] which of them are ready to be verified
    candidates: Array  # u4[MANY_CANDIDATES + LANES] positions
    ties: Array  # u4[MANY_CANDIDATES + CHUNK + LANES] positions
    plan: Array  # i8[5, M + PLAN_MORE]: see PLAN_*
    keys: Array  # u8[2*W] of the event, as dense_fit says
    tops: Array  # f8[M, 2048 / TOP_STEP] the last of every TOP_STEP edges
    full: Array  # u8[CHUNK + 8] words with a bit
    places: Array  # u8[CHUNK + 8] the positions of their first bits
    misfits: Array  # u1[MANY_CANDIDATES + LANES] of each candidate, as ``misfits_of`` tells them
    numbers: Array  # i4[MANY_CANDIDATES + LANES] the slot of each


# Rows of Work.plan; the last three by rank of the attribute, rarest first.
PLAN_BUCKET, PLAN_COARSE, PLAN_ORDER, PLAN_OFFSET, PLAN_NEED = range(5)


def new_work(part: DensePart) -> Work:
    """Scratch for one thread."""
    m = part.edges.shape[0]
    n_lines = -(-part.n // LINE)
    return Work(
        np.zeros(-(-n_lines // 64), np.uint64),
        np.zeros(n_lines + MANY, np.uint32),
        aligned_zeros(8 * n_lines + 8, np.uint64),
        np.zeros(n_lines + 1, np.uint32),
        np.zeros(n_lines + 1, np.uint32),
        np.empty(MANY_CANDIDATES + LANES, np.uint32),
        np.empty(MANY_CANDIDATES + CHUNK + LANES, np.uint32),
        np.zeros((5, m + PLAN_MORE), np.int64),
        np.zeros(2 * row_words(m), np.uint64),
        np.ascontiguousarray(part.edges[:, TOP_STEP - 1 :: TOP_STEP]),
        np.zeros(CHUNK + 8, np.uint64),
        np.zeros(CHUNK + 8, np.uint64),
        np.empty(MANY_CANDIDATES + LANES, np.uint8),
        np.empty(MANY_CANDIDATES + LANES, np.int32),
    )


def handle_of(part: DensePart, work: Work) -> Array:
    """i8[25]: sizes and addresses of part and work, which must outlive it.

    Handing over 18 arrays costs 5 us a call, one handle 0.4.
    """
    sizes = [part.n, part.edges.shape[0], len(work.keys) // 2]
    return np.array(sizes + [x.ctypes.data for x in [*part[1:], *work]], np.int64)


@inlined
def open_part(h):
    """The part behind a handle."""
    n, m, w = h[0], h[1], h[2]
    n_lines = (n + LINE - 1) // LINE
    return DensePart(
        n,
        carray(f8_at(h[3]), (n * m * 2,)),
        carray(f8_at(h[4]), (m, N_RANKS)),
        carray(u2_at(h[5]), (m, 2, N_RANKS)),
        carray(u1_at(h[6]), (m,)),
        carray(u8_at(h[7]), (n_lines * LINE * w,)),
        carray(u8_at(h[8]), ((n_lines + GROUP - 1) // GROUP * n_group_words(n, m),)),
        carray(u8_at(h[9]), (m, N_COARSE + 1, (n_lines + 63) // 64)),
        carray(i4_at(h[10]), (m, N_BUCKETS + 1)),
    )


@inlined
def open_work(h):
    """The scratch behind a handle."""
    n_lines = (h[0] + LINE - 1) // LINE
    return Work(
        carray(u8_at(h[11]), ((n_lines + 63) // 64,)),
        carray(u4_at(h[12]), (n_lines + MANY,)),
        carray(u8_at(h[13]), (8 * n_lines + 8,)),
        carray(u4_at(h[14]), (n_lines + 1,)),
        carray(u4_at(h[15]), (n_lines + 1,)),
        carray(u4_at(h[16]), (MANY_CANDIDATES + LANES,)),
        carray(u4_at(h[17]), (MANY_CANDIDATES + CHUNK + LANES,)),
        carray(i8_at(h[18]), (5, h[1] + PLAN_MORE)),
        carray(u8_at(h[19]), (2 * h[2],)),
        carray(f8_at(h[20]), (h[1], N_RANKS // TOP_STEP)),
        carray(u8_at(h[21]), (CHUNK + 8,)),
        carray(u8_at(h[22]), (CHUNK + 8,)),
        carray(u1_at(h[23]), (MANY_CANDIDATES + LANES,)),
        carray(i4_at(h[24]), (MANY_CANDIDATES + LANES,)),
    )


class Lines(NamedTuple):
    """What the steps over lines need: to open all for each step doubles the time of compiling."""

    pool: Array
    n_words: int  # u8, of all bitmaps of a group of lines
    alive: Array
    lines: Array
    words: Array
    left: Array
    done: Array
    plan: Array


class Rows(NamedTuple):
    """What the steps over candidates need."""

    rows: Array
    bounds: Array
    candidates: Array
    ties: Array
    keys: Array
    full: Array
    places: Array
    misfits: Array
    numbers: Array


@inlined
def open_lines(h):
    """The lines behind a handle."""
    n_lines = (h[0] + LINE - 1) // LINE
    return Lines(
        carray(u8_at(h[8]), ((n_lines + GROUP - 1) // GROUP * n_group_words(h[0], h[1]),)),
        u64(n_group_words(h[0], h[1])),
        carray(u8_at(h[11]), ((n_lines + 63) // 64,)),
        carray(u4_at(h[12]), (n_lines + MANY,)),
        carray(u8_at(h[13]), (8 * n_lines + 8,)),
        carray(u4_at(h[14]), (n_lines + 1,)),
        carray(u4_at(h[15]), (n_lines + 1,)),
        carray(i8_at(h[18]), (5, h[1] + PLAN_MORE)),
    )


@inlined
def open_rows(h):
    """The rows and candidates behind a handle."""
    n_lines = (h[0] + LINE - 1) // LINE
    return Rows(
        carray(u8_at(h[7]), (n_lines * LINE * h[2],)),
        carray(f8_at(h[3]), (h[0] * h[1] * 2,)),
        carray(u4_at(h[16]), (MANY_CANDIDATES + LANES,)),
        carray(u4_at(h[17]), (MANY_CANDIDATES + CHUNK + LANES,)),
        carray(u8_at(h[19]), (2 * h[2],)),
        carray(u8_at(h[21]), (CHUNK + 8,)),
        carray(u8_at(h[22]), (CHUNK + 8,)),
        carray(u1_at(h[23]), (MANY_CANDIDATES + LANES,)),
        carray(i4_at(h[24]), (MANY_CANDIDATES + LANES,)),
    )
