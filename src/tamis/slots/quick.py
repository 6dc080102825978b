"""Quick: from events of numbers, and perhaps a place, to vectors without looking at each value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.slots.lanes import LAT, LON, NUMBER
from tamis.values import Point

_FLOATS, _FLOATS_AND_POINTS = {float}, {float, Point}
_LANES = {LON: object(), LAT: object()}  # keys that no attribute has
_NAN = float("nan")


class Quick(NamedTuple):
    """The quickest way from events to vectors, where all columns are of numbers, or of a place."""

    n_columns: int
    can: bool  # whether there is such a way
    empty: dict[Any, float]  # NaN by attribute, in the order of columns; of a place by its lanes
    place: str | None = None  # the attribute of the place

    def vector(self, raw: Mapping[str, Any]) -> npt.NDArray[np.float64] | None:
        """An event with values of type float, and a point as its place; None of any other."""
        kinds = {*map(type, raw.values())}
        made: dict[Any, Any] = {**self.empty, **raw}
        if kinds != _FLOATS:
            if kinds != _FLOATS_AND_POINTS or self.place is None:
                return None
            point = made.pop(self.place, None)
            if type(point) is not Point:
                return None
            made[_LANES[LON]], made[_LANES[LAT]] = point.lon, point.lat
        if len(made) != self.n_columns:
            return None
        try:
            return np.fromiter(made.values(), np.float64, self.n_columns)
        except TypeError:  # another point
            return None


def quick_of(names: list[tuple[str, int]]) -> Quick:
    """The quick way for some columns."""
    others = [(attribute, lane) for attribute, lane in names if lane != NUMBER]
    place = others[0][0] if others else None
    if others and sorted(others) != [(place, LON), (place, LAT)]:
        return Quick(len(names), False, {})
    keys = [attribute if lane == NUMBER else _LANES[lane] for attribute, lane in names]
    return Quick(len(names), True, dict.fromkeys(keys, _NAN), place)
