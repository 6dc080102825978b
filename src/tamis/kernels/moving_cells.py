"""Cells of the globe in which subscriptions that move are found by their places.

There are levels of cells, the wider for the larger radii. A level cuts the globe into bands of
latitude, and each band into cells of longitude that are about as wide as the band is high, so
there are fewer towards the poles. Somebody is in the cell of the place alone; whoever looks for
those near a point visits all cells from which a radius of that level may reach it.

Cells are found by arithmetic that is exact to the last bit everywhere: they are kept in files.
"""

from __future__ import annotations

import math

import numpy as np

from tamis.kernels.compiled import inlined, kernel

EARTH_RADIUS_M = 6_371_008.8
SMALLEST_M = 64.0  # the radius of level 0; each further level has twice the one before
N_LEVELS = 20  # the last holds every circle there is

DEGREES_A_METRE = 180.0 / math.pi / EARTH_RADIUS_M
FINE, COARSE = 0.5, 1.0  # sides of cells, in radii of their level: in the base, in a delta
MARGIN = 1e-9  # degrees, and as part of an angle: far more than what rounding makes of it


@inlined
def level_of(radius_m):
    """The first level whose radius is at least this."""
    level, radius = 0, SMALLEST_M
    while level < N_LEVELS - 1 and radius < radius_m:
        level, radius = level + 1, 2.0 * radius
    return level


@inlined
def reach_of(level):
    """The radius of a level in degrees."""
    return SMALLEST_M * DEGREES_A_METRE * np.float64(1 << level)


@inlined
def band_of(lat, side):
    """The band of a latitude; never decreases with it."""
    return np.int64((min(max(lat, -90.0), 90.0) + 90.0) / side)


@inlined
def count_cells(band, side):
    """How many cells a band has, by the parallel of it that is next to the equator."""
    south = band * side - 90.0
    inner = min(max(south, -(south + side), 0.0), 90.0)
    # Bhaskara's formula: within 2 % of the cosine, also of a small one.
    width = (32_400.0 - 4.0 * inner * inner) / (32_400.0 + inner * inner)
    return max(np.int64(360.0 * width / side), 1)


@inlined
def cell_of(lon, n_cells):
    """The cell of a longitude from -180 to 180; never decreases with it."""
    return min(np.int64((lon + 180.0) / 360.0 * n_cells), n_cells - 1)


@inlined
def key_of(level, band, cell):
    """A number for a cell; neighbours in a band have consecutive ones."""
    return (np.int64(level) << 44) | (np.int64(band) << 22) | np.int64(cell)


@kernel
def key_at(level, lon, lat, share):
    """The cell of a place, with sides of FINE or COARSE. O(1)."""
    side = share * reach_of(level)
    band = band_of(lat, side)
    return key_of(level, band, cell_of(lon, count_cells(band, side)))


@kernel
def spread_of(lat, reach):
    """How many degrees of longitude a circle extends to each side, a little more; 360: all.

    ``lat``, ``reach``: of its center and its radius, in degrees. O(1).
    """
    reach += reach * MARGIN + MARGIN
    if abs(lat) + reach >= 90.0:
        return 360.0
    ratio = math.sin(math.radians(reach)) / math.cos(math.radians(lat))
    spread = math.degrees(math.asin(min(1.0, ratio)))
    return spread + spread * MARGIN + MARGIN
