"""Points and polygons on the plane of longitude and latitude, and distance on the globe."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from shapely.geometry import MultiPolygon as _MultiPolygon
from shapely.geometry import Polygon as _Polygon

from tamis.errors import InvalidValue, quoted, shortened
from tamis.values.numeric import check_integer

EARTH_RADIUS_M = 6_371_008.8  # mean radius of the IUGG

Ring = Sequence[tuple[float, float]]

_FARTHEST = 1e100  # products of larger coordinates overflow, and points would lie on any side
_BORDER = 1e-12  # times the greatest coordinate: nearer to a border, rounding may matter
NEAREST = 1e-100  # what is nearer to zero counts as zero, for the same reason

# The beginning of well-known text we read; a third (Z) or measured (M) coordinate is not.
_WKT = re.compile(r"\s*(?:MULTI)?POLYGON\s*(?:\(|EMPTY)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Point:
    """A point (Vertex in the paper); x is the longitude, y the latitude.

    >>> Point(37.6, 55.75).lat
    55.75
    """

    lon: float
    lat: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lon", coordinate(self.lon))
        object.__setattr__(self, "lat", coordinate(self.lat))

    @property
    def is_place(self) -> bool:
        """Whether the coordinates are a place on the globe, so that distance has a meaning."""
        return abs(self.lon) <= 180 and abs(self.lat) <= 90


def coordinate(number: object) -> float:
    """A number as a coordinate; whatever is not finite, or no number, is refused.

    >>> coordinate(52)
    52.0
    """
    if isinstance(number, np.integer | np.floating):
        number = number.item()
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InvalidValue(f"{quoted(number)} is not a coordinate; give a finite number")
    if isinstance(number, int):
        number = check_integer(number)
    if not math.isfinite(number):
        raise InvalidValue(f"coordinate {quoted(number)} is not finite")
    return 0.0 if abs(number) < NEAREST else float(number)


def distance_m(a: Point, b: Point) -> float:
    """Great-circle distance in metres by the haversine formula on the mean radius.

    >>> round(distance_m(Point(0, 0), Point(0, 1)))
    111195
    """
    phi_a, phi_b = math.radians(a.lat), math.radians(b.lat)
    across = math.sin((phi_b - phi_a) / 2) ** 2
    along = math.sin(math.radians(b.lon - a.lon) / 2) ** 2
    h = across + math.cos(phi_a) * math.cos(phi_b) * along
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, h)))


def box_around(center: Point, metres: float) -> tuple[float, float, float, float]:
    """The smallest box of longitudes and latitudes that holds a circle: lon1, lat1, lon2, lat2.

    Its sides are twice ``metres`` long. It has ``lon1 > lon2`` where it meets the antimeridian,
    and all longitudes where it reaches a pole.

    >>> [round(border, 3) for border in box_around(Point(179.5, 0), 111_195)]
    [178.5, -1.0, -179.5, 1.0]
    """
    angle = min(metres / EARTH_RADIUS_M, math.pi)
    reach = math.degrees(angle)
    south, north = center.lat - reach, center.lat + reach
    if south <= -90 or north >= 90:
        return -180.0, max(south, -90.0), 180.0, min(north, 90.0)
    # The easternmost point of a circle on the globe lies at this longitude.
    ratio = math.sin(angle) / math.cos(math.radians(center.lat))
    spread = math.degrees(math.asin(min(1.0, ratio)))
    west, east = center.lon - spread, center.lon + spread
    # 180 and -180 are one meridian, so that a box that ends there holds both.
    return (
        west + 360 if west <= -180 else west, south, east - 360 if east >= 180 else east, north
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Polygon:
    """A polygon, perhaps of several parts and with holes; its border belongs to it.

    >>> square = Polygon([(0, 0), (2, 0), (2, 2), (0, 2)])
    >>> square.contains(Point(2, 1)), square.contains(Point(2.1, 1))
    (True, False)
    """

    geometry: _Polygon | _MultiPolygon = field(repr=False)

    def __init__(self, shape: Ring | _Polygon | _MultiPolygon, holes: Sequence[Ring] = ()) -> None:
        if isinstance(shape, _Polygon | _MultiPolygon):
            geometry = shape
        else:
            given: object = holes
            if isinstance(given, str) or not isinstance(given, Sequence):
                raise InvalidValue(f"the holes {quoted(given)} are no list of rings")
            geometry = _Polygon(_check_ring(shape), [_check_ring(hole) for hole in holes])
        object.__setattr__(self, "geometry", _check_geometry(geometry))

    @classmethod
    def from_wkt(cls, text: str) -> Polygon:
        """Read well-known text, ``POLYGON ((...))`` or ``MULTIPOLYGON (((...)))``."""
        if not isinstance(text, str) or _WKT.match(text) is None:
            raise InvalidValue(f"{quoted(text)} is not a POLYGON or MULTIPOLYGON (( … ))")
        try:
            with np.errstate(all="ignore"):  # NaN and 1e400 are refused below, with a reason
                geometry = shapely.from_wkt(text)
        except shapely.errors.ShapelyError as error:
            reason = shortened(str(error))
            raise InvalidValue(f"{quoted(text)} is not well-known text: {reason}") from None
        return cls(_as_polygonal(geometry, text))

    @classmethod
    def from_geojson(cls, shape: Mapping[str, Any]) -> Polygon:
        """Read a GeoJSON object of type Polygon or MultiPolygon."""
        if not isinstance(shape, Mapping):
            raise InvalidValue(f"{quoted(shape)} is not a GeoJSON Polygon or MultiPolygon")
        kind, coordinates = shape.get("type"), shape.get("coordinates")
        if kind not in ("Polygon", "MultiPolygon") or not isinstance(coordinates, Sequence):
            raise InvalidValue(f"{quoted(shape)} is not a GeoJSON Polygon or MultiPolygon")
        if unknown := [key for key in shape if key not in ("type", "coordinates", "bbox")]:
            raise InvalidValue(f"unknown key {quoted(unknown[0])} in a GeoJSON {kind}")
        parts = [coordinates] if kind == "Polygon" else coordinates
        polygons = [_polygon_of_rings(rings) for rings in parts]
        return cls(polygons[0] if kind == "Polygon" else _MultiPolygon(polygons))

    @property
    def rings(self) -> list[list[list[tuple[float, float]]]]:
        """Coordinates as part, then ring (the outer one first), then point."""
        return [
            [[(x, y) for x, y, *_ in ring.coords] for ring in (part.exterior, *part.interiors)]
            for part in shapely.get_parts(self.geometry)
        ]

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Smallest lon and lat, then greatest lon and lat."""
        lon1, lat1, lon2, lat2 = self.geometry.bounds
        return lon1, lat1, lon2, lat2

    def contains(self, point: Point) -> bool:
        """Whether the point lies inside or on the border.

        Shapely rounds, so what is next to a border is decided in fractions.
        """
        border, reach, (west, south, east, north) = self._border
        if not (west <= point.lon <= east and south <= point.lat <= north):
            return False
        if shapely.dwithin(border, shapely.points(point.lon, point.lat), reach):
            return _is_inside(point, self.rings)
        return bool(shapely.intersects_xy(self.geometry, point.lon, point.lat))

    @cached_property
    def _border(self) -> tuple[Any, float, tuple[float, float, float, float]]:
        """The border, how far from it the word of shapely counts, and the bounds."""
        border, bounds = shapely.boundary(self.geometry), self.bounds
        shapely.prepare(border)
        return border, _BORDER * max(map(abs, bounds)), bounds

    def to_geojson(self) -> dict[str, Any]:
        """The GeoJSON object of this polygon."""
        parts = [[[list(xy) for xy in ring] for ring in part] for part in self.rings]
        if isinstance(self.geometry, _Polygon):
            return {"type": "Polygon", "coordinates": parts[0]}
        return {"type": "MultiPolygon", "coordinates": parts}

    def to_wkt(self) -> str:
        """Well-known text in which every coordinate reads back exactly."""
        parts = [f"({', '.join(map(_ring_text, part))})" for part in self.rings]
        if isinstance(self.geometry, _Polygon):
            return f"POLYGON {parts[0]}"
        return f"MULTIPOLYGON ({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polygon) and self.geometry.wkb == other.geometry.wkb

    def __hash__(self) -> int:
        return hash(self.geometry.wkb)

    def __repr__(self) -> str:
        return f"Polygon.from_wkt({self.to_wkt()!r})"


