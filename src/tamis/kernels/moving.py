"""Moving: subscriptions found by their places, which change all the time.

A *mover* is a subscription with a place; what else it asks for does not change. An *entry* says
that a mover is at a place from one version on, until another: a move writes a new entry and lets
the old one end. Entries stand in three parts:

- the base: all there were at some moment, by cell (``moving_cells``); only their ends change,
- two deltas: entries in lists by the hash of their cell, appended while others read. One grows,
  the other, if there is one, is being merged into a new base.

Nothing a reader looks at is changed in a way that it can see: an entry is linked after it is
whole, ends are single stores of 8 bytes, and what begins or ends later than the reader's version
is no matter to it. Kernels get at everything through one handle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.hint_vectors import HINT
from tamis.kernels.memory import (
    f4_at,
    f8_at,
    i4_at,
    i8_at,
    store_release,
    u1_at,
    u2_at,
)
from tamis.kernels.moving_cells import COARSE, EARTH_RADIUS_M, N_LEVELS, key_at, spread_of
from tamis.kernels.tests import Tests

# Of a card: what a mover is, in i4. Most have one slot without tests: then FIRST and N_OWN are of
# its terms, otherwise of the slots. KIND is made of the bits below, and of the level above them.
ROW, FIRST, N_OWN, KIND = range(4)
CARD = 4
IS_JUDGED, IS_SQUARE, LEVEL_SHIFT = 1, 2, 2
TERM = 3  # column, low, high
KEEN, REST = 1, 2  # how many hints an entry has for a first look, and for a second one
NO_COLUMN = 65_535  # hints know the columns below it
NO_VALUE = 65_535  # the code of NaN, above all others
RUN = 3
MAX_RUNS = 16 * N_LEVELS  # of a level five or six bands, of two runs of cells each
CHAIN, MAX_CHAINS = 2, 256  # that are followed at once
LINK = 2  # a cell and the next entry, which are needed together
BOX = 4  # west, east, south, north

NEVER = np.int64(2**62)  # the end of an entry that has none
FENCE = 16  # keys of two cache lines
BASE = 0  # the part; the deltas are 1 and 2
PART_BITS = 2  # of the code of an entry: its part, and above its number there


class Movers(NamedTuple):
    """What M movers ask for beside their place, appended to."""

    card: Array  # i4[M x CARD], by ascending row
    radius_m: Array  # f8[M]
    slots: Array  # i4[S x 2], first term and number of terms, of those who are judged
    terms: Array  # f8[K x TERM]
    tests: Tests  # of the slots


class Entries(NamedTuple):
    """Where movers are, or were."""

    box: Array  # f4[N x BOX], holds the area; may go beyond 180 degrees
    lon: Array  # f8[N]
    lat: Array  # f8[N]
    death: Array  # i8[N], the version from which on it is not there
    mover: Array  # i4[N]
    keen: Array  # u2[N x KEEN x HINT], what the mover asks for, roughly
    rest: Array  # u2[N x REST x HINT], the same


class Base(NamedTuple):
    """Entries by cell: those of key[c] are first[c] to first[c + 1]."""

    fence: Array  # i8[C / FENCE + 1], every FENCE-th key
    key: Array  # i8[C], ascending
    first: Array  # i4[C + 1], ascending
    entries: Entries


class Delta(NamedTuple):
    """Entries in lists, each by the hash of a cell, the newest first."""

    head: Array  # i4[H], one more than the first entry, or 0; H is a power of two
    link: Array  # i8[N x LINK], the cell, and one more than the next entry, or 0
    birth: Array  # i8[N], the version from which on it is there
    entries: Entries


class Work(NamedTuple):
    """Of one thread, with room for all entries."""

    rough: Array  # u2[NO_COLUMN + 1], the codes of the event's values; 0 at its end
    run: Array  # i8[RUN x MAX_RUNS], neighbouring cells to look at: first and last key, fence
    span: Array  # i4[2 x MAX_RUNS], the entries of the base that are there: first, end
    chain: Array  # i8[CHAIN x MAX_CHAINS], lists of a delta: the cell, and where to look next
    code: Array  # i8[N + 1], candidates
    mover: Array  # i4[N + 1]
    asked: Array  # i8[N + 1], how many entries only the filter can decide, then their codes


def new_work(n_entries: int) -> tuple[Work, Array]:
    """Scratch for a thread, and its handle: i8[..], the addresses."""
    work = Work(
        np.zeros(NO_COLUMN + 1, np.uint16),
        np.empty(RUN * MAX_RUNS, np.int64),
        np.empty(2 * MAX_RUNS, np.int32),
        np.empty(CHAIN * MAX_CHAINS, np.int64),
        np.empty(n_entries + 1, np.int64),
        np.empty(n_entries + 1, np.int32),
        np.zeros(n_entries + 1, np.int64),
    )
    return work, np.array([array.ctypes.data for array in work], np.int64)


@inlined
def open_work(w):
    """The scratch behind its handle, as pointers."""
    return Work(
        u2_at(w[0]), i8_at(w[1]), i4_at(w[2]), i8_at(w[3]), i8_at(w[4]), i4_at(w[5]), i8_at(w[6])
    )  # fmt: skip


# What a handle begins with: the levels in use as bits, the columns of the place, sizes. The
# number of lists less one of each delta, which is -1 where there is none, follows N_CELLS.
LEVELS, LON_COLUMN, LAT_COLUMN, N_MOVERS, N_CELLS = range(5)
# Where the addresses of movers, base, and of its entries begin. Of a delta, of which there are
# three arrays and the entries, the latter stand DELTA_ARRAYS further on, or twice that.
_CARD, _BASE, _ENTRIES, DELTA_ARRAYS = 7, 18, 21, 10
_DEATH = _ENTRIES + 3


def handle_of(
    levels: int, columns: tuple[int, int], movers: Movers, base: Base, deltas: Sequence[Delta]
) -> Array:
    """i8[..]: what ``LEVELS`` and the others say, then the addresses of arrays that outlive it."""
    arrays = [
        *movers[:-1], *movers.tests, *base[:-1], *base.entries,
        *(a for delta in deltas for a in (*delta[:-1], *delta.entries)),
    ]  # fmt: skip
    sizes = [len(base.key), *(len(delta.head) - 1 for delta in deltas)]
    fixed = [levels, *columns, len(movers.card) // CARD, *sizes]
    return np.array(fixed + [array.ctypes.data for array in arrays], np.int64)


@inlined
def open_movers(h):
    """The movers behind a handle, as pointers."""
    tests = Tests(
        i4_at(h[11]), u1_at(h[12]), i4_at(h[13]), f8_at(h[14]), f8_at(h[15]), i8_at(h[16]),
        f8_at(h[17]),
    )  # fmt: skip
    return Movers(i4_at(h[_CARD]), f8_at(h[8]), i4_at(h[9]), f8_at(h[10]), tests)


@inlined
def _open_entries(h, k):
    return Entries(
        f4_at(h[k]), f8_at(h[k + 1]), f8_at(h[k + 2]), i8_at(h[k + 3]), i4_at(h[k + 4]),
        u2_at(h[k + 5]), u2_at(h[k + 6]),
    )  # fmt: skip


@inlined
def open_base(h):
    """The base behind a handle, as pointers."""
    entries = _open_entries(h, _ENTRIES)
    return Base(i8_at(h[_BASE]), i8_at(h[_BASE + 1]), i4_at(h[_BASE + 2]), entries)


@inlined
def open_delta(h, part):
    """A delta behind a handle, as pointers."""
    k = _ENTRIES + DELTA_ARRAYS * part
    entries = _open_entries(h, k)
    return Delta(i4_at(h[k - 3]), i8_at(h[k - 2]), i8_at(h[k - 1]), entries)


@kernel
def place_at(h, code):
    """The longitude and latitude of an entry. O(1)."""
    k, at = _ENTRIES + DELTA_ARRAYS * (code & 3), code >> PART_BITS
    lon, lat = f8_at(h[k + 1]), f8_at(h[k + 2])
    return lon[at], lat[at]


@inlined
def code_of(number):
    """The 16 leading bits of a number, in the order of numbers; NO_VALUE of NaN."""
    bits = np.int64(np.float32(number + 0.0).view(np.int32)) >> 16  # -0 is 0
    if number != number:
        return np.uint16(NO_VALUE)
    return np.uint16(bits + 32_768 if bits >= 0 else -1 - bits)


@inlined
def bucket_of(key, mask):
    """The list of a cell, in a delta of mask + 1 lists."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(32)) & mask


