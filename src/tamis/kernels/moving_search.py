"""Moving, searched: the entries around a place that an event may satisfy. See ``moving``."""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

from tamis.kernels.bits import lowest_bit
from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.hint_vectors import HINT, LANES, TABLE, hint_holds, hints_hold
from tamis.kernels.memory import load_acquire, prefetch_at
from tamis.kernels.moving import (
    CHAIN,
    FENCE,
    LEVELS,
    LINK,
    MAX_CHAINS,
    N_CELLS,
    PART_BITS,
    REST,
    RUN,
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

A_LINE = 10  # entries whose keen hints take about a cache line
ASKED = 32 * A_LINE  # entries of a span that are asked for; the processor foresees the others


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


@inlined
def _add_run(run, n_runs, first_key, last_key):
    """Add neighbouring cells; the new number of runs."""
    run[RUN * n_runs], run[RUN * n_runs + 1] = first_key, last_key
    return n_runs + 1


@kernel
def _find_fences(h, run, n_runs):
    """Write where the keys of each run may begin, and ask for them. O(n_runs log cells)."""
    base, n_cells = open_base(h), h[N_CELLS]
    n_fences = (n_cells + FENCE - 1) // FENCE
    for i in range(n_runs):
        fence = _first_at_least(base.fence, np.int64(0), n_fences, run[RUN * i])
        first = max(fence * FENCE - FENCE, 0)
        run[RUN * i + 2] = first
        for k in range(0, FENCE + 8, 8):
            prefetch_at(base.key, u64(first + k))
        prefetch_at(base.first, u64(first))
        prefetch_at(base.first, u64(first + FENCE))


@kernel
def _find_spans(h, run, n_runs, span):
    """Write the entries of the base in each run that has some, and ask for their keen hints.

    Returns how many these are. O(cells).
    """
    base, n_cells, n_spans = open_base(h), h[N_CELLS], np.int64(0)
    for i in range(n_runs):
        first_key, last_key, first = run[RUN * i], run[RUN * i + 1], run[RUN * i + 2]
        first = _first_at_least(base.key, first, min(first + FENCE, n_cells), first_key)
        last = first
        while last < n_cells and base.key[last] <= last_key:
            last += 1
        if first < last:
            start, end = base.first[first], base.first[last]
            span[2 * n_spans], span[2 * n_spans + 1] = start, end
            for at in range(u64(start), u64(min(end, start + ASKED)), u64(A_LINE)):
                prefetch_at(base.entries.keen, u64(HINT) * at)
            n_spans += 1
    return n_spans


@kernel
def _scan(h, first, last, work, n_columns, n_found):
    """Add the entries of the base whose keen hint holds to ``work.code``. O(last - first).

    Asks for the further hints of those.
    """
    entries, rough, code = open_base(h).entries, work.rough, work.code
    keen = entries.keen
    while n_columns <= TABLE and first + LANES <= last:
        bits = hints_hold(keen, u64(first), rough)
        while bits:
            at = first + np.int64(lowest_bit(bits))
            prefetch_at(entries.rest, u64(at) * u64(REST * HINT))
            code[n_found] = at << PART_BITS
            bits &= bits - u64(1)
            n_found += 1
        first += LANES
    for i in range(first, last):
        code[n_found] = i << PART_BITS
        n_found += np.int64(hint_holds(keen, i * HINT, rough))
    return n_found


@inlined
def _ask_for(delta, at):
    """Ask for what ``_follow`` will look at first of an entry of a delta."""
    prefetch_at(delta.link, u64(at) * u64(LINK))
    prefetch_at(delta.entries.keen, u64(at) * u64(HINT))


@inlined
def _add_chain(delta, mask, key, chain, n_chains):
    """Add the list that a cell of a delta is in; the new number of chains."""
    bucket = bucket_of(key, mask)
    prefetch_at(delta.head, u64(bucket))
    chain[CHAIN * n_chains], chain[CHAIN * n_chains + 1] = key, bucket
    return n_chains + 1


@kernel
def _follow(h, part, n_chains, version, work, n_found):
    """Add the entries of some lists that are there and whose keen hint holds. O(their lengths).

    An entry of each list at a time: what is next in one comes while the others are looked at.
    """
    delta, chain, n_left = open_delta(h, part), work.chain, np.int64(0)
    for c in range(n_chains):
        at = np.int64(load_acquire(delta.head, chain[CHAIN * c + 1])) - 1
        if at >= 0:
            _ask_for(delta, at)
            chain[CHAIN * n_left], chain[CHAIN * n_left + 1] = chain[CHAIN * c], at
            n_left += 1
    while n_left:
        n_chains, n_left = n_left, np.int64(0)
        for c in range(n_chains):
            key, at = chain[CHAIN * c], chain[CHAIN * c + 1]
            if (
                delta.link[at * LINK] == key
                and hint_holds(delta.entries.keen, at * HINT, work.rough)
                and delta.birth[at] <= version
                and delta.entries.death[at] > version
            ):
                work.code[n_found] = (at << PART_BITS) | part
                n_found += 1
            at = delta.link[at * LINK + 1] - 1
            if at >= 0:
                _ask_for(delta, at)
                chain[CHAIN * n_left], chain[CHAIN * n_left + 1] = key, at
                n_left += 1
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
def _list_runs(h, lon, lat, share, run):
    """Write the cells around a place, of all levels in use; return how many runs. O(bands).

    ``share``: the sides of the cells, FINE or COARSE.
    """
    n_runs = np.int64(0)
    for level in range(N_LEVELS):
        if not (h[LEVELS] >> level) & 1:
            continue
        side, reach = share * reach_of(level), reach_of(level)
        reach += reach * MARGIN + MARGIN
        # The area of somebody nearer to a pole is wider in longitude than the event's own.
        spread = spread_of(min(abs(lat) + reach, 90.0), reach)
        for band in range(band_of(lat - reach, side), band_of(lat + reach, side) + 1):
            first, last, again, end = _cells_around(lon, spread, count_cells(band, side))
            key = key_of(level, band, 0)
            n_runs = _add_run(run, n_runs, key + first, key + last)
            if again <= end:
                n_runs = _add_run(run, n_runs, key + again, key + end)
    return n_runs


@kernel
def _search_delta(h, part, n_runs, version, work, n_found):
    """Add the candidates in runs of cells of a delta. O(their entries)."""
    delta, mask, n_chains = open_delta(h, part), h[N_CELLS + part], np.int64(0)
    for i in range(n_runs):
        for key in range(work.run[RUN * i], work.run[RUN * i + 1] + 1):
            if n_chains == MAX_CHAINS:
                n_found = _follow(h, part, n_chains, version, work, n_found)
                n_chains = np.int64(0)
            n_chains = _add_chain(delta, mask, key, work.chain, n_chains)
    return _follow(h, part, n_chains, version, work, n_found)


@kernel
def find_candidates(h, lon, lat, version, n_columns, work):
    """Write the entries around a place whose keen hint holds to ``work.code``; return how many.

    Entries of a delta are there at the version. ``n_columns``: of which ``work.rough`` has the
    values. Where to look in the base is found out for all levels first, and asked for: nearly all
    that an event takes is waiting for memory. O(entries of the cells around).
    """
    n_runs = _list_runs(h, lon, lat, FINE, work.run)
    _find_fences(h, work.run, n_runs)
    n_spans = _find_spans(h, work.run, n_runs, work.span)
    n_found = np.int64(0)
    if max(h[N_CELLS + 1], h[N_CELLS + 2]) >= 0:
        n_runs = _list_runs(h, lon, lat, COARSE, work.run)
    for part in range(1, 3):
        if h[N_CELLS + part] >= 0:
            n_found = _search_delta(h, part, n_runs, version, work, n_found)
    for i in range(n_spans):
        first, last = np.int64(work.span[2 * i]), np.int64(work.span[2 * i + 1])
        n_found = _scan(h, first, last, work, n_columns, n_found)
    return n_found
