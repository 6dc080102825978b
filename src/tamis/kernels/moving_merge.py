"""Moving, merged: a base and a delta as a new base, while others go on with the old ones."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.moving import DIGEST, NEVER, PART_BITS, Base, Delta, Entries

_KINDS = (np.float32,) * 4 + (np.float64,) * 2 + (np.int64, np.int32, np.float32)
GONE = np.int64(0)  # the end of an entry that nobody who sees it may find


def new_entries(n):
    """Room for n entries."""
    widths = (1,) * (len(_KINDS) - 1) + (DIGEST,)
    return Entries(*(np.zeros(n * w, kind) for w, kind in zip(widths, _KINDS, strict=True)))


def new_delta(n, n_lists):
    """A delta with room for n entries in so many lists, a power of two or 0."""
    return Delta(
        np.zeros(n_lists, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        new_entries(n),
    )


def new_base():
    """A base without entries."""
    return Base(np.zeros(0, np.int64), np.zeros(1, np.int32), new_entries(0))


def merge(base, delta, n_entries, n_movers):
    """A new base of the entries that have not ended, and where each mover is in it, or -1.

    The first ``n_entries`` of the delta count. Entries may end meanwhile: see ``adopt``.
    """
    is_left = base.entries.death == NEVER
    order = np.nonzero(delta.entries.death[:n_entries] == NEVER)[0]
    order = order[np.argsort(delta.key[order], kind="stable")]
    n_left = int(np.count_nonzero(is_left)) + len(order)
    entries = new_entries(n_left)
    key = np.empty(len(base.key) + len(order), np.int64)
    first = np.empty(len(key) + 1, np.int32)
    number = np.full(n_movers, -1, np.int64)
    n_cells = _merge(base, is_left, delta, order, Base(key, first, entries), number)
    return Base(key[:n_cells].copy(), first[: n_cells + 1].copy(), entries), number


@inlined
def _copy(old, i, new, n, number):
    new.west[n], new.east[n] = old.west[i], old.east[i]
    new.south[n], new.north[n] = old.south[i], old.north[i]
    new.lon[n], new.lat[n] = old.lon[i], old.lat[i]
    new.death[n] = NEVER
    new.mover[n] = old.mover[i]
    for k in range(DIGEST):
        new.digest[n * DIGEST + k] = old.digest[i * DIGEST + k]
    number[old.mover[i]] = n


@kernel
def _merge(base, is_left, delta, order, new, number):
    """Fill a base from another (the entries that are left) and a delta (in order of their cells).

    ``is_left``: b1[N]; ``order``: i8[...], by ascending key. Writes ``new`` and ``number``: i8[M],
    where each mover is; returns the number of cells. O(entries + cells).
    """
    c = j = n_cells = n = 0
    while c < base.key.size or j < order.size:
        if j == order.size or (c < base.key.size and base.key[c] <= delta.key[order[j]]):
            key = base.key[c]
        else:
            key = delta.key[order[j]]
        begin = n
        if c < base.key.size and base.key[c] == key:
            for i in range(base.first[c], base.first[c + 1]):
                if is_left[i]:
                    _copy(base.entries, i, new.entries, n, number)
                    n += 1
            c += 1
        while j < order.size and delta.key[order[j]] == key:
            _copy(delta.entries, order[j], new.entries, n, number)
            j += 1
            n += 1
        if n > begin:
            new.key[n_cells], new.first[n_cells] = key, begin
            n_cells += 1
    new.first[n_cells] = n
    return n_cells


@kernel
def adopt(where, number, live, death):
    """Let movers be where a new base has them, but for those that moved or went meanwhile.

    ``where``: i8[>= M] as in ``moving.put``, written; ``number``: i8[M] of ``merge``; ``live``: the
    delta that grows; ``death``: i8[N] of the new base, written. O(M).
    """
    for mover in range(number.size):
        if number[mover] < 0:
            continue
        if where[mover] >= 0 and where[mover] & 3 != live:
            where[mover] = number[mover] << PART_BITS
        else:
            death[number[mover]] = GONE
