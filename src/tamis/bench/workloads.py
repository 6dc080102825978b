"""Workloads W1 to W4: subscriptions as boxes, events as columns, the same for every algorithm.

W1 is that of the GEM paper, W2 of DEXIN, W3 of Pri-REIN, W4 of MO-Tree. At scale s there are
s times the subscriptions of the full workload. The same seed makes the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import TamisError

SEED = 2016
N_EVENTS = 1_000
LEVELS = 10_000
DEFAULT_PRIORITY = 5
_N_WARM_UP = 200
_BLOCK = 100_000

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class UnknownWorkload(TamisError, ValueError):
    """A workload of this name does not exist."""


@dataclass(frozen=True, slots=True)
class Workload:
    """N subscriptions over M attributes, and events.

    ``low``, ``high``, ``low_open`` and ``high_open`` are (N, M), a NaN bound does not bound.
    ``values`` is (E, M), NaN where an event lacks the attribute; ``warm_up`` are other events
    of the same kind, to be matched before the clock starts.

    >>> workload = make("W3", scale=0.001)
    >>> workload.n_subscriptions, len(workload.attributes), workload.n_events
    (500, 50, 1000)
    """

    name: str
    scale: float
    attributes: tuple[str, ...]
    low: Floats
    high: Floats
    low_open: Flags
    high_open: Flags
    priority: npt.NDArray[np.uint8]
    values: Floats
    warm_up: Floats

    @property
    def n_subscriptions(self) -> int:
        """How many subscriptions there are."""
        return len(self.low)

    @property
    def n_events(self) -> int:
        """How many events there are."""
        return len(self.values)

    @property
    def events(self) -> dict[str, Floats]:
        """The events as a dict of arrays, NaN where the attribute is missing."""
        return columns_of(self.attributes, self.values)

    def dicts(self, values: Floats) -> list[dict[str, float]]:
        """Events as dicts; what is missing has no key."""
        return [
            {
                name: value
                for name, value in zip(self.attributes, row, strict=True)
                if value == value
            }
            for row in values.tolist()
        ]

    def boxes(self) -> dict[str, Any]:
        """The arguments of ``Index.from_boxes``."""
        return {
            "attributes": self.attributes,
            "low": self.low,
            "high": self.high,
            "low_open": self.low_open,
            "high_open": self.high_open,
            "priority": self.priority,
        }


def columns_of(attributes: tuple[str, ...], values: Floats) -> dict[str, Floats]:
    """Events as a dict of contiguous arrays."""
    return {name: np.ascontiguousarray(values[:, m]) for m, name in enumerate(attributes)}


def make(name: str, scale: float = 1.0, n_events: int = N_EVENTS, seed: int = SEED) -> Workload:
    """The workload of this name."""
    if name not in FULL_SIZES:
        raise UnknownWorkload(f"no workload {name!r}; expected one of {', '.join(FULL_SIZES)}")
    n_subscriptions = max(1, round(FULL_SIZES[name] * scale))
    return _MAKERS[name](n_subscriptions, n_events=n_events, seed=seed)


def make_w1(
    n: int, *, m: int = 10, theta: float = 0.5, n_events: int = N_EVENTS, seed: int = SEED
) -> Workload:
    """GEM: every attribute bounded, low ~ U[0, 1-theta], high ~ U[theta, 1], ends at random."""
    random = np.random.default_rng([seed, 1])
    low, high = _wide(random, n, m, theta)
    ends = (random.random((n, m)) < 0.5, random.random((n, m)) < 0.5)
    values = random.random((n_events + _N_WARM_UP, m))
    return _workload("W1", low, high, values, n_events, ends=ends)


def make_w2(
    n: int,
    *,
    m: int = 10,
    points: float = 0.1,
    zipf: float = 0.0,
    n_events: int = N_EVENTS,
    seed: int = SEED,
) -> Workload:
    """DEXIN: theta ~ U[0.2, 0.8] each, a share of points, all values from 10,000 levels.

    With ``zipf`` the levels of bounds and events alike are drawn with that exponent, the low
    ones often; without it uniformly.
    """
    random = np.random.default_rng([seed, 2])
    low, high = _wide(random, n, m, random.uniform(0.2, 0.8, (n, m)))
    is_point = random.random((n, m)) < points
    place = random.random((n, m))
    low[is_point] = high[is_point] = place[is_point]
    values = random.random((n_events + _N_WARM_UP, m))
    levels = _zipf_levels(zipf) if zipf else _uniform_levels
    return _workload("W2", levels(low), levels(high), levels(values), n_events)


def make_w3(
    n: int,
    *,
    m: int = 50,
    k: int = 5,
    width: float = 0.25,
    zipf: float = 0.0,
    n_events: int = N_EVENTS,
    seed: int = SEED,
) -> Workload:
    """Pri-REIN: k of m attributes, each an interval of that width; ten priorities."""
    random = np.random.default_rng([seed, 3])
    picked = _pick(random, n, m, k, zipf)
    start = random.random((n, k)) * (1 - width)
    low, high = _spread(picked, start, m), _spread(picked, start + width, m)
    priority = random.integers(0, 10, n, dtype=np.uint8)
    values = random.random((n_events + _N_WARM_UP, m))
    return _workload("W3", low, high, values, n_events, priority=priority)


def make_w4(
    n: int,
    *,
    m: int = 20,
    k: int = 6,
    zipf: float = 1.0,
    n_events: int = N_EVENTS,
    seed: int = SEED,
) -> Workload:
    """MO-Tree: k attributes drawn by Zipf without replacement; lon and lat are the first two.

    These are 0.005 to 0.02 wide, the others lie between two uniform numbers; an event has
    three quarters of the attributes or more.
    """
    random = np.random.default_rng([seed, 4])
    picked = _pick(random, n, m, k, zipf)
    pair = np.sort(random.random((n, k, 2)), axis=2)
    width = random.uniform(0.005, 0.02, (n, k))
    start = random.random((n, k)) * (1 - width)
    is_place = picked < 2
    low = _spread(picked, np.where(is_place, start, pair[..., 0]), m)
    high = _spread(picked, np.where(is_place, start + width, pair[..., 1]), m)
    values = random.random((n_events + _N_WARM_UP, m))
    n_present = random.integers(m * 3 // 4, m + 1, len(values))
    values[
        random.permuted(np.tile(np.arange(m), (len(values), 1)), axis=1) >= n_present[:, None]
    ] = np.nan
    names = ("lon", "lat", *(f"a{rank}" for rank in range(3, m + 1)))
    return _workload("W4", low, high, values, n_events, attributes=names)


FULL_SIZES = {"W1": 1_000_000, "W2": 1_000_000, "W3": 500_000, "W4": 1_000_000}
_MAKERS: dict[str, Callable[..., Workload]] = {
    "W1": make_w1, "W2": make_w2, "W3": make_w3, "W4": make_w4,
}  # fmt: skip


def _workload(
    name: str,
    low: Floats,
    high: Floats,
    values: Floats,
    n_events: int,
    *,
    ends: tuple[Flags, Flags] | None = None,
    priority: npt.NDArray[np.uint8] | None = None,
    attributes: tuple[str, ...] = (),
) -> Workload:
    n, m = low.shape
    if ends is None:
        ends = (np.zeros((n, m), dtype=bool), np.zeros((n, m), dtype=bool))
    return Workload(
        name,
        n / FULL_SIZES[name],
        attributes or tuple(f"a{number}" for number in range(1, m + 1)),
        low,
        high,
        *ends,
        np.full(n, DEFAULT_PRIORITY, dtype=np.uint8) if priority is None else priority,
        values[:n_events],
        values[n_events:],
    )


def _wide(
    random: np.random.Generator, n: int, m: int, theta: float | Floats
) -> tuple[Floats, Floats]:
    """Low ~ U[0, 1-theta] and high ~ U[theta, 1], the lower of the two first."""
    low, high = random.random((n, m)), random.random((n, m))
    low *= 1 - theta
    high *= 1 - theta
    high += theta
    return np.minimum(low, high), np.maximum(low, high)


def _pick(random: np.random.Generator, n: int, m: int, k: int, zipf: float) -> npt.NDArray[np.intp]:
    """K different columns a row, column r drawn with weight 1 / (r+1)**zipf, as (N, k).

    Of independent exponentials with these rates the k earliest are such a draw.
    """
    rates = 1.0 / np.arange(1, m + 1) ** zipf
    picked = np.empty((n, k), dtype=np.intp)
    for rows in _blocks(n):
        arrivals = random.exponential(size=(rows.stop - rows.start, m)) / rates
        picked[rows] = np.argpartition(arrivals, k - 1, axis=1)[:, :k]
    picked.sort(axis=1)
    return picked


def _spread(picked: npt.NDArray[np.intp], bounds: Floats, m: int) -> Floats:
    """The bounds in their columns of an (N, m) array, NaN elsewhere."""
    spread = np.full((len(picked), m), np.nan)
    np.put_along_axis(spread, picked, bounds, axis=1)
    return spread


def _uniform_levels(numbers: Floats) -> Floats:
    return np.floor(numbers * LEVELS) / LEVELS


def _zipf_levels(exponent: float) -> Callable[[Floats], Floats]:
    shares = 1.0 / np.arange(1, LEVELS + 1) ** exponent
    cumulated = np.cumsum(shares)
    cumulated /= cumulated[-1]

    def levels(numbers: Floats) -> Floats:
        return np.minimum(np.searchsorted(cumulated, numbers), LEVELS - 1) / LEVELS

    return levels


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, min(n, start + _BLOCK)) for start in range(0, n, _BLOCK))
