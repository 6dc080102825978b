"""Places: the coordinates that subscriptions move to, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidValue, quoted
from tamis.values import Point
from tamis.values.shapes import NEAREST

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


def check_places(
    ids: Sequence[str], lon: npt.ArrayLike, lat: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Longitudes and latitudes of ids as arrays of float64."""
    try:
        lons, lats = (np.array(side, np.float64, ndmin=1) for side in (lon, lat))
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"the places are not arrays of numbers: {error}") from None
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
