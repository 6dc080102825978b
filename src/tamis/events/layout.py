"""Layout: in which order events stand, so that a question meets few leaves.

Events are sorted by one column and cut into slabs, each slab is sorted by the next column, and
so on. Which columns, and how many slabs, follows from what was asked lately.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tamis.events.lanes import Name
from tamis.kernels.event_cells import LEAF
from tamis.slots.lanes import LAT, LON, NUMBER, TIME

Floats = npt.NDArray[np.float64]
Intervals = dict[Name, tuple[float, float]]  # what one question asks

MAX_COLUMNS = 4
_N_SAMPLED = 1_000
_LANES = (NUMBER, TIME, LON, LAT)
_N_FREE = 64  # leaves that take as long as all the rest of a question
_NARROW = 0.01  # the share of a column that a question is taken to ask where none was asked


def order_of(
    n_rows: int,
    names: Sequence[Name],
    column: Callable[[int], Floats],
    asked: Sequence[Intervals],
) -> npt.NDArray[np.intp] | None:
    """The order of N events; None to leave them as they are.

    ``column`` gives a column (f8[N]) by its number.
    """
    n_leaves = -(-n_rows // LEAF)
    usable = [c for c, (_, lane) in enumerate(names) if lane in _LANES]
    if n_leaves < 2 or not usable:
        return None
    chosen, shares = _shares([names[c] for c in usable], usable, column, asked)
    splits = _splits(n_leaves, shares)
    picked = sorted(np.flatnonzero(splits).tolist(), key=lambda i: -splits[i])
    return _tiled(n_rows, [(column(chosen[i]), int(splits[i])) for i in picked])


def _shares(
    names: Sequence[Name],
    columns: Sequence[int],
    column: Callable[[int], Floats],
    asked: Sequence[Intervals],
) -> tuple[list[int], Floats]:
    """The columns that questions narrow most, and the share of events each question leaves."""
    shares = np.ones((len(asked), len(names)))
    for i, name in enumerate(names):
        who = [q for q, one in enumerate(asked) if name in one]
        if not who:
            continue
        held = column(columns[i])
        sample = np.sort(held[:: max(1, len(held) // _N_SAMPLED)])  # NaN at the end
        low, high = np.array([asked[q][name] for q in who]).T
        n_met = np.searchsorted(sample, high, "right") - np.searchsorted(sample, low)
        shares[who, i] = np.maximum(n_met, 1) / len(sample)
    gain = -np.log(shares).sum(axis=0)
    best = np.argsort(-gain, kind="stable")[:MAX_COLUMNS]
    best = best[gain[best] > 0]
    if len(best):
        return [columns[i] for i in best], shares[:, best]
    # Nobody has asked yet: places first, otherwise the first two columns.
    places = [i for i, (_, lane) in enumerate(names) if lane in (LON, LAT)]
    first = (places or list(range(len(names))))[:2]
    return [columns[i] for i in first], np.full((1, len(first)), _NARROW)


def _splits(n_leaves: int, shares: Floats) -> npt.NDArray[np.int64]:
    """How often each column is halved (0 for not at all), so that questions meet few leaves.

    A question that leaves a share w of a column meets about w + 1/n of its n slabs. The mean of
    logarithms: a narrow question that takes half the time is worth as much as a broad one.
    """
    halvings = np.zeros(shares.shape[1], np.int64)
    for _ in range(math.ceil(math.log2(n_leaves))):
        met = np.minimum(1.0, shares + 0.5**halvings)
        better = np.minimum(1.0, shares + 0.5 ** (halvings + 1))
        n_met = n_leaves * met.prod(axis=1)[:, None] / met * better
        cost = np.log(_N_FREE + n_met).mean(axis=0)
        halvings[np.argmin(cost)] += 1
    return halvings


def _tiled(n_rows: int, chosen: Sequence[tuple[Floats, int]]) -> npt.NDArray[np.intp]:
    """Sort by the first column, each of its 2^halvings slabs by the second, and so on.

    Slabs are whole leaves.
    """
    order = np.arange(n_rows)
    borders = [0, -(-n_rows // LEAF)]  # of slabs, in leaves
    for held, halvings in chosen:
        finer = {0}
        for first, last in itertools.pairwise(borders):
            rows = slice(first * LEAF, min(n_rows, last * LEAF))
            order[rows] = order[rows][np.argsort(held[order[rows]], kind="stable")]
            n_slabs = min(last - first, 2**halvings)
            finer |= {first + (last - first) * i // n_slabs for i in range(1, n_slabs + 1)}
        borders = sorted(finer)
    return order
