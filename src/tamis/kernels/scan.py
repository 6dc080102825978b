"""Scan: slots checked one after another; for the head, and for events that are not plain."""

from __future__ import annotations

from typing import NamedTuple

from tamis.kernels.compiled import Array, kernel


class Constraints(NamedTuple):
    """The constraints of P slots: those of slot p are ``start[p]`` to ``start[p + 1]``."""

    start: Array  # i8[P + 1], ascending
    column: Array  # i4[K], unique within a slot
    low: Array  # f8[K]
    high: Array  # f8[K]


class Boxes(NamedTuple):
    """P slots that all constrain the same C columns."""

    columns: Array  # i4[C]
    bounds: Array  # f8[P, C, 2], low and high


@kernel
def scan(constraints, n_slots, low, high, out):
    """Write to ``out`` the slots whose every interval meets the event's; return their number.

    ``low``, ``high``: f8[M], the event's interval in each column, NaN where it has no value
    (the same array twice for a plain event). O(constraints).
    """
    n_out = 0
    for slot in range(n_slots):
        accepted = True
        for k in range(constraints.start[slot], constraints.start[slot + 1]):
            column = constraints.column[k]
            if not (constraints.low[k] <= high[column] and low[column] <= constraints.high[k]):
                accepted = False
                break
        if accepted:
            out[n_out] = slot
            n_out += 1
    return n_out


@kernel
def scan_boxes(boxes, low, high, out):
    """``scan`` for slots that all constrain the same columns. O(P x C)."""
    n_out = 0
    for slot in range(boxes.bounds.shape[0]):
        accepted = True
        for c in range(boxes.columns.size):
            column = boxes.columns[c]
            if not (
                boxes.bounds[slot, c, 0] <= high[column] and low[column] <= boxes.bounds[slot, c, 1]
            ):
                accepted = False
                break
        if accepted:
            out[n_out] = slot
            n_out += 1
    return n_out
