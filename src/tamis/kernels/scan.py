"""Scan: slots checked one after another; for the head, and for events that are not plain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.compiled import kernel


class Constraints(NamedTuple):
    """The constraints of P slots: those of slot p are ``start[p]`` to ``start[p + 1]``."""

    start: npt.NDArray[np.int64]  # i8[P + 1], ascending
    column: npt.NDArray[np.int32]  # i4[K], unique within a slot
    low: npt.NDArray[np.float64]  # f8[K]
    high: npt.NDArray[np.float64]  # f8[K]


class Boxes(NamedTuple):
    """P slots that all constrain the same C columns."""

    columns: npt.NDArray[np.int32]  # i4[C]
    bounds: npt.NDArray[np.float64]  # f8[P, C, 2], low and high


@kernel
def scan(constraints, n_slots, low, high, out):  # type: ignore[no-untyped-def]
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
def scan_boxes(boxes, low, high, out):  # type: ignore[no-untyped-def]
    """``scan`` for slots that all constrain the same columns. O(P x C)."""
    n_out = 0
    for slot in range(boxes.bounds.shape[0]):
        accepted = True
        for c in range(boxes.columns.size):
            column = boxes.columns[c]
            if not (
                boxes.bounds[slot, c, 0] <= high[column]
                and low[column] <= boxes.bounds[slot, c, 1]
            ):
                accepted = False
                break
        if accepted:
            out[n_out] = slot
            n_out += 1
    return n_out
