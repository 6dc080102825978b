"""Moving, read: which movers an event satisfies, as of a version. See ``moving``."""

from __future__ import annotations

import math

import numpy as np

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.hint_vectors import HINT, hint_holds
from tamis.kernels.memory import load_acquire, prefetch_at
from tamis.kernels.moving import (
    BASE,
    BOX,
    CARD,
    FIRST,
    IS_JUDGED,
    IS_SQUARE,
    KIND,
    LAT_COLUMN,
    LINK,
    LON_COLUMN,
    N_CELLS,
    N_MOVERS,
    N_OWN,
    NO_COLUMN,
    PART_BITS,
    REST,
    ROW,
    TERM,
    code_of,
    open_base,
    open_delta,
    open_movers,
    open_work,
    place_at,
    reach_at,
)
from tamis.kernels.moving_cells import MARGIN
from tamis.kernels.moving_search import find_candidates
from tamis.kernels.tests import judge
from tamis.kernels.verdicts import ACCEPTED, REJECTED, UNDECIDED


@inlined
def _box_holds(box, at, place):
    """Whether a box holds a place: its longitude, the same the other way round, its latitude."""
    west, east, south, north = box[at], box[at + 1], box[at + 2], box[at + 3]
    x, other_x, y = place
    is_along = ((west <= x) & (x <= east)) | ((west <= other_x) & (other_x <= east))
    return (south <= y) & (y <= north) & is_along


@inlined
def _rest_holds(rest, at, rough):
    """Whether the further hints of an entry hold."""
    holds = True
    for k in range(REST):
        holds &= hint_holds(rest, (at * REST + k) * HINT, rough)
    return holds


@kernel
def _sift(h, n_found, work):
    """Keep the candidates whose further hints hold; return how many. O(n_found)."""
    base, code, n_left = open_base(h).entries, work.code, np.int64(0)
    for i in range(n_found):
        part, at = code[i] & 3, code[i] >> PART_BITS
        if part == BASE:
            holds = _rest_holds(base.rest, at, work.rough)
        else:
            holds = _rest_holds(open_delta(h, part).entries.rest, at, work.rough)
        code[n_left] = code[i]
        n_left += np.int64(holds)
    return n_left


@kernel
def _place_and_sift(h, n_found, version, place, work):
    """Keep the candidates that are there and whose box holds the place; return how many.

    Writes their movers to ``work.mover``. O(n_found).
    """
    movers, base = open_movers(h), open_base(h).entries
    code, n_left = work.code, np.int64(0)
    for i in range(n_found):
        at = np.uint64(code[i] >> PART_BITS)
        prefetch_at(base.box, at * np.uint64(BOX))
        prefetch_at(base.death, at)
        prefetch_at(base.mover, at)
    for i in range(n_found):
        part, at = code[i] & 3, code[i] >> PART_BITS
        entries = base if part == BASE else open_delta(h, part).entries
        if _box_holds(entries.box, at * BOX, place) and entries.death[at] > version:
            mover = entries.mover[at]
            code[n_left], work.mover[n_left] = code[i], mover
            prefetch_at(movers.card, np.uint64(mover) * np.uint64(CARD))
            prefetch_at(movers.radius_m, np.uint64(mover))
            prefetch_at(entries.lon, np.uint64(at))
            prefetch_at(entries.lat, np.uint64(at))
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
    own, n_own = movers.card[card + FIRST], movers.card[card + N_OWN]
    if not movers.card[card + KIND] & IS_JUDGED:
        return ACCEPTED if _terms_meet(movers.terms, own, n_own, low, high) else REJECTED
    verdict, tests = REJECTED, movers.tests
    for slot in range(own, own + n_own):
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
def _judge_circle(reach, center_lon, center_lat, lon, lat):
    """Whether a place is near, UNDECIDED where rounding could matter. O(1)."""
    half = math.sin(math.radians(reach) / 2)
    wanted = half * half
    phi, center_phi = math.radians(lat), math.radians(center_lat)
    across = math.sin((phi - center_phi) / 2)
    along = math.sin((math.radians(lon) - math.radians(center_lon)) / 2)
    h = across * across + math.cos(center_phi) * math.cos(phi) * along * along
    excess = h - wanted
    # Angles are rounded to about 1e-15; what that makes of h stays far within this margin.
    if abs(excess) <= 1e-12 * (half + wanted):
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
    reach = reach_at(movers, mover)
    if movers.card[mover * CARD + KIND] & IS_SQUARE:
        return _judge_square(reach, center_lon, center_lat, lon, lat)
    return _judge_circle(reach, center_lon, center_lat, lon, lat)


@kernel
def match_movers(h, w, vector, version, decides, rows, n_rows):
    """Add the rows of the movers that an event satisfies to ``rows``; return their new number.

    ``vector``: f8[M], the event; ``rows``: i4[>= n_rows + movers]. ``decides`` as in
    ``_judge_filter``. Writes ``asked`` of the work behind ``w``: the entries that only the filter
    can decide. O(entries of the cells around + terms of those whose area holds the event).
    """
    work = open_work(w)
    work.asked[0] = 0
    lon, lat = vector[h[LON_COLUMN]], vector[h[LAT_COLUMN]]
    if not (abs(lon) <= 180.0 and abs(lat) <= 90.0):
        return n_rows
    for m in range(min(vector.size, NO_COLUMN)):
        work.rough[m] = code_of(vector[m])
    n_left = find_candidates(h, lon, lat, version, vector.size, work)
    place = np.float32(lon), np.float32(lon + 360.0 if lon < 0 else lon - 360.0), np.float32(lat)
    n_left = _place_and_sift(h, _sift(h, n_left, work), version, place, work)
    movers = open_movers(h)
    for i in range(n_left):
        term = TERM * movers.card[work.mover[i] * CARD + FIRST]  # of a slot nothing is gained
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
    movers, lat = open_movers(h), h[LAT_COLUMN]
    if not (entries.box[BOX * at + 2] <= high[lat] and low[lat] <= entries.box[BOX * at + 3]):
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
                at = delta.link[at * LINK + 1] - 1
