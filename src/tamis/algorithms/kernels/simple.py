"""The naive scan over columns, and the scan of events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, kernel

BLOCK = 1_024


class Columns(NamedTuple):
    """The k-th constraints of all P slots side by side; what is beyond ``n_asked`` is unset.

    A value that is excluded is written as the floats beside it, the higher one as ``low``: then
    one of two comparisons must hold instead of both.
    """

    n_asked: Array  # i4[P], constraints of a slot, -1 for none there
    attribute: Array  # u2[C, P]
    low: Array  # f8[C, P], NaN if nothing lies above an excluded value
    high: Array  # f8[C, P], NaN if nothing lies below an excluded value


@kernel
def fill_columns(columns, stored, slots):
    """Copy the constraints of slots (i4[n]) into the columns. O(constraints)."""
    for i in range(slots.size):
        slot = slots[i]
        start = stored.start[slot]
        columns.n_asked[slot] = stored.end[slot] - start
        for k in range(start, stored.end[slot]):
            low, high = stored.low[k], stored.high[k]
            if stored.negated[k]:
                value = low
                low = np.nextafter(value, np.inf) if value < np.inf else np.nan
                high = np.nextafter(value, -np.inf) if value > -np.inf else np.nan
            columns.attribute[k - start, slot] = stored.attribute[k]
            columns.low[k - start, slot] = low
            columns.high[k - start, slot] = high


@kernel
def scan_columns(columns, event, start, end, out, n_out):
    """Append the slots of start..end - 1 that accept the event to out[:n_out]; the new length.

    Blocks of slots are narrowed constraint by constraint. O(P x constraints).
    """
    for first in range(start, end, BLOCK):
        n_left = n_out
        for slot in range(first, min(end, first + BLOCK)):
            out[n_left] = slot
            n_left += columns.n_asked[slot] >= 0
        for k in range(columns.low.shape[0]):
            n_kept = n_out
            for at in range(n_out, n_left):
                slot = out[at]
                value = event[columns.attribute[k, slot]]
                low, high = columns.low[k, slot], columns.high[k, slot]
                both, one = (low <= value) & (value <= high), (low <= value) | (value <= high)
                out[n_kept] = slot
                n_kept += (columns.n_asked[slot] <= k) | both | (one & (not low <= high))
            n_left = n_kept
            if n_left == n_out:
                break
        n_out = n_left
    return n_out


@kernel
def scan_events(events, has_event, n_events, subscription, out):
    """Write the slots of the events that slot 0 of a subscription accepts; return how many.

    events: f8[Q, M]; has_event: b1[Q]; subscription: Stored. O(Q x constraints).
    """
    n_out = 0
    for slot in range(n_events):
        is_accepted = has_event[slot]
        k = subscription.start[0]
        while is_accepted and k < subscription.end[0]:
            value = events[slot, subscription.attribute[k]]
            low, high = subscription.low[k], subscription.high[k]
            if subscription.negated[k]:
                is_accepted = value < low or value > high
            else:
                is_accepted = low <= value and value <= high
            k += 1
        if is_accepted:
            out[n_out] = slot
            n_out += 1
    return n_out
