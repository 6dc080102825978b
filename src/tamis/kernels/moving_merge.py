"""Moving, merged: a base and a delta as a new base, while others go on with the old ones."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.hint_vectors import HINT
from tamis.kernels.moving import (
    BOX,
    CARD,
    FENCE,
    KEEN,
    KIND,
    LEVEL_SHIFT,
    LINK,
    NEVER,
    PART_BITS,
    REST,
    Base,
    Delta,
    Entries,
    Movers,
)
from tamis.kernels.moving_cells import FINE, key_at

_KINDS = (np.float32, np.float64, np.float64, np.int64, np.int32, np.uint16, np.uint16)
_WIDTHS = (BOX, 1, 1, 1, 1, KEEN * HINT, REST * HINT)
GONE = np.int64(0)  # the end of an entry that nobody who sees it may find


def new_entries(n: int) -> Entries:
    """Room for n entries."""
    return Entries(*(np.zeros(n * w, kind) for w, kind in zip(_WIDTHS, _KINDS, strict=True)))


def new_delta(n: int, n_lists: int) -> Delta:
    """A delta with room for n entries in so many lists, a power of two or 0."""
    return Delta(
        np.zeros(n_lists, np.int32),
        np.zeros(n * LINK, np.int64),
        np.zeros(n, np.int64),
        new_entries(n),
    )


def new_base() -> Base:
    """A base without entries."""
    none = np.zeros(0, np.int64)
    return Base(none, none, np.zeros(1, np.int32), new_entries(0))


def merge(base: Base, delta: Delta, n_entries: int, movers: Movers) -> tuple[Base, Array]:
    """A new base of the entries that have not ended, and where each mover is in it, or -1.

    The first ``n_entries`` of the delta count. ``movers``: those that there are at least. Entries
    may end meanwhile: see ``adopt``.
    """
    is_left = base.entries.death == NEVER
    order = np.nonzero(delta.entries.death[:n_entries] == NEVER)[0]
    keys = _fine_keys(delta.entries, order, movers.card)
    by_key = np.argsort(keys, kind="stable")
    order, keys = order[by_key], keys[by_key]
    entries = new_entries(int(np.count_nonzero(is_left)) + len(order))
    key = np.empty(len(base.key) + len(order), np.int64)
    first = np.empty(len(key) + 1, np.int32)
    number = np.full(len(movers.card) // CARD, -1, np.int64)
    new = Base(key[:0], key, first, entries)
    n_cells = _merge(base, is_left, delta.entries, order, keys, new, number)
    key = key[:n_cells].copy()
    return Base(key[::FENCE].copy(), key, first[: n_cells + 1].copy(), entries), number


@kernel
def _fine_keys(entries, order, card):
    """The cells of entries in a base: i8 for each of order: i8[N]. O(N)."""
    keys = np.empty(order.size, np.int64)
    for i in range(order.size):
        at = order[i]
        level = np.int64(card[entries.mover[at] * CARD + KIND] >> LEVEL_SHIFT)
        keys[i] = key_at(level, entries.lon[at], entries.lat[at], FINE)
    return keys


@inlined
def _copy(old, i, new, n, number):
    for k in range(BOX):
        new.box[n * BOX + k] = old.box[i * BOX + k]
    new.lon[n], new.lat[n] = old.lon[i], old.lat[i]
    new.death[n] = NEVER
    new.mover[n] = old.mover[i]
    for k in range(KEEN * HINT):
        new.keen[n * KEEN * HINT + k] = old.keen[i * KEEN * HINT + k]
    for k in range(REST * HINT):
        new.rest[n * REST * HINT + k] = old.rest[i * REST * HINT + k]
    number[old.mover[i]] = n


@kernel
def _merge(base, is_left, more, order, keys, new, number):
    """Fill a base from another, of which some are left, and from more entries in some order.

    ``is_left``: b1[N]; ``order``, ``keys``: i8[...], by ascending key. Writes ``new`` and
    ``number``: i8[M], where each mover is; returns the number of cells. O(entries + cells).
    """
    c = j = n_cells = n = 0
    while c < base.key.size or j < order.size:
        key = keys[j] if j < order.size else base.key[c]
        if c < base.key.size:
            key = min(key, base.key[c])
        begin = n
        if c < base.key.size and base.key[c] == key:
            for i in range(base.first[c], base.first[c + 1]):
                if is_left[i]:
                    _copy(base.entries, i, new.entries, n, number)
                    n += 1
            c += 1
        while j < order.size and keys[j] == key:
            _copy(more, order[j], new.entries, n, number)
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
