"""Datasets of boxes: subscriptions and events as the papers describe them, seeded."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.bench.workloads import SEED, Floats, Workload, make_w1
from tamis.model.subscription import DEFAULT_PRIORITY

N_EVENTS = 200
_N_WARM_UP = 20
N_LEVELS = 10

Random = np.random.Generator


def scaled(n: float, scale: float) -> int:
    """So many at a scale, ten at least."""
    return max(10, round(n * scale))


def gem_boxes(n: int, m: int = 10, theta: float = 0.5) -> Workload:
    """GEM, section III: low in [0, 1-θ], high in [θ, 1], ends open or closed at random."""
    return make_w1(n, m=m, theta=theta, n_events=N_EVENTS)


def dexin_boxes(
    n: int,
    m: int = 10,
    *,
    theta: float | None = None,
    levels: int = 10_000,
    points: float = 0.1,
    zipf: npt.ArrayLike = 0.0,
) -> Workload:
    """DEXIN, section 4: θ from [0.2, 0.8] each unless given, a share of points, η levels.

    ``zipf`` is the exponent of the levels of all attributes or of each; the paper gives none.
    """
    random = np.random.default_rng([SEED, 21])
    width = random.uniform(0.2, 0.8, (n, m)) if theta is None else np.full((n, m), theta)
    low, high = _bounds(random, width)
    is_point = random.random((n, m)) < points
    low[is_point] = high[is_point] = random.random(int(is_point.sum()))
    values = random.random((N_EVENTS + _N_WARM_UP, m))
    for column, exponent in enumerate(np.broadcast_to(np.asarray(zipf, np.float64), (m,))):
        for array in (low, high, values):
            array[:, column] = _levels(array[:, column], levels, exponent)
    return workload("DEXIN", low, high, values)


def mixed_zipf(m: int) -> Floats:
    """DEXIN, section 4.3: each attribute uniform or Zipf, at random."""
    return np.random.default_rng([SEED, 22]).integers(0, 2, m).astype(np.float64)


def matching_boxes(n: int, rate: float, m: int = 10, levels: int = 10_000) -> Workload:
    """DEXIN, section 4.1.7: subscriptions of a matching rate, made around 1/rate events.

    On one attribute, drawn at random, a subscription covers the value of its own event and of no
    other; on the others it covers at least that value. A tenth of the constraints are points.
    """
    random = np.random.default_rng([SEED, 23])
    n_seeds = max(1, round(1 / rate))
    places = np.stack([random.permutation(levels)[:n_seeds] for _ in range(m)], axis=1)
    owner = np.arange(n) % n_seeds
    value = places[owner] / levels
    width = random.uniform(0.2, 0.8, (n, m))
    low = random.random((n, m)) * np.minimum(value, 1 - width)
    high = 1 - random.random((n, m)) * (1 - np.maximum(value, width))
    is_point = random.random((n, m)) < 0.1
    low[is_point] = high[is_point] = value[is_point]
    low, high = np.floor(low * levels) / levels, np.ceil(high * levels) / levels
    only = random.integers(0, m, n)
    gap = _gaps(places)[owner, only]
    rows = np.arange(n)
    low[rows, only] = value[rows, only] - np.floor(gap[:, 0] * random.random(n)) / levels
    high[rows, only] = value[rows, only] + np.floor(gap[:, 1] * random.random(n)) / levels
    turns = np.arange(N_EVENTS + _N_WARM_UP) % n_seeds
    return workload("DEXIN", low, high, places[turns] / levels)


def _gaps(places: npt.NDArray[np.int64]) -> Floats:
    """How many levels lie between each value and its neighbours below and above: (S, m, 2)."""
    n_seeds, m = places.shape
    gaps = np.ones((n_seeds, m, 2))
    for column in range(m):
        order = np.argsort(places[:, column])
        steps = np.diff(places[order, column]).astype(np.float64)
        gaps[order[1:], column, 0] = gaps[order[:-1], column, 1] = steps
    return gaps


def rein_boxes(
    n: int, m: int = 50, k: int = 5, width: float | None = 0.25, precision: int = 10**6
) -> Workload:
    """Pri-REIN, section 4.3.1: k of m attributes, intervals of one width; ten priorities.

    Without a width both bounds are drawn from the whole domain, as in its section 6.2.
    """
    random = np.random.default_rng([SEED, 24])
    picked = pick(random, n, m, k, 0.0)
    if width is None:
        pair = np.sort(random.random((n, k, 2)), axis=2)
        lows, highs = pair[..., 0], pair[..., 1]
    else:
        lows = random.random((n, k)) * (1 - width)
        highs = lows + width
    low, high = spread(picked, lows, m), spread(picked, highs, m)
    values = random.random((N_EVENTS + _N_WARM_UP, m))
    low, high, values = (np.round(array * precision) / precision for array in (low, high, values))
    priority = random.integers(0, N_LEVELS, n, dtype=np.uint8)
    return workload("Pri-REIN", low, high, values, priority=priority)


def workload(
    name: str,
    low: Floats,
    high: Floats,
    values: Floats,
    *,
    attributes: tuple[str, ...] = (),
    priority: npt.NDArray[np.uint8] | None = None,
) -> Workload:
    """A workload with closed ends; the last events are for warming up."""
    n, m = low.shape
    closed = np.zeros((n, m), np.bool_)
    levels = np.full(n, DEFAULT_PRIORITY, np.uint8) if priority is None else priority
    names = attributes or tuple(f"a{number}" for number in range(1, m + 1))
    n_events = len(values) - _N_WARM_UP
    return Workload(
        name, 1.0, names, low, high, closed, closed, levels, values[:n_events], values[n_events:]
    )


def pick(random: Random, n: int, m: int, k: int, zipf: float) -> npt.NDArray[np.intp]:
    """K different columns a row, column r drawn with weight 1 / (r + 1)**zipf, ascending."""
    rates = 1.0 / np.arange(1, m + 1) ** zipf
    picked = np.empty((n, k), np.intp)
    for start in range(0, n, 65_536):
        rows = slice(start, min(n, start + 65_536))
        arrivals = random.exponential(size=(rows.stop - start, m)) / rates
        picked[rows] = np.argpartition(arrivals, k - 1, axis=1)[:, :k]
    picked.sort(axis=1)
    return picked


def spread(picked: npt.NDArray[np.intp], bounds: Floats, m: int) -> Floats:
    """The bounds in their columns of an (N, m) array, NaN elsewhere."""
    columns = np.full((len(picked), m), np.nan)
    np.put_along_axis(columns, picked, bounds, axis=1)
    return columns


def _bounds(random: Random, width: Floats) -> tuple[Floats, Floats]:
    low = random.random(width.shape) * (1 - width)
    high = random.random(width.shape) * (1 - width) + width
    return np.minimum(low, high), np.maximum(low, high)


def _levels(numbers: Floats, n_levels: int, zipf: float) -> Floats:
    """Numbers from [0, 1) as levels, the low ones more often if there is an exponent."""
    if not zipf:
        return np.floor(numbers * n_levels) / n_levels
    cumulated = np.cumsum(1.0 / np.arange(1, n_levels + 1) ** zipf)
    cumulated /= cumulated[-1]
    places = np.minimum(np.searchsorted(cumulated, numbers), n_levels - 1)
    return places / np.float64(n_levels)
