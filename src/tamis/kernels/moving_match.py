"""Moving, read: which movers an event satisfies, as of a version. See ``moving``."""

from __future__ import annotations

import math

import numpy as np

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.memory import load_acquire, prefetch_at, u2_at
from tamis.kernels.moving import (
    BASE,
    BASE_DIGEST,
    CARD,
    DELTA_ARRAYS,
    DIGEST,
    FIRST_SLOT,
    FIRST_TERM,
    FORM,
    HAVERSINE,
    IS_JUDGED,
    IS_SQUARE,
    LAT,
    LEVELS,
    LON,
    N_CELLS,
    N_DIGESTED,
    N_MOVERS,
    N_SLOTS,
    N_TERMS,
    NEAR_MARGIN,
    NO_COLUMN,
    PART_BITS,
    REACH,
    ROW,
    TERM,
    bucket_of,
    open_base,
    open_delta,
    open_movers,
    open_work,
    place_at,
)
from tamis.kernels.moving_cells import (
    MARGIN,
    N_LEVELS,
    SIDE,
    band_of,
    cell_of,
    count_cells,
    key_of,
    reach_of,
    spread_of,
)
from tamis.kernels.tests import ACCEPTED, REJECTED, UNDECIDED, judge


# -- candidates: entries whose box holds the event's place


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
def _scan(base, first, last, at, code, n_found):
    """Add the entries of the base whose box holds a point to ``code``. O(last - first).

    ``at``: its longitude, the same counted the other way round the globe, its latitude.
    """
    entries = base.entries
    west, east, south, north = entries.west, entries.east, entries.south, entries.north
    x, other_x, y = at
    for i in range(first, last):
        is_across = (south[i] <= y) & (y <= north[i])
        is_along = (west[i] <= x) & (x <= east[i])
        is_around = (west[i] <= other_x) & (other_x <= east[i])
        code[n_found] = i << PART_BITS
        n_found += np.int64(is_across & (is_along | is_around))
    return n_found


@kernel
def _follow(delta, part, head, key, at, version, code, n_found):
    """Add the entries of a cell in a delta that are there and whose box holds a point."""
    x, other_x, y = at
    entries = delta.entries
    i = np.int64(head) - 1
    while i >= 0:
        if (
            delta.key[i] == key
            and delta.birth[i] <= version
            and entries.death[i] > version
            and entries.south[i] <= y <= entries.north[i]
            and (
                entries.west[i] <= x <= entries.east[i]
                or entries.west[i] <= other_x <= entries.east[i]
            )
        ):
            code[n_found] = (i << PART_BITS) | part
            n_found += 1
        i = np.int64(delta.follower[i]) - 1
    return n_found


@kernel
def _visit(h, first_key, last_key, at, version, code, n_found):
    """Add the candidates of neighbouring cells. O(entries of these cells)."""
    base, n_cells = open_base(h), h[N_CELLS]
    first = _first_at_least(base.key, np.int64(0), n_cells, first_key)
    if first < n_cells:
        last = _first_at_least(base.key, first, n_cells, last_key + 1)
        n_found = _scan(
            base, np.int64(base.first[first]), np.int64(base.first[last]), at, code, n_found
        )
    for part in range(1, 3):
        mask = h[N_CELLS + part]
        if mask < 0:
            continue
        delta = open_delta(h, part)
        for key in range(first_key, last_key + 1):
            head = load_acquire(delta.head, bucket_of(key, mask))
            if head:
                n_found = _follow(delta, part, head, key, at, version, code, n_found)
    return n_found


@kernel
def find_candidates(h, lon, lat, version, code):
    """Write the entries whose box holds a place to ``code``; return how many.

    Entries of a delta are there at the version. O(entries of the cells around).
    """
    at = np.float32(lon), np.float32(lon + 360.0 if lon < 0 else lon - 360.0), np.float32(lat)
    n_found = np.int64(0)
    for level in range(N_LEVELS):
        if not (h[LEVELS] >> level) & 1:
            continue
        reach = reach_of(level)
        side = SIDE * reach
        reach += reach * MARGIN + MARGIN
        # The area of somebody nearer to a pole is wider in longitude than the event's own.
        spread = spread_of(min(abs(lat) + reach, 90.0), reach)
        for band in range(band_of(lat - reach, side), band_of(lat + reach, side) + 1):
            n_cells = count_cells(band, side)
            first, last = np.int64(0), n_cells - 1
            if spread < 90.0:
                west, east = lon - spread, lon + spread
                first = cell_of(west + 360.0 if west < -180.0 else west, n_cells)
                last = cell_of(east - 360.0 if east > 180.0 else east, n_cells)
                if (west < -180.0 or east > 180.0) and first > last:
                    n_found = _visit(
                        h, key_of(level, band, first), key_of(level, band, n_cells - 1),
                        at, version, code, n_found,
                    )  # fmt: skip
                    first = np.int64(0)
                elif west < -180.0 or east > 180.0:
                    first, last = np.int64(0), n_cells - 1
            n_found = _visit(
                h, key_of(level, band, first), key_of(level, band, last),
                at, version, code, n_found,
            )  # fmt: skip
    return n_found


