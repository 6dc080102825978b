"""Places: the coordinates that subscriptions move to, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidSubscription, InvalidValue, quoted
from tamis.values import Point
from tamis.values.shapes import NEAREST, coordinate

Floats = npt.NDArray[np.float64]


def check_place(lon: float, lat: float) -> tuple[float, float]:
    """A longitude and a latitude as float64."""
    if type(lon) is not float or type(lat) is not float or min(abs(lon), abs(lat)) < NEAREST:
        point = Point(lon, lat)
        lon, lat = point.lon, point.lat
    if -180.0 <= lon <= 180.0 and -90.0 <= lat <= 90.0:
        return lon, lat
    raise InvalidValue(_message(lon, lat))


def _message(lon: float, lat: float) -> str:
    return (
        f"({lon}, {lat}) is not a place; expected a longitude from -180 to 180 and a latitude from "
        "-90 to 90, in this order"
    )


def check_ids(ids: Iterable[str]) -> list[str]:
    """The ids of those that move."""
    given: object = ids
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidSubscription(
            f"the ids are {quoted(given)}; expected a list of ids, use move() for one"
        )
    return list(given)


def check_places(
    ids: Sequence[str], lon: npt.ArrayLike, lat: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Longitudes and latitudes of ids as arrays of float64."""
    lons, lats = _numbers("lon", lon), _numbers("lat", lat)
    for name, side in (("lon", lons), ("lat", lats)):
        if side.shape != (len(ids),):
            raise InvalidValue(
                f"{name} has shape {side.shape} for {len(ids)} ids; expected a number for each"
            )
    is_place = (abs(lons) <= 180) & (abs(lats) <= 90)
    if not is_place.all():
        first = int(np.argmin(is_place))
        raise InvalidValue(f"{quoted(ids[first])}: {_message(lons[first], lats[first])}")
    for side in (lons, lats):
        side[abs(side) < NEAREST] = 0.0
    return lons, lats


def _numbers(name: str, given: npt.ArrayLike) -> Floats:
    """Coordinates as a new array of float64; those that ``move`` refuses are refused."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        first = int(np.flatnonzero(np.ma.getmaskarray(given))[0])
        raise InvalidValue(
            f"{name} is masked at {first}; expected a number for each id, leave out those without"
        )
    if isinstance(given, list | tuple) and {*map(type, given)} - {float}:
        return np.array([coordinate(one) for one in given], np.float64)
    made = np.array(given, ndmin=1)
    if made.dtype.kind == "O" and made.ndim == 1:
        return np.array([coordinate(one) for one in made], np.float64)
    if made.dtype.kind not in "fiu":
        raise InvalidValue(
            f"{name} is {quoted(given)}, an array of {made.dtype}; expected an array of numbers"
        )
    return made.astype(np.float64)
