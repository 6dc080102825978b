"""What tells how good an attribute is to index: who asks for it, how narrowly, how evenly."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.kernels.places import place_cell, place_of


@kernel
def judge_subscriptions(stored, slots, places, n_asked, width, middles):
    """Count what slots (i4[n]) ask of each attribute.

    Adds to n_asked (i8[M]) the constraints with bounds, to width (f8[M]) the sum of their widths,
    to middles (i8[M, B]) where their middles lie.
    """
    for i in range(slots.size):
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            if not stored.negated[k]:
                m = np.int64(stored.attribute[k])
                low, high = place_of(places, m, stored.low[k]), place_of(places, m, stored.high[k])
                n_asked[m] += 1
                width[m] += high - low
                middles[m, place_cell((low + high) / 2, middles.shape[1])] += 1


@kernel
def judge_events(events, slots, places, n_present, middles):
    """Count which attributes events (f8[Q, M]) of slots (i4[n]) have, and where values lie."""
    for i in range(slots.size):
        for m in range(n_present.size):
            value = events[slots[i], m]
            if not np.isnan(value):
                n_present[m] += 1
                middles[m, place_cell(place_of(places, m, value), middles.shape[1])] += 1