# -- sifting: which of them the event satisfies


@inlined
def _digest_holds(entries, columns, at, rough):
    """Whether the first terms of an entry's mover hold, all rounded to float32."""
    holds = True
    for k in range(N_DIGESTED):
        value = rough[columns[at * 2 * DIGEST + 4 * N_DIGESTED + k]]
        low, high = entries.digest[at * DIGEST + 2 * k], entries.digest[at * DIGEST + 2 * k + 1]
        holds &= (low <= value) & (value <= high)
    return holds


@kernel
def _sift_roughly(h, n_found, version, work):
    """Keep the candidates that are there and whose digest holds; return how many. O(n_found)."""
    card, base = open_movers(h).card, open_base(h).entries
    base_columns = u2_at(h[BASE_DIGEST])
    code, rough, n_left = work.code, work.rough, np.int64(0)
    for i in range(n_found):
        part, at = code[i] & 3, code[i] >> PART_BITS
        if part == BASE:
            holds = _digest_holds(base, base_columns, at, rough) and base.death[at] > version
            mover = base.mover[at]
        else:
            entries = open_delta(h, part).entries
            columns = u2_at(h[BASE_DIGEST + DELTA_ARRAYS * part])
            holds = _digest_holds(entries, columns, at, rough)
            mover = entries.mover[at]
        if holds:
            code[n_left], work.mover[n_left] = code[i], mover
            prefetch_at(card, np.uint64(mover) * np.uint64(CARD))
            n_left += 1
    return n_left


@kernel
def _terms_meet(terms, first, n_terms, low, high):
    """Whether every interval meets the event's, as in ``scan``. O(n_terms)."""
    for k in range(first, first + n_terms):
        column = np.int64(terms[TERM * k])
        if not (terms[TERM * k + 1] <= high[column] and low[column] <= terms[TERM * k + 2]):
            return False
    return True


@kernel
def _judge_filter(movers, mover, low, high, decides):
    """What a mover's filter says of an event: ACCEPTED, REJECTED or UNDECIDED. O(its slots).

    ``decides``: whether tests do, or who has some is undecided.
    """
    card = mover * CARD
    if not movers.card[card + IS_JUDGED]:
        first, n_terms = movers.card[card + FIRST_TERM], movers.card[card + N_TERMS]
        return ACCEPTED if _terms_meet(movers.terms, first, n_terms, low, high) else REJECTED
    verdict, tests = REJECTED, movers.tests
    first_slot = movers.card[card + FIRST_SLOT]
    for slot in range(first_slot, first_slot + movers.card[card + N_SLOTS]):
        first, n_terms = movers.slots[2 * slot], movers.slots[2 * slot + 1]
        if not _terms_meet(movers.terms, first, n_terms, low, high):
            continue
        said = ACCEPTED
        if tests.start[slot + 1] > tests.start[slot]:
            said = judge(tests, low, slot) if decides else UNDECIDED
        if said == ACCEPTED:
            return ACCEPTED
        if said == UNDECIDED:
            verdict = UNDECIDED
    return verdict


@kernel
def _judge_circle(form, center_lon, center_lat, lon, lat):
    """Whether a place is near, UNDECIDED where rounding could matter. O(1)."""
    phi, center_phi = math.radians(lat), math.radians(center_lat)
    across = math.sin((phi - center_phi) / 2)
    along = math.sin((math.radians(lon) - math.radians(center_lon)) / 2)
    h = across * across + math.cos(center_phi) * math.cos(phi) * along * along
    excess = h - form[HAVERSINE]
    if abs(excess) <= form[NEAR_MARGIN]:
        return UNDECIDED
    return ACCEPTED if excess < 0 else REJECTED


@kernel
def _judge_square(reach, center_lon, center_lat, lon, lat):
    """Whether a place is in the box around a circle, UNDECIDED where rounding could matter. O(1).

    It has all longitudes if it reaches a pole.
    """
    across = abs(lat - center_lat) - reach
    beyond = abs(center_lat) + reach - 90.0
    if across > MARGIN:
        return REJECTED
    if abs(beyond) <= MARGIN:
        return UNDECIDED
    verdict = ACCEPTED if across < -MARGIN else UNDECIDED
    if beyond > 0:
        return verdict
    ratio = math.sin(math.radians(reach)) / math.cos(math.radians(center_lat))
    if ratio > 0.9999:  # where the arc sine loses precision
        return UNDECIDED
    apart = abs(lon - center_lon)
    along = min(apart, 360.0 - apart) - math.degrees(math.asin(ratio))
    if along > MARGIN:
        return REJECTED
    return verdict if along < -MARGIN else UNDECIDED


