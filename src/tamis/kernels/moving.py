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

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.memory import (
    f4_at,
    f8_at,
    i4_at,
    i8_at,
    store_release,
    u1_at,
    u2_at,
)
from tamis.kernels.moving_cells import key_at, spread_of
from tamis.kernels.tests import Tests

# Of a card: what a mover is, in i4.
ROW, FIRST_SLOT, N_SLOTS, FIRST_TERM, N_TERMS, IS_JUDGED, LEVEL, IS_SQUARE = range(8)
CARD = 8
# Of a form: its radius in degrees, what ``tests.IS_NEAR`` compares with, and the margin of that.
REACH, HAVERSINE, NEAR_MARGIN = range(3)
FORM = 3
TERM = 3  # column, low, high
DIGEST = 8  # f4: low and high of three terms, and their columns as u2
N_DIGESTED = 3
NO_COLUMN = 65_535

NEVER = np.int64(2**62)  # the end of an entry that has none
BASE = 0  # the part; the deltas are 1 and 2
PART_BITS = 2  # of the code of an entry: its part, and above its number there


class Movers(NamedTuple):
    """What M movers ask for beside their place, appended to."""

    card: Array  # i4[M x CARD], by ascending row
    form: Array  # f8[M x FORM]
    slots: Array  # i4[S x 2], first term and number of terms
    terms: Array  # f8[K x TERM]
    tests: Tests  # of the slots


class Entries(NamedTuple):
    """Where movers are, or were."""

    west: Array  # f4[N], a box that holds the area; may go beyond 180 degrees
    east: Array  # f4[N]
    south: Array  # f4[N]
    north: Array  # f4[N]
    lon: Array  # f8[N]
    lat: Array  # f8[N]
    death: Array  # i8[N], the version from which on it is not there
    mover: Array  # i4[N]
    digest: Array  # f4[N x DIGEST], what the mover asks for, roughly


class Base(NamedTuple):
    """Entries by cell: those of key[c] are first[c] to first[c + 1]."""

    key: Array  # i8[C], ascending
    first: Array  # i4[C + 1], ascending
    entries: Entries


class Delta(NamedTuple):
    """Entries in lists, each by the hash of a cell, the newest first."""

    head: Array  # i4[H], one more than the first entry, or 0; H is a power of two
    follower: Array  # i4[N], the same of the next
    key: Array  # i8[N]
    birth: Array  # i8[N], the version from which on it is there
    entries: Entries


class Work(NamedTuple):
    """Of one thread, with room for all entries."""

    rough: Array  # f4[NO_COLUMN + 1], the event; 0 at its end
    code: Array  # i8[N + 1], candidates
    mover: Array  # i4[N + 1]
    asked: Array  # i8[N + 1], how many entries only the filter can decide, then their codes


def new_work(n_entries):
    """Scratch for a thread, and its handle: i8[..], the addresses."""
    work = Work(
        np.zeros(NO_COLUMN + 1, np.float32),
        np.empty(n_entries + 1, np.int64),
        np.empty(n_entries + 1, np.int32),
        np.zeros(n_entries + 1, np.int64),
    )
    return work, np.array([array.ctypes.data for array in work], np.int64)


@inlined
def open_work(w):
    """The scratch behind its handle, as pointers."""
    return Work(f4_at(w[0]), i8_at(w[1]), i4_at(w[2]), i8_at(w[3]))


# What a handle begins with: the levels in use as bits, the columns of the place, sizes. The
# number of lists less one of each delta, which is -1 where there is none, follows N_CELLS.
LEVELS, LON, LAT, N_MOVERS, N_CELLS = range(5)
_CARD, _BASE, DELTA_ARRAYS = 7, 18, 13  # where the addresses of movers, base and deltas begin
BASE_DIGEST = _BASE + 10
_BASE_DEATH = _BASE + 8


