"""Polygons: their edges, and whether a point lies inside, exactly where rounding matters too."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain

import numpy as np

from tamis.kernels.polygons import CHAIN, HEADER, UNKNOWN, fill_cells, is_in_polygon
from tamis.kernels.verdicts import ACCEPTED, UNDECIDED
from tamis.values import Point, Polygon

_EDGES = 16  # of a chain
_MIN_CORNERS = 32  # with fewer the chains are quick
_MOST_CELLS = 64  # a side
_NO_CORNER = (math.nan, math.nan)


def chains_of(polygon: Polygon) -> list[float]:
    """A polygon as ``kernels.polygons`` reads it."""
    chains: list[float] = []
    held: list[tuple[float, float]] = []  # corners
    for ring in (list(ring) for part in polygon.rings for ring in part):
        for first in range(0, len(ring) - 1, _EDGES):
            xs, ys = zip(*ring[first : first + _EDGES + 1], strict=True)
            begin = len(held) + first
            chains += (min(xs), max(xs), min(ys), max(ys), begin, begin + len(xs) - 1)
        held += [*ring, _NO_CORNER]
    grid = _grid_over(polygon, len(held))
    n_cells = int(grid[0])
    numbers = [len(chains) // CHAIN, *grid, *chains, *[UNKNOWN] * n_cells**2, *chain(*held)]
    if not n_cells:
        return numbers
    filled = np.array(numbers)
    fill_cells(filled, 0)
    return list(map(float, filled))


def _grid_over(polygon: Polygon, n_corners: int) -> tuple[float, float, float, float, float]:
    """Cells a side, the least x and y, cells a unit of x and of y; about two cells for a corner."""
    west, south, east, north = polygon.bounds
    if n_corners < _MIN_CORNERS or not (east > west and north > south):
        return 0.0, 0.0, 0.0, 0.0, 0.0
    n_cells = min(_MOST_CELLS, math.ceil(math.sqrt(2 * n_corners)))
    return n_cells, west, south, n_cells / (east - west), n_cells / (north - south)


class Inside:
    """Whether points lie inside a polygon or on its border.

    >>> inside = Inside(Polygon([(0, 0), (3, 0), (0, 3)]))
    >>> inside(Point(1, 1)), inside(Point(1, 2)), inside(Point(2, 2))
    (True, True, False)
    """

    def __init__(self, polygon: Polygon) -> None:
        self._chains = np.array(chains_of(polygon), np.float64)
        n_chains, n_cells = map(int, self._chains[:2])
        self._corners = self._chains[HEADER + CHAIN * n_chains + n_cells**2 :].reshape(-1, 2)

    def __call__(self, point: Point) -> bool:
        """Whether the point lies inside or on the border."""
        said = is_in_polygon(point.lon, point.lat, self._chains, 0)
        return self._is_inside_exactly(point) if said == UNDECIDED else bool(said == ACCEPTED)

    def _is_inside_exactly(self, point: Point) -> bool:
        """Even-odd by the crossings of a ray to the right, in fractions."""
        x, y = Fraction(point.lon), Fraction(point.lat)
        edges = np.hstack([self._corners[:-1], self._corners[1:]])
        low, high = np.minimum(edges[:, 1], edges[:, 3]), np.maximum(edges[:, 1], edges[:, 3])
        is_met = (low <= point.lat) & (point.lat <= high)  # never between rings
        is_met &= point.lon <= np.maximum(edges[:, 0], edges[:, 2])
        is_inside = False
        for edge in edges[is_met].tolist():
            x1, y1, x2, y2 = map(Fraction, edge)
            turn = (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)
            if turn == 0 and min(x1, x2) <= x:
                return True
            if (y1 <= y) != (y2 <= y) and (turn > 0) == (y2 > y1):
                is_inside = not is_inside
        return is_inside