@kernel
def _judge_place(movers, mover, center_lon, center_lat, lon, lat):
    """Whether a place is in the area of a mover that is at another. O(1)."""
    k = mover * FORM
    if movers.card[mover * CARD + IS_SQUARE]:
        return _judge_square(movers.form[k + REACH], center_lon, center_lat, lon, lat)
    form = (movers.form[k], movers.form[k + HAVERSINE], movers.form[k + NEAR_MARGIN])
    return _judge_circle(form, center_lon, center_lat, lon, lat)


@kernel
def match_movers(h, w, vector, version, decides, rows, n_rows):
    """Add the rows of the movers that an event satisfies to ``rows``; return their new number.

    ``vector``: f8[M], the event; ``rows``: i4[>= n_rows + movers]. ``decides`` as in
    ``_judge_filter``. Writes ``asked`` of the work behind ``w``: the entries that only the filter
    can decide. O(entries of the cells around + terms of those whose area holds the event).
    """
    work = open_work(w)
    work.asked[0] = 0
    lon, lat = vector[h[LON]], vector[h[LAT]]
    if not (abs(lon) <= 180.0 and abs(lat) <= 90.0):
        return n_rows
    for m in range(min(vector.size, NO_COLUMN)):
        work.rough[m] = np.float32(vector[m])
    n_left = find_candidates(h, lon, lat, version, work.code)
    n_left = _sift_roughly(h, n_left, version, work)
    movers = open_movers(h)
    for i in range(n_left):
        term = TERM * movers.card[work.mover[i] * CARD + FIRST_TERM]
        prefetch_at(movers.terms, np.uint64(term))
        prefetch_at(movers.terms, np.uint64(term + 8))
    for i in range(n_left):
        mover = np.int64(work.mover[i])
        verdict = _judge_filter(movers, mover, vector, vector, decides)
        if verdict == REJECTED:
            continue
        center_lon, center_lat = place_at(h, work.code[i])
        said = _judge_place(movers, mover, center_lon, center_lat, lon, lat)
        if said == REJECTED:
            continue
        if said == ACCEPTED and verdict == ACCEPTED:
            rows[n_rows] = movers.card[mover * CARD + ROW]
            n_rows += 1
        else:
            work.asked[0] += 1
            work.asked[work.asked[0]] = work.code[i]
    return n_rows


@kernel
def match_matrix_movers(h, w, matrix, first, version, rows, ends, is_open):
    """``match_movers`` for the plain events of matrix: f8[E, M] from ``first`` on.

    Event e's rows end at ``ends[e + 1]``, i8[E + 1], which is written; ``is_open``: u1[E] is set
    for events that need a filter asked. Stops when ``rows`` might have too little room for all
    movers; returns the event to go on with.
    """
    event, work = first, open_work(w)
    while event < matrix.shape[0] and ends[event] + h[N_MOVERS] <= rows.size:
        n_rows = match_movers(h, w, matrix[event], version, True, rows, ends[event])
        if work.asked[0]:
            is_open[event] = 1
        event += 1
        ends[event] = n_rows
    return event


# -- events that are not plain


@kernel
def _meets(h, entries, at, low, high):
    """Whether the values of an event may satisfy the mover of an entry. O(its slots)."""
    movers, lat = open_movers(h), h[LAT]
    if not (entries.south[at] <= high[lat] and low[lat] <= entries.north[at]):
        return False
    mover = np.int64(entries.mover[at])
    return _judge_filter(movers, mover, low, high, False) != REJECTED


@kernel
def list_in_hull(h, w, low, high, version):
    """Write to ``asked`` of the work all entries that an event between two vectors may satisfy.

    ``low``, ``high``: f8[M] as in ``scan``. O(entries).
    """
    work = open_work(w)
    work.asked[0] = 0
    base = open_base(h)
    for at in range(base.first[h[N_CELLS]]):
        if base.entries.death[at] > version and _meets(h, base.entries, at, low, high):
            work.asked[0] += 1
            work.asked[work.asked[0]] = np.int64(at) << PART_BITS
    for part in range(1, 3):
        delta = open_delta(h, part)
        for bucket in range(h[N_CELLS + part] + 1):
            at = np.int64(load_acquire(delta.head, bucket)) - 1
            while at >= 0:
                is_there = delta.birth[at] <= version and delta.entries.death[at] > version
                if is_there and _meets(h, delta.entries, at, low, high):
                    work.asked[0] += 1
                    work.asked[work.asked[0]] = (at << PART_BITS) | part
                at = np.int64(delta.follower[at]) - 1