def _is_inside(point: Point, parts: Sequence[Sequence[Ring]]) -> bool:
    """Whether a point is on a ring, or a ray to the right crosses them an odd number of times."""
    x, y = point.lon, point.lat
    n_crossed = 0
    edges = (edge for rings in parts for ring in rings for edge in pairwise(ring))
    for (x1, y1), (x2, y2) in edges:
        if not min(y1, y2) <= y <= max(y1, y2):
            continue
        turn = _product(x1, x2, y1, y) - _product(x1, x, y1, y2)
        if turn == 0 and min(x1, x2) <= x <= max(x1, x2):
            return True
        n_crossed += (y1 <= y) != (y2 <= y) and (turn > 0) == (y1 < y2)
    return n_crossed % 2 == 1


def _product(x1: float, x2: float, y1: float, y2: float) -> Fraction:
    """(x2 - x1) * (y2 - y1), exactly."""
    return (Fraction(x2) - Fraction(x1)) * (Fraction(y2) - Fraction(y1))


def _ring_text(ring: Ring) -> str:
    return "(" + ", ".join(f"{lon!r} {lat!r}" for lon, lat in ring) + ")"


def _polygon_of_rings(rings: object) -> _Polygon:
    if not isinstance(rings, Sequence) or isinstance(rings, str) or not rings:
        raise InvalidValue("a polygon needs a list of rings, the outer one first")
    outer, *holes = [_check_ring(ring) for ring in rings]
    for ring in (outer, *holes):
        if ring[0] != ring[-1]:
            raise InvalidValue("a ring is not closed; its last point must be its first again")
    return _Polygon(outer, holes)


