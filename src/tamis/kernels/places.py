"""Places: values mapped to [0, 1], numbers by the domain and texts by a table.

A place never decreases with a number, whatever is rounded; equal texts have equal places.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined


class Places(NamedTuple):
    """How values of M attributes map to [0, 1]: numbers by the domain."""

    low: Array  # f8[M]
    width: Array  # f8[M], above 0
    text_row: Array  # i8[M], -1 for numbers
    text_place: Array  # f8[R, T], by the number of the text


@inlined
def place_of(places, m, value):
    """Where a value (not NaN) of attribute m lies, from 0 to 1. A text nobody named lies at 0."""
    row = places.text_row[m]
    if row < 0:
        return min(max((value - places.low[m]) / places.width[m], 0.0), 1.0)
    bits, number = np.int64(0), np.int64(0)
    if value >= 0 and value < 1:
        bits = np.int64(value * 2.0**32)
    for _ in range(32):  # the code of a text is its number with the bits reversed
        number = 2 * number + (bits & 1)
        bits >>= 1
    return places.text_place[row, number] if number < places.text_place.shape[1] else 0.0


@inlined
def place_cell(place, n_cells):
    """The one of n_cells disjoint cells that holds a place."""
    return min(np.int64(place * n_cells), n_cells - 1)
