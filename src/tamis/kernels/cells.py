"""Cells: the domain of an attribute cut into equal parts.

``cell_of`` never decreases with the value, whatever is rounded. So a value in a lower cell is
lower: what lies beyond the cell of an event's value needs no comparison.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.kernels.compiled import Array, inlined


class Domains(NamedTuple):
    """The domains of M attributes. Values outside belong to the first or the last cell."""

    low: Array  # f8[M]
    width: Array  # f8[M], above 0


@inlined
def cell_of(domains, m, value, n_cells):
    """The cell, of n_cells, that holds a value (not NaN) of attribute m."""
    place = (value - domains.low[m]) / domains.width[m] * n_cells
    if not place > 0:
        return 0
    return n_cells - 1 if place >= n_cells else int(place)
