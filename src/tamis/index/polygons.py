"""Polygons: their edges, and whether a point lies inside, exactly where rounding matters too."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from tamis.kernels.tests import ACCEPTED, UNDECIDED, is_in_polygon
from tamis.values import Point, Polygon


def edges_of(polygon: Polygon) -> list[float]:
    """x1, y1, x2, y2 of every edge of every ring."""
    return [
        coordinate
        for part in polygon.rings
        for ring in part
        for (x1, y1), (x2, y2) in itertools.pairwise(ring)
        for coordinate in (x1, y1, x2, y2)
    ]


class Inside:
    """Whether points lie inside a polygon or on its border.

    >>> inside = Inside(Polygon([(0, 0), (3, 0), (0, 3)]))
    >>> inside(Point(1, 1)), inside(Point(1, 2)), inside(Point(2, 2))
    (True, True, False)
    """

    def __init__(self, polygon: Polygon) -> None:
        self._edges = np.array(edges_of(polygon), np.float64)

    def __call__(self, point: Point) -> bool:
        """Whether the point lies inside or on the border."""
        said = is_in_polygon(point.lon, point.lat, self._edges, 0, len(self._edges))
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