# -- writing, one thread at a time


@kernel
def find_mover(h, n_movers, row):
    """The mover of a row, or -1. O(log M)."""
    card = i4_at(h[_CARD])
    first, last = np.int64(0), np.int64(n_movers)
    while first < last:
        middle = (first + last) // 2
        if card[middle * CARD + ROW] < row:
            first = middle + 1
        else:
            last = middle
    return first if first < n_movers and card[first * CARD + ROW] == row else np.int64(-1)


@inlined
def reach_at(movers, mover):
    """The radius of a mover in degrees."""
    return math.degrees(min(movers.radius_m[mover] / EARTH_RADIUS_M, math.pi))


@kernel
def _write_hint(movers, mover, term, hints, at):
    """Write a term of a mover with one slot, or what always holds. O(1).

    Codes keep the order: what lies between two numbers does so as codes.
    """
    card = mover * CARD
    hints[at], hints[at + 1], hints[at + 2] = NO_COLUMN, 0, NO_VALUE
    first, n_terms = movers.card[card + FIRST], movers.card[card + N_OWN]
    if movers.card[card + KIND] & IS_JUDGED:
        if n_terms != 1:
            return
        first, n_terms = movers.slots[2 * first], movers.slots[2 * first + 1]
    if term >= n_terms:
        return
    k = TERM * (first + term)
    if movers.terms[k] < NO_COLUMN:
        hints[at] = np.uint16(movers.terms[k])
        hints[at + 1], hints[at + 2] = code_of(movers.terms[k + 1]), code_of(movers.terms[k + 2])