def handle_of(levels, columns, movers, base, deltas):
    """i8[..]: what ``LEVELS`` and the others say, then all addresses; the arrays must outlive it."""
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
        f4_at(h[k]), f4_at(h[k + 1]), f4_at(h[k + 2]), f4_at(h[k + 3]), f8_at(h[k + 4]),
        f8_at(h[k + 5]), i8_at(h[k + 6]), i4_at(h[k + 7]), f4_at(h[k + 8]),
    )  # fmt: skip


@inlined
def open_base(h):
    """The base behind a handle, as pointers."""
    return Base(i8_at(h[_BASE]), i4_at(h[_BASE + 1]), _open_entries(h, _BASE + 2))


@inlined
def open_delta(h, part):
    """A delta behind a handle, as pointers."""
    k = _BASE - 2 + DELTA_ARRAYS * part
    return Delta(
        i4_at(h[k]), i4_at(h[k + 1]), i8_at(h[k + 2]), i8_at(h[k + 3]), _open_entries(h, k + 4)
    )


@kernel
def place_at(h, code):
    """The longitude and latitude of an entry. O(1)."""
    part, at = code & 3, code >> PART_BITS
    lon, lat = f8_at(h[_BASE + 6 + DELTA_ARRAYS * part]), f8_at(h[_BASE + 7 + DELTA_ARRAYS * part])
    return lon[at], lat[at]


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


@kernel
def _write_digest(movers, mover, digest, at):
    """Write the first terms of a mover with one slot; none of another. O(1)."""
    columns = u2_at(digest)
    bounds = f4_at(digest)
    card = mover * CARD
    n_terms = movers.card[card + N_TERMS] if movers.card[card + N_SLOTS] == 1 else 0
    for k in range(N_DIGESTED):
        column, low, high = np.float64(NO_COLUMN), -np.inf, np.inf
        term = TERM * (movers.card[card + FIRST_TERM] + k)
        if k < n_terms and movers.terms[term] < NO_COLUMN:
            column, low, high = movers.terms[term], movers.terms[term + 1], movers.terms[term + 2]
        columns[at * 2 * DIGEST + 4 * N_DIGESTED + k] = np.uint16(column)
        # Rounding keeps the order: what lies between bounds does so when all three are rounded.
        bounds[at * DIGEST + 2 * k] = np.float32(low)
        bounds[at * DIGEST + 2 * k + 1] = np.float32(high)


@kernel
def kill(h, code, version):
    """Let an entry end with a version. O(1)."""
    part, at = code & 3, code >> PART_BITS
    death = i8_at(h[_BASE_DEATH + DELTA_ARRAYS * part])
    death[at] = version


@kernel
def put(h, where, part, at, mover, lon, lat, version):
    """Let a mover be at a place from a version on, as entry ``at`` of a delta. O(1).

    ``where``: i8[>= M], the code of every mover's entry, or -1; written.
    """
    movers, delta = open_movers(h), open_delta(h, part)
    entries = delta.entries
    level = np.int64(movers.card[mover * CARD + LEVEL])
    reach = movers.form[mover * FORM + REACH]
    spread = spread_of(lat, reach)
    pad = 4e-5  # of rounding both sides to float32
    entries.west[at] = np.float32(lon - spread - pad)
    entries.east[at] = np.float32(lon + spread + pad)
    entries.south[at] = np.float32(lat - reach - pad)
    entries.north[at] = np.float32(lat + reach + pad)
    entries.lon[at], entries.lat[at] = lon, lat
    entries.death[at] = NEVER
    entries.mover[at] = mover
    _write_digest(movers, mover, h[BASE_DIGEST + DELTA_ARRAYS * part], at)
    key = key_at(level, lon, lat)
    delta.key[at], delta.birth[at] = key, version
    if where[mover] >= 0:
        kill(h, where[mover], version)
    where[mover] = (np.int64(at) << PART_BITS) | part
    bucket = bucket_of(key, h[N_CELLS + part])
    delta.follower[at] = delta.head[bucket]
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


