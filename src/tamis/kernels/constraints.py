"""Constraints: what subscriptions ask of attributes, as arrays, and whether an event meets them.

A constraint holds if the event has a value inside [low, high], or, if it is *negated*, a value
outside; a missing value (NaN) meets none. Ends are closed: an open one was moved to the next
float64 further in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel

RANGE, OPEN, ONE_SIDED, POINT, NOT_EQUAL = 1, 2, 4, 8, 16


class Stored(NamedTuple):
    """The constraints of P slots: those of slot p are ``start[p]`` to ``end[p]``."""

    start: Array  # i8[P]
    end: Array  # i8[P]; start = end where a slot is empty or asks nothing
    attribute: Array  # u2[K], strictly ascending within a slot
    low: Array  # f8[K], -inf where there is no lower bound
    high: Array  # f8[K], inf where there is no upper bound; low <= high
    negated: Array  # u1[K], 1 where the value must lie outside (then low = high)


@inlined
def holds(stored, k, value):
    """Whether a value meets constraint k."""
    if stored.negated[k]:
        return value < stored.low[k] or value > stored.high[k]
    return stored.low[k] <= value and value <= stored.high[k]


@kernel
def accepts(stored, slot, event):
    """Whether an event (f8[M], NaN = missing) meets every constraint of a slot. O(constraints)."""
    for k in range(stored.start[slot], stored.end[slot]):
        value = event[stored.attribute[k]]
        if stored.negated[k]:
            if not (value < stored.low[k] or value > stored.high[k]):
                return False
        elif not (stored.low[k] <= value and value <= stored.high[k]):
            return False
    return True


@kernel
def keep_accepting(stored, event, slots, n_slots):
    """Keep those of slots[:n_slots] that accept the event, in place and in order; how many."""
    n_kept = 0
    for at in range(n_slots):
        slot = slots[at]
        if accepts(stored, slot, event):
            slots[n_kept] = slot
            n_kept += 1
    return n_kept


@kernel
def keep_accepted(subscription, events, slots, n_slots):
    """Keep those of slots[:n_slots] whose events (f8[Q, M]) slot 0 of a subscription accepts.

    In place and in order; returns how many.
    """
    n_kept = 0
    for at in range(n_slots):
        slot, is_accepted, k = slots[at], True, subscription.start[0]
        while is_accepted and k < subscription.end[0]:
            is_accepted = holds(subscription, k, events[slot, subscription.attribute[k]])
            k += 1
        if is_accepted:
            slots[n_kept] = slot
            n_kept += 1
    return n_kept


@kernel
def close_ends(low, high, low_open, high_open, negated):
    """Move open ends one float64 in, NaN to infinity; return the kinds of constraints there are.

    low, high: f8[K], written. low_open, high_open: b1[K] (or empty: all closed). negated: u1[K].
    O(K).
    """
    kinds = 0
    for k in range(low.size):
        if np.isnan(low[k]):
            low[k] = -np.inf
        elif low_open.size and low_open[k]:
            low[k] = np.nextafter(low[k], np.inf) if low[k] < np.inf else np.nan
            kinds |= OPEN
        if np.isnan(high[k]):
            high[k] = np.inf
        elif high_open.size and high_open[k]:
            high[k] = np.nextafter(high[k], -np.inf) if high[k] > -np.inf else np.nan
            kinds |= OPEN
        if negated[k]:
            kinds |= NOT_EQUAL
        elif low[k] == high[k]:
            kinds |= POINT
        elif low[k] == -np.inf or high[k] == np.inf:
            kinds |= ONE_SIDED
        else:
            kinds |= RANGE
    return kinds


@kernel
def find_hollow(start, low, high, negated, is_hollow):
    """Say of each of n subscriptions whether one of its intervals holds nothing. O(K).

    start: i8[n + 1]; low, high: f8[K], closed, NaN where an end was open at its far infinity;
    is_hollow: b1[n], written.
    """
    for row in range(is_hollow.size):
        is_hollow[row] = False
        for k in range(start[row], start[row + 1]):
            if not low[k] <= high[k]:
                is_hollow[row] = True


@kernel
def find_disorder(start, attribute, n_attributes):
    """The first subscription whose attributes do not ascend strictly below n_attributes, or -1."""
    for row in range(start.size - 1):
        before = -1
        for k in range(start[row], start[row + 1]):
            if attribute[k] <= before or attribute[k] >= n_attributes:
                return row
            before = attribute[k]
    return -1


@kernel
def count_bounded(low, high, start):
    """Write to start (i8[N + 1]) where each row's constraints begin: cells not both NaN. O(NM)."""
    start[0] = 0
    for row in range(low.shape[0]):
        n_bounded = 0
        for m in range(low.shape[1]):
            if not (np.isnan(low[row, m]) and np.isnan(high[row, m])):
                n_bounded += 1
        start[row + 1] = start[row] + n_bounded


@kernel
def fill_bounded(low, high, attribute, out_low, out_high):
    """Write the cells that are not both NaN one after another, with their columns. O(NM)."""
    k = 0
    for row in range(low.shape[0]):
        for m in range(low.shape[1]):
            if not (np.isnan(low[row, m]) and np.isnan(high[row, m])):
                attribute[k] = m
                out_low[k] = low[row, m]
                out_high[k] = high[row, m]
                k += 1


@kernel
def put(stored, n_used, slots, rows, table):
    """Copy the constraints of rows of a table to the end of the store; return the new end.

    n_used: entries of the store that are taken; slots, rows: i4[n], i8[n]; table: the tuple
    (start i8[N + 1], attribute, low, high, negated). O(constraints).
    """
    start, attribute, low, high, negated = table
    at = n_used
    for i in range(slots.size):
        slot = slots[i]
        stored.start[slot] = at
        for k in range(start[rows[i]], start[rows[i] + 1]):
            stored.attribute[at] = attribute[k]
            stored.low[at] = low[k]
            stored.high[at] = high[k]
            stored.negated[at] = negated[k]
            at += 1
        stored.end[slot] = at
    return at


@kernel
def move_together(old, new, n_slots):
    """Copy what slots hold from one store to another without gaps; return its length. O(P + K)."""
    at = 0
    for slot in range(n_slots):
        new.start[slot] = at
        for k in range(old.start[slot], old.end[slot]):
            new.attribute[at] = old.attribute[k]
            new.low[at] = old.low[k]
            new.high[at] = old.high[k]
            new.negated[at] = old.negated[k]
            at += 1
        new.end[slot] = at
    return at