@kernel
def kill(h, code, version):
    """Let an entry end with a version. O(1)."""
    part, at = code & 3, code >> PART_BITS
    death = i8_at(h[_DEATH + DELTA_ARRAYS * part])
    death[at] = version


@kernel
def put(h, where, part, at, mover, lon, lat, version):
    """Let a mover be at a place from a version on, as entry ``at`` of a delta. O(1).

    ``where``: i8[>= M], the code of every mover's entry, or -1; written.
    """
    movers, delta = open_movers(h), open_delta(h, part)
    entries = delta.entries
    level = np.int64(movers.card[mover * CARD + KIND] >> LEVEL_SHIFT)
    reach = reach_at(movers, mover)
    spread = spread_of(lat, reach)
    pad = 4e-5  # of rounding both sides to float32
    entries.box[at * BOX] = np.float32(lon - spread - pad)
    entries.box[at * BOX + 1] = np.float32(lon + spread + pad)
    entries.box[at * BOX + 2] = np.float32(lat - reach - pad)
    entries.box[at * BOX + 3] = np.float32(lat + reach + pad)
    entries.lon[at], entries.lat[at] = lon, lat
    entries.death[at] = NEVER
    entries.mover[at] = mover
    _write_hint(movers, mover, 0, entries.keen, at * HINT)
    for k in range(REST):
        _write_hint(movers, mover, 1 + k, entries.rest, (at * REST + k) * HINT)
    key = key_at(level, lon, lat, COARSE)
    delta.birth[at] = version
    if where[mover] >= 0:
        kill(h, where[mover], version)
    where[mover] = (np.int64(at) << PART_BITS) | part
    bucket = bucket_of(key, h[N_CELLS + part])
    delta.link[at * LINK], delta.link[at * LINK + 1] = key, delta.head[bucket]
    store_release(delta.head, bucket, np.int32(at + 1))


@kernel
def put_many(h, where, part, lon, lat, version):
    """``put`` for the first movers, at lon: f8[N] and lat: f8[N], as the first entries."""
    for mover in range(lon.size):
        put(h, where, part, mover, mover, lon[mover], lat[mover], version)


@kernel
def places_of(h, code, lon, lat):
    """Write the places of entries, code: i8[N], to lon: f8[N] and lat: f8[N]. O(N)."""
    for i in range(code.size):
        lon[i], lat[i] = place_at(h, code[i])


@kernel
def move_row(h, where, n_movers, part, at, row, lon, lat, version):
    """``put`` for the mover of a row; False if there is none. O(log M)."""
    mover = find_mover(h, n_movers, row)
    if mover < 0 or where[mover] < 0:
        return False
    put(h, where, part, at, mover, lon, lat, version)
    return True


@kernel
def move_rows(h, where, n_movers, part, at, rows, lon, lat, version):
    """``move_row`` for many; the number of the first without a mover, and nothing done, or -1."""
    for i in range(rows.size):
        mover = find_mover(h, n_movers, rows[i])
        if mover < 0 or where[mover] < 0:
            return i
    for i in range(rows.size):
        move_row(h, where, n_movers, part, at + i, rows[i], lon[i], lat[i], version)
    return -1
