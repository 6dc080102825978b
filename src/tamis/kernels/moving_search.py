"""Moving, searched: the entries around a place that an event may satisfy. See ``moving``."""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

from tamis.kernels.bits import lowest_bit
from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.hint_vectors import HINT, LANES, TABLE, hint_holds, hints_hold
from tamis.kernels.memory import load_acquire, prefetch_at
from tamis.kernels.moving import (
    FENCE,
    LEVELS,
    LINK,
    N_CELLS,
    PART_BITS,
    bucket_of,
    open_base,
    open_delta,
)
from tamis.kernels.moving_cells import (
    COARSE,
    FINE,
    MARGIN,
    N_LEVELS,
    band_of,
    cell_of,
    count_cells,
    key_of,
    reach_of,
    spread_of,
)


@inlined
def _first_at_least(keys, first, last, key):
    """The first of the ascending keys[first:last] that is not less than a key."""
    while first < last:
        middle = (first + last) // 2
        if keys[middle] < key:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def _add_span(h, first_key, last_key, span, n_spans):
    """Add the entries of the base in neighbouring cells to ``span``. O(log cells + cells)."""
    base, n_cells = open_base(h), h[N_CELLS]
    n_fences = (n_cells + FENCE - 1) // FENCE
    fence = _first_at_least(base.fence, np.int64(0), n_fences, first_key)
    first = max(fence * FENCE - FENCE, 0)
    first = _first_at_least(base.key, first, min(first + FENCE, n_cells), first_key)
    last = first
    while last < n_cells and base.key[last] <= last_key:
        last += 1
    if first < last:
        span[2 * n_spans], span[2 * n_spans + 1] = base.first[first], base.first[last]
        prefetch_at(base.entries.keen, np.uint64(HINT * span[2 * n_spans]))
        n_spans += 1
    return n_spans


@kernel
def _scan(h, first, last, work, n_columns, n_found):
    """Add the entries of the base whose keen hint holds to ``work.code``. O(last - first)."""
    keen, rough, code = open_base(h).entries.keen, work.rough, work.code
    while n_columns <= TABLE and first + LANES <= last:
        bits = hints_hold(keen, u64(first), rough)
        while bits:
            code[n_found] = (first + np.int64(lowest_bit(bits))) << PART_BITS
            bits &= bits - u64(1)
            n_found += 1
        first += LANES
    for i in range(first, last):
        code[n_found] = i << PART_BITS
        n_found += np.int64(hint_holds(keen, i * HINT, rough))
    return n_found


@kernel
def _follow(h, part, key, version, work, n_found):
    """Add the entries of a cell in a delta that are there and whose keen hint holds."""
    delta = open_delta(h, part)
    i = np.int64(load_acquire(delta.head, bucket_of(key, h[N_CELLS + part]))) - 1
    while i >= 0:
        if (
            delta.link[i * LINK] == key
            and hint_holds(delta.entries.keen, i * HINT, work.rough)
            and delta.birth[i] <= version
            and delta.entries.death[i] > version
        ):
            work.code[n_found] = (i << PART_BITS) | part
            n_found += 1
        i = delta.link[i * LINK + 1] - 1
    return n_found


@inlined
def _cells_around(lon, spread, n_cells):
    """The cells of a band that a stretch of longitudes meets: two runs, the second may be empty."""
    west, east = lon - spread, lon + spread
    if spread >= 90.0:
        return np.int64(0), n_cells - 1, np.int64(0), np.int64(-1)
    first = cell_of(west + 360.0 if west < -180.0 else west, n_cells)
    last = cell_of(east - 360.0 if east > 180.0 else east, n_cells)
    if west >= -180.0 and east <= 180.0:
        return first, last, np.int64(0), np.int64(-1)
    if first <= last:
        return np.int64(0), n_cells - 1, np.int64(0), np.int64(-1)
    return first, n_cells - 1, np.int64(0), last


@kernel
def _scan_level(h, level, lon, lat, reach, spread, work, n_columns, n_found):
    """Add the candidates of a level in the base. O(entries of the cells around)."""
    side = FINE * reach_of(level)
    n_spans = np.int64(0)
    for band in range(band_of(lat - reach, side), band_of(lat + reach, side) + 1):
        first, last, again, end = _cells_around(lon, spread, count_cells(band, side))
        key = key_of(level, band, 0)
        n_spans = _add_span(h, key + first, key + last, work.span, n_spans)
        if again <= end:
            n_spans = _add_span(h, key + again, key + end, work.span, n_spans)
    for i in range(n_spans):
        first, last = np.int64(work.span[2 * i]), np.int64(work.span[2 * i + 1])
        n_found = _scan(h, first, last, work, n_columns, n_found)
    return n_found


@kernel
def _follow_level(h, part, level, lon, lat, reach, spread, version, work, n_found):
    """Add the candidates of a level in a delta. O(entries of the cells around)."""
    side = COARSE * reach_of(level)
    for band in range(band_of(lat - reach, side), band_of(lat + reach, side) + 1):
        first, last, again, end = _cells_around(lon, spread, count_cells(band, side))
        key = key_of(level, band, 0)
        for cell in range(first, last + 1):
            n_found = _follow(h, part, key + cell, version, work, n_found)
        for cell in range(again, end + 1):
            n_found = _follow(h, part, key + cell, version, work, n_found)
    return n_found


@kernel
def find_candidates(h, lon, lat, version, n_columns, work):
    """Write the entries around a place whose keen hint holds to ``work.code``; return how many.

    Entries of a delta are there at the version. ``n_columns``: of which ``work.rough`` has the
    values. O(entries of the cells around).
    """
    n_found = np.int64(0)
    for level in range(N_LEVELS):
        if not (h[LEVELS] >> level) & 1:
            continue
        reach = reach_of(level)
        reach += reach * MARGIN + MARGIN
        # The area of somebody nearer to a pole is wider in longitude than the event's own.
        spread = spread_of(min(abs(lat) + reach, 90.0), reach)
        n_found = _scan_level(h, level, lon, lat, reach, spread, work, n_columns, n_found)
        for part in range(1, 3):
            if h[N_CELLS + part] >= 0:
                n_found = _follow_level(
                    h, part, level, lon, lat, reach, spread, version, work, n_found
                )
    return n_found
