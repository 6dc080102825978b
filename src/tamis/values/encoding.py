"""Values as JSON: plain where JSON has the kind, GeoJSON or a ``$``-object where it has not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tamis.errors import InvalidValue, quoted
from tamis.values.kinds import Value, check_value
from tamis.values.ranges import Range
from tamis.values.shapes import Point, Polygon
from tamis.values.timestamps import parse_timestamp, timestamp_text

_SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf}
_KEYS = (
    ("$timestamp",), ("$number",), ("$range", "ends"), ("type", "coordinates", "bbox"),
)  # fmt: skip
_GEOJSON = frozenset({"Point", "Polygon", "MultiPolygon"})


def value_to_json(value: Value) -> Any:
    """The JSON form of a value.

    >>> value_to_json(Range(1, 2, "[)"))
    {'$range': [1, 2], 'ends': '[)'}
    >>> value_to_json(Point(1.5, 2))
    {'type': 'Point', 'coordinates': [1.5, 2.0]}
    """
    if isinstance(value, datetime):
        return {"$timestamp": timestamp_text(value)}
    if isinstance(value, Point):
        return {"type": "Point", "coordinates": [value.lon, value.lat]}
    if isinstance(value, Polygon):
        return value.to_geojson()
    if isinstance(value, Range):
        borders = [None if b is None else value_to_json(b) for b in (value.low, value.high)]
        return {"$range": borders, "ends": value.ends}
    if isinstance(value, float) and math.isinf(value):
        return {"$number": "Infinity" if value > 0 else "-Infinity"}
    return value


def is_json_value(raw: Mapping[str, Any]) -> bool:
    """Whether a JSON object stands for one value, rather than for nested attributes."""
    if any(key in raw for key in ("$timestamp", "$range", "$number")):
        return True
    return _is_geojson(raw) and "coordinates" in raw


def _is_geojson(raw: Mapping[str, Any]) -> bool:
    kind = raw.get("type")
    return isinstance(kind, str) and kind in _GEOJSON


def value_from_json(raw: Any) -> Value | None:
    """The value a JSON form stands for; None where it is missing (null, NaN).

    >>> value_from_json({"$range": [1, None]})
    Range(low=1, high=None, ends='[]')
    """
    if not isinstance(raw, Mapping):
        return check_value(raw)
    _check_keys(raw)
    if "$timestamp" in raw:
        return _timestamp_from_json(raw["$timestamp"])
    if "$number" in raw:
        special = _SPECIAL.get(raw["$number"]) if isinstance(raw["$number"], str) else None
        if special is None:
            raise InvalidValue(f"{quoted(raw['$number'])} is not one of {', '.join(_SPECIAL)}")
        return special
    if "$range" in raw:
        return _range_from_json(raw)
    if raw.get("type") == "Point":
        return _point_from_json(raw)
    if _is_geojson(raw):
        return Polygon.from_geojson(raw)
    raise InvalidValue(
        f"the object {quoted(raw)} is not a value; expected GeoJSON (Point, Polygon, "
        "MultiPolygon), $range, $timestamp or $number"
    )


def _check_keys(raw: Mapping[str, Any]) -> None:
    """A misspelt key would otherwise change the meaning unseen."""
    for key, *others in _KEYS:
        if key in raw and (key != "type" or _is_geojson(raw)):
            unknown = [one for one in raw if one != key and one not in others]
            if unknown:
                raise InvalidValue(f"unknown key {quoted(unknown[0])} beside {quoted(key)}")


def _timestamp_from_json(text: Any) -> datetime:
    moment = parse_timestamp(text) if isinstance(text, str) else None
    if moment is None:
        raise InvalidValue(f"{quoted(text)} is not a timestamp; expected e.g. 2026-01-31T12:00:00Z")
    return moment


def _range_from_json(raw: Mapping[str, Any]) -> Range:
    borders = raw["$range"]
    if not isinstance(borders, list | tuple) or len(borders) != 2:
        raise InvalidValue(f"$range {quoted(borders)} is not a list of two borders, [low, high]")
    low, high = (None if border is None else value_from_json(border) for border in borders)
    if (low is None) != (borders[0] is None) or (high is None) != (borders[1] is None):
        raise InvalidValue("NaN cannot bound a range; use null for an absent border")
    return Range(low, high, raw.get("ends", "[]"))  # type: ignore[arg-type]  # Range checks


def _point_from_json(raw: Mapping[str, Any]) -> Point:
    pair = raw.get("coordinates")
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise InvalidValue(f"point coordinates {quoted(pair)} are not [lon, lat]")
    return Point(pair[0], pair[1])
