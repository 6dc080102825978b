"""Dense boxes, built: an immutable, exact index of boxes that all constrain the same columns.

Boxes are put in k-d order and cut into lines of 512 positions. Per attribute and bucket of values
a bitmap says which boxes touch the bucket, so one cache line of bits tells 512 boxes apart. All
bitmaps of a group of two lines lie one after another: a batch reads them in one go. How an event
is matched is told in ``dense_match``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.bits import popcount
from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.kd_order import kd_order
from tamis.kernels.memory import aligned_zeros

LINE = 512  # positions in a line: one cache line of bits
GROUP = 2  # lines whose bitmaps lie together; in a batch they leave room in the cache
N_RANKS = 2048  # a value's rank among an attribute's edges: 1..2045; 0 = unconstrained
N_CODES = 1024  # a bound's code among the edges of its own side: 1..1023; 0 = unconstrained
FIELD_BITS = 11  # code and guard bit
FIELDS = 5  # fields in a word of a row; the 9 bits above hold the slot, a byte a word
GUARD = sum(1 << (FIELD_BITS * k + FIELD_BITS - 1) for k in range(FIELDS))
N_BUCKETS = 40  # of an attribute's values, each with a bitmap over positions
N_COARSE = 128  # buckets of the bitmaps over lines


class DensePart(NamedTuple):
    """N boxes, M attributes, L lines, B = N_BUCKETS, C = N_COARSE, W words a row.

    LW = ceil(L / 64) is the words of a bitmap over lines, G = ceil(L / GROUP) the groups of lines,
    MW = 8 * min(L, GROUP) the words of a bitmap in a group. Position p is bit p % 512 of line
    p // 512; slots are the caller's.

    bounds: f8[N*M*2]       by slot, attribute, side; closed ends; NaN where unconstrained
    edges:  f8[M, 2048]     ascending, may repeat, NaN at the end; rank(v) = 1 + edges <= v
    codes:  u2[M, 2, 2048]  rank -> code(low), 1024 - code(high) of that value
    slack:  u1[M]           0: equal codes mean that the bound holds; 1: look at the bound
    rows:   u8[L*512*W]     by position: field 2a = code(low), 2a+1 = 1024 - code(high);
                            the slot in the top bytes
    pool:   u8[G*M*(B+1)*MW] by group, attribute, bucket and line: the box at a position
                            touches the bucket; b = B: it accepts missing
    coarse: u8[M, C+1, LW]  bit l of (a, c): a box of line l touches coarse bucket c;
                            c = C: missing
    counts: i4[M, B+1]      boxes that touch the bucket
    """

    n: int
    bounds: Array
    edges: Array
    codes: Array
    slack: Array
    rows: Array
    pool: Array
    coarse: Array
    counts: Array


def row_words(m):
    """Words of a row: five fields each, and at least four, whose top bytes hold the slot."""
    return max(4, -(-2 * m // FIELDS))


def _side_edges(values, n_edges):
    """n_edges cut points for one side of one attribute, and whether they tell all values apart."""
    few = _finite(values[:4096])
    if 2 * len(np.unique(few)) <= n_edges:
        few = np.unique(_finite(values))
        if 2 * len(few) <= n_edges:
            if len(few) == 0:
                few = np.zeros(1)
            with np.errstate(over="ignore"):  # the float64 after the largest is infinity
                cuts = np.unique(np.concatenate([few, np.nextafter(few, np.inf)]))
            return cuts[np.arange(n_edges) * len(cuts) // n_edges], True
    sample = _finite(values[:: max(1, len(values) // 65536)])
    if len(sample) < n_edges:
        sample = _finite(values)
    sample.sort()
    return sample[np.arange(1, n_edges + 1) * len(sample) // (n_edges + 1)], False


def _finite(values):
    return values[np.isfinite(values)]


def _tables_of(low, high):
    """edges, codes and slack of one attribute. -inf and +inf have codes of their own."""
    ends = np.array([-np.finfo(float).max, np.inf])
    sides = [_side_edges(x, N_CODES - 4) for x in (low, high)]
    edges = np.full(N_RANKS, np.nan)
    both = np.sort(np.concatenate([ends, sides[0][0], sides[1][0]]))
    edges[: len(both)] = both
    first = np.concatenate([[-np.inf], both])  # the smallest value of rank r is first[r - 1]
    codes = np.zeros((2, N_RANKS), np.uint16)
    for side in range(2):
        own = np.sort(np.concatenate([ends, sides[side][0]]))
        code = 1 + np.searchsorted(own, first, side="right")
        codes[side, 1 : 1 + len(first)] = N_CODES - code if side else code
    return edges, codes, not (sides[0][1] and sides[1][1])


@kernel
def rank_of(edges, a, v):
    """1 + number of edges of attribute a that are <= v; v is not NaN."""
    k = 0
    step = N_RANKS >> 1
    while step:
        k += step if edges[a, k + step - 1] <= v else 0
        step >>= 1
    return 1 + k


@kernel
def rank_bounds(low, high, edges, ranks):
    """Write ``ranks``: u2[N, 2M], rank(low) and 2048 - rank(high): small means wide, 0 free."""
    for i in range(low.shape[0]):
        for a in range(low.shape[1]):
            lo, hi = low[i, a], high[i, a]
            if np.isnan(lo) and np.isnan(hi):
                ranks[i, 2 * a] = ranks[i, 2 * a + 1] = 0
            else:
                ranks[i, 2 * a] = rank_of(edges, a, -np.inf if np.isnan(lo) else lo)
                ranks[i, 2 * a + 1] = N_RANKS - rank_of(edges, a, np.inf if np.isnan(hi) else hi)


@kernel
def fill_rows(ranks, codes, order, n_words, rows):
    """Write ``rows``: u8[len(order) * W], from zeros. O(N x M)."""
    for p in range(len(order)):
        slot = order[p]
        for f in range(ranks.shape[1]):
            rank = np.int64(ranks[slot, f])
            if rank:
                code = codes[f >> 1, f & 1, N_RANKS - rank if f & 1 else rank]
                rows[p * n_words + f // FIELDS] |= u64(code) << u64(f % FIELDS * FIELD_BITS)
        for b in range(4):
            rows[p * n_words + b] |= (u64(slot) >> u64(8 * b)) << u64(56)


@inlined
def n_map_words(n):
    """Words of a bitmap in a group of lines, of n boxes."""
    return min(GROUP, (n + LINE - 1) // LINE) * 8


@inlined
def n_group_words(n, m):
    """Words of all bitmaps of a group of lines, of n boxes with m attributes."""
    return m * (N_BUCKETS + 1) * n_map_words(n)


@inlined
def place_of_line(line, n_words):
    """Where a line begins in the first bitmap of its group, whose bitmaps are n_words: u8."""
    return u64(line) // u64(GROUP) * n_words + u64(line) % u64(GROUP) * u64(8)


@kernel
def bucket_of(rank, n_buckets):
    """The bucket of a rank."""
    return (rank * n_buckets) // N_RANKS


@kernel
def fill_pool(ranks, order, pool, coarse, counts):
    """Fill the bitmaps, from zeros.

    ``pool``: u8[G, M*(B+1), MW]; ``coarse``: u8[M, C+1, LW]; ``counts``: i4[M, B+1]. O(N x M).
    """
    n = len(order)
    starts = np.zeros((N_BUCKETS, 8), np.uint64)
    ends = np.zeros((N_BUCKETS, 8), np.uint64)
    free = np.zeros(8, np.uint64)
    on = np.zeros(8, np.uint64)
    wide = np.zeros(N_COARSE + 1, np.int64)
    for first in range(0, n, LINE):
        line = first // LINE
        line_bit = u64(1) << u64(line & 63)
        own, place = pool[line // GROUP], line % GROUP * 8
        for a in range(coarse.shape[0]):
            starts[:] = u64(0)
            ends[:] = u64(0)
            free[:] = u64(0)
            wide[:] = 0
            for p in range(first, min(n, first + LINE)):
                slot = order[p]
                w, bit = (p >> 6) & 7, u64(1) << u64(p & 63)
                lo, hi = np.int64(ranks[slot, 2 * a]), N_RANKS - np.int64(ranks[slot, 2 * a + 1])
                if lo == 0:
                    free[w] |= bit
                elif lo <= hi:
                    starts[bucket_of(lo, N_BUCKETS), w] |= bit
                    ends[bucket_of(hi, N_BUCKETS), w] |= bit
                    wide[bucket_of(lo, N_COARSE)] += 1
                    wide[bucket_of(hi, N_COARSE) + 1] -= 1
            any_free = u64(0)
            for w in range(8):
                any_free |= free[w]
                on[w] = free[w]
                own[a * (N_BUCKETS + 1) + N_BUCKETS, place + w] = free[w]
                counts[a, N_BUCKETS] += np.int64(popcount(free[w]))
            for b in range(N_BUCKETS):
                for w in range(8):
                    on[w] |= starts[b, w]
                    own[a * (N_BUCKETS + 1) + b, place + w] = on[w]
                    counts[a, b] += np.int64(popcount(on[w]))
                    on[w] &= ~ends[b, w]
            depth = 0
            for c in range(N_COARSE + 1):
                depth += wide[c]
                if any_free or (depth and c < N_COARSE):
                    coarse[a, c, line >> 6] |= line_bit


def build(bounds: Array) -> DensePart:
    """The part of the boxes ``bounds``: f8[N, M, 2], low and high, which it shares.

    Slots are row numbers. O(N x (M + log N)).
    """
    n, m = bounds.shape[:2]
    low, high = bounds[:, :, 0], bounds[:, :, 1]
    tables = [_tables_of(low[:, a], high[:, a]) for a in range(m)]
    edges = np.ascontiguousarray([t[0] for t in tables])
    codes = np.ascontiguousarray([t[1] for t in tables])
    slack = np.array([t[2] for t in tables], np.uint8)
    ranks = np.empty((n, 2 * m), np.uint16)
    rank_bounds(low, high, edges, ranks)
    order = np.arange(n, dtype=np.int32)
    kd_order(ranks, N_RANKS, LINE, order)
    n_lines, w = -(-n // LINE), row_words(m)
    rows = aligned_zeros(n_lines * LINE * w, np.uint64)
    fill_rows(ranks, codes, order, w, rows)
    pool = aligned_zeros((-(-n_lines // GROUP), m * (N_BUCKETS + 1), n_map_words(n)), np.uint64)
    coarse = np.zeros((m, N_COARSE + 1, -(-n_lines // 64)), np.uint64)
    counts = np.zeros((m, N_BUCKETS + 1), np.int32)
    fill_pool(ranks, order, pool, coarse, counts)
    return DensePart(
        n, bounds.reshape(-1), edges, codes, slack, rows, pool.reshape(-1), coarse, counts
    )
