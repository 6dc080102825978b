"""Quick: from events of numbers, and perhaps a place, to vectors without looking at each value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.slots.lanes import LAT, LON, NUMBER
from tamis.values import Point

Quick = Callable[[Mapping[str, Any]], npt.NDArray[np.float64] | None]

_FLOATS, _FLOATS_AND_POINTS = {float}, {float, Point}
_LANES = {LON: object(), LAT: object()}  # keys that no attribute has
_NAN = float("nan")
_F8 = np.dtype(np.float64)


def quick_of(names: list[tuple[str, int]]) -> Quick:
    """The quickest way from an event to a vector, where all columns are of numbers or of a place.

    It takes events with values of type float, and a point as their place; of any other it makes
    None, of all events where columns are of something else.

    >>> quick = quick_of([("a", NUMBER), ("b", NUMBER)])
    >>> quick({"b": 2.0, "a": 1.0}), quick({"b": 2.0}), quick({"a": 1.0, "b": 2})
    (array([1., 2.]), array([nan,  2.]), None)
    """
    others = [(attribute, lane) for attribute, lane in names if lane != NUMBER]
    place = others[0][0] if others else None
    if others and sorted(others) != [(place, LON), (place, LAT)]:
        return lambda raw: None
    keys = [attribute if lane == NUMBER else _LANES[lane] for attribute, lane in names]
    padded = _padded(dict.fromkeys(keys, _NAN), place)
    return _all_of(keys, padded) if place is None and len(keys) > 1 else padded


def _all_of(names: list[Any], otherwise: Quick) -> Quick:
    """The way of events that have all of two attributes or more, and no others."""
    n_names, values_of, vector_of = len(names), itemgetter(*names), _vector_of(len(names))
    only_floats = [float] * n_names

    def quick(raw: Mapping[str, Any]) -> npt.NDArray[np.float64] | None:
        if len(raw) != n_names:
            return otherwise(raw)
        try:
            values = values_of(raw)
        except KeyError:  # instead of it, there is one that no column is of
            return None
        return vector_of(values) if [*map(type, values)] == only_floats else None

    return quick


def _vector_of(n: int) -> Callable[[Any], npt.NDArray[np.float64]]:
    """What makes a vector of n floats; quicker than NumPy, which asks each what it is."""
    pack, frombuffer = Struct(f"{n}d").pack, np.frombuffer
    return lambda values: frombuffer(bytearray(pack(*values)))


def _padded(empty: dict[Any, float], place: str | None) -> Quick:
    """The way of events that may lack some; ``empty``: NaN by attribute, a place's by its lanes."""
    n_columns = len(empty)

    def quick(raw: Mapping[str, Any]) -> npt.NDArray[np.float64] | None:
        kinds = {*map(type, raw.values())}
        made: dict[Any, Any] = {**empty, **raw}
        if kinds != _FLOATS:
            if kinds != _FLOATS_AND_POINTS or place is None:
                return None
            point = made.pop(place, None)
            if type(point) is not Point:
                return None
            made[_LANES[LON]], made[_LANES[LAT]] = point.lon, point.lat
        if len(made) != n_columns:
            return None
        try:
            return np.fromiter(made.values(), _F8, n_columns)
        except TypeError:  # another point
            return None

    return quick