def _check_ring(ring: object) -> list[tuple[float, float]]:
    if not isinstance(ring, Sequence) or isinstance(ring, str):
        raise InvalidValue(f"{quoted(ring)} is not a ring; give a list of (lon, lat)")
    points = []
    for pair in ring:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InvalidValue(f"{quoted(pair)} is not a point of a ring; give (lon, lat)")
        points.append((coordinate(pair[0]), coordinate(pair[1])))
    if len(set(points)) < 3:
        raise InvalidValue(f"a ring of {len(set(points))} different points; it needs at least 3")
    return points


def _as_polygonal(geometry: object, text: str) -> _Polygon | _MultiPolygon:
    if isinstance(geometry, _Polygon | _MultiPolygon):
        return geometry
    raise InvalidValue(f"{quoted(text)} is not a POLYGON or MULTIPOLYGON")


def _check_geometry(geometry: _Polygon | _MultiPolygon) -> _Polygon | _MultiPolygon:
    if geometry.is_empty:
        raise InvalidValue("the polygon is empty; give at least 3 points")
    if geometry.has_z:
        raise InvalidValue("the polygon has a third coordinate; give longitude and latitude only")
    if any(part.is_empty for part in shapely.get_parts(geometry)):
        raise InvalidValue("a part of the polygon is empty; leave it out")
    coordinates = shapely.get_coordinates(geometry)
    if not bool((abs(coordinates) < math.inf).all()):
        raise InvalidValue("the polygon has a coordinate that is not finite")
    if bool((abs(coordinates) > _FARTHEST).any()):
        raise InvalidValue(f"the polygon has a coordinate beyond {_FARTHEST:g}")
    is_zero = (abs(coordinates) < NEAREST) & (coordinates != 0)
    if bool(is_zero.any()):
        geometry = shapely.set_coordinates(geometry, np.where(is_zero, 0.0, coordinates))
    if not geometry.is_valid:
        reason = shapely.is_valid_reason(geometry)
        raise InvalidValue(f"the polygon is not valid: {reason}; its rings must not cross")
    # A collection inside a polygon's place cannot occur; preparing makes later tests quick.
    shapely.prepare(geometry)
    return geometry
