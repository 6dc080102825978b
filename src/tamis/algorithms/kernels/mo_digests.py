"""Digests: a subscription in 32 bytes, compared before its exact bounds are.

A digest holds up to eight constraints as codes of 8 bits, in one place. A value whose code lies
strictly between those of the bounds lies between the bounds; only where codes are equal the
exact bounds are read.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.constraints import accepts
from tamis.kernels.places import place_cell, place_of

N_DIGEST = 8  # constraints
FIRST_CODE, N_CODES = 2, 252  # 0 is a missing value, 1 and 254 are absent bounds


@inlined
def is_among(attributes, m):
    """Whether m is one of some attributes (i8[n])."""
    found = False
    for at in range(attributes.size):
        found |= attributes[at] == m
    return found


@inlined
def digest_code(place):
    """The code of a place in a digest."""
    return FIRST_CODE + place_cell(place, N_CODES)


@kernel
def write_digests(compared, places, stored, slots, digests):
    """Write the digests (u4[P, 8]) of slots (i4[n]): attribute, code of low, code of high.

    Attributes that are compared before (i8[n]) come last. What is left of a digest holds for every
    event: attribute M, at FIRST_CODE in all events. So does its last entry if there are more
    constraints or some are negated, but only just: then the exact bounds are read.
    """
    everything = np.uint32((places.low.size << 16) | 255)
    undecided = np.uint32((places.low.size << 16) | (FIRST_CODE << 8) | FIRST_CODE)
    for i in range(slots.size):
        slot, n = slots[i], 0
        is_whole = stored.end[slot] - stored.start[slot] <= N_DIGEST
        for side in range(2):
            for k in range(stored.start[slot], stored.end[slot]):
                m = np.int64(stored.attribute[k])
                is_whole &= stored.negated[k] == 0
                if n == N_DIGEST or is_among(compared, m) != side:
                    continue
                low, high = FIRST_CODE - 1, FIRST_CODE + N_CODES
                if stored.low[k] > -np.inf and not stored.negated[k]:
                    low = digest_code(place_of(places, m, stored.low[k]))
                if stored.high[k] < np.inf and not stored.negated[k]:
                    high = digest_code(place_of(places, m, stored.high[k]))
                digests[slot, n] = np.uint32((m << 16) | (low << 8) | high)
                n += 1
        for j in range(n, N_DIGEST):
            digests[slot, j] = everything
        if not is_whole:
            digests[slot, N_DIGEST - 1] = undecided


@kernel
def write_codes(places, event, codes):
    """Write the codes (u1[M + 1]) of an event (f8[M]) that digests are compared with."""
    for m in range(event.size):
        missing = np.isnan(event[m])
        codes[m] = 0 if missing else digest_code(place_of(places, m, event[m]))
    codes[event.size] = FIRST_CODE


@inlined
def may_hold(asked, codes):
    """Whether an entry of a digest may hold for the codes of an event."""
    code = codes[asked >> np.uint32(16)]
    low, high = (asked >> np.uint32(8)) & np.uint32(255), asked & np.uint32(255)
    return (low <= code) & (code <= high)


@kernel
def keep_digested(digests, codes, slots, n_slots):
    """Keep those of slots[:n_slots] whose digests may accept an event; how many.

    digests: u4[P, 8]; codes: u1[M + 1]. The first pass is short and without branches, so that
    the digests of many slots are fetched at the same time.
    """
    n_left = 0
    for at in range(n_slots):
        slot = np.uint64(np.uint32(slots[at]))
        slots[n_left] = slots[at]
        n_left += may_hold(digests[slot, 0], codes) & may_hold(digests[slot, 1], codes)
    n_kept = 0
    for at in range(n_left):
        slot, is_accepted = np.uint64(np.uint32(slots[at])), True
        for j in range(2, N_DIGEST):
            is_accepted &= may_hold(digests[slot, j], codes)
        slots[n_kept] = slots[at]
        n_kept += is_accepted
    return n_kept


@kernel
def keep_decided(digests, codes, stored, event, slots, n_slots):
    """Keep those of slots[:n_slots] that accept an event, of those ``keep_digested`` has kept."""
    n_kept = 0
    for at in range(n_slots):
        slot, is_sure = slots[at], True
        for j in range(N_DIGEST):
            asked = digests[slot, j]
            code = codes[asked >> np.uint32(16)]
            is_sure &= ((asked >> np.uint32(8)) & np.uint32(255)) < code
            is_sure &= code < (asked & np.uint32(255))
        if is_sure or accepts(stored, slot, event):
            slots[n_kept] = slot
            n_kept += 1
    return n_kept
