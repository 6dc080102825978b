"""Polygons: their edges, and whether a point lies inside, exactly where rounding matters too."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from tamis.kernels.tests import ACCEPTED, CHAIN, UNDECIDED, is_in_polygon
from tamis.values import Point, Polygon

_EDGES = 16  # of a chain


def chains_of(polygon: Polygon) -> list[float]:
    """The edges of every ring in chains, as ``kernels.tests.is_in_polygon`` reads them."""
    chains: list[float] = []
    edges: list[float] = []
    rings = [list(ring) for part in polygon.rings for ring in part]
    for ring in rings:
        for first in range(0, len(ring) - 1, _EDGES):
            corners = ring[first : first + _EDGES + 1]
            xs, ys = zip(*corners, strict=True)
            for (x1, y1), (x2, y2) in itertools.pairwise(corners):
                edges += (x1, y1, x2, y2)
            chains += (min(xs), max(xs), min(ys), max(ys), len(edges) // 4)
    return [len(chains) // CHAIN, *chains, *edges]


class Inside:
    """Whether points lie inside a polygon or on its border.

    >>> inside = Inside(Polygon([(0, 0), (3, 0), (0, 3)]))
    >>> inside(Point(1, 1)), inside(Point(1, 2)), inside(Point(2, 2))
    (True, True, False)
    """

    def __init__(self, polygon: Polygon) -> None:
        self._chains = np.array(chains_of(polygon), np.float64)
        self._edges = self._chains[1 + CHAIN * int(self._chains[0]) :]

    def __call__(self, point: Point) -> bool:
        """Whether the point lies inside or on the border."""
        said = is_in_polygon(point.lon, point.lat, self._chains, 0)
        return self._is_inside_exactly(point) if said == UNDECIDED else bool(said == ACCEPTED)

    def _is_inside_exactly(self, point: Point) -> bool:
        """Even-odd by the crossings of a ray to the right, in fractions."""
        x, y = Fraction(point.lon), Fraction(point.lat)
        edges = self._edges.reshape(-1, 4)
        low, high = np.fmin(edges[:, 1], edges[:, 3]), np.fmax(edges[:, 1], edges[:, 3])
        is_met = (low <= point.lat) & (point.lat <= high)
        is_met &= point.lon <= np.fmax(edges[:, 0], edges[:, 2])
        is_inside = False
        for edge in edges[is_met].tolist():
            x1, y1, x2, y2 = map(Fraction, edge)
            turn = (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)
            if turn == 0 and min(x1, x2) <= x:
                return True
            if (y1 <= y) != (y2 <= y) and (turn > 0) == (y2 > y1):
                is_inside = not is_inside
        return is_inside
