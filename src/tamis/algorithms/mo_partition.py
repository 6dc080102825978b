"""The cells of MO-Tree: levels of overlapping cells, and how wide they should be.

The paper's words and ours:

    L, c_i, w_i    n_levels, the cells of a level, their width
    t_i            the widest interval a level is meant for
    eta            threshold, the most cells a value may stab on average
    rho_i, gamma_i the cells of a level that a value stabs, the share of intervals it intercepts
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.errors import InvalidSchema
from tamis.matching.parameters import check_count
from tamis.matching.store import Array
from tamis.matching.table import Floats

MAX_LEVELS = 100  # 5,050 cells


class Partition(NamedTuple):
    """Overlapping cells over [0, 1], those of the narrowest level first, the whole domain last."""

    begin: Array  # f8[C]
    end: Array  # f8[C]
    level_start: Array  # i8[L + 1], where the cells of each level begin


def partition_of(n_cells: Sequence[int], widths: Sequence[float] | Floats) -> Partition:
    """Levels of equally spaced cells; the last level is one cell, the whole domain.

    >>> partition_of([3, 1], [0.5, 1]).begin.tolist()
    [0.0, 0.25, 0.5, 0.0]
    """
    begin = [np.linspace(0.0, 1.0 - w, c) for c, w in zip(n_cells, widths, strict=True)]
    end = [np.linspace(float(w), 1.0, c) for c, w in zip(n_cells, widths, strict=True)]
    begin[-1], end[-1] = np.zeros(1), np.ones(1)
    return Partition(np.concatenate(begin), np.concatenate(end), np.cumsum([0, *n_cells]))


def best_partition(n_levels: int, threshold: float) -> Partition:
    """Level i of L has L - i + 1 cells, as wide as is best."""
    widths = best_widths(n_levels, threshold)
    return partition_of(range(len(widths), 0, -1), widths)


def best_widths(n_levels: int, threshold: float) -> Floats:
    """The widths of the cells of each level that intercept the most (section 5 of the paper).

    Bounds and values are taken to be uniform, as in the paper's example. What a level intercepts
    is then a parabola of its width, highest at the widest that makes sense (Lemma 3). A value
    may stab ``threshold`` cells: Theorem 1 says by how much each level must be narrower.

    >>> from fractions import Fraction
    >>> [str(Fraction(w).limit_denominator(100)) for w in best_widths(4, 6)]
    ['3/8', '11/18', '5/6', '1']
    """
    n_levels = check_count("n_levels", n_levels, most=MAX_LEVELS)
    cells = np.arange(n_levels, 0, -1)
    widest_asked = np.arange(1, n_levels + 1) / n_levels
    narrowest = widest_asked
    widest = (widest_asked * (cells - 1) + 1) / cells
    n_least = float(cells @ narrowest)
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not is_number or not threshold >= n_least - 1e-9:
        raise InvalidSchema(
            f"a threshold of {threshold!r} stabbed cells; {n_levels} levels need {n_least} at least"
        )
    return _narrowed(cells, narrowest, widest, float(cells @ widest) - threshold)


def _narrowed(cells: Array, narrowest: Floats, widest: Floats, excess: float) -> Floats:
    """Take ``excess`` stabbed cells off the widest cells at the least loss.

    With the parabolas' bend a_i the loss is the sum of a_i d_i^2, d_i being what level i gives
    up; sum c_i d_i = excess makes d_i = c_i / a_i times a multiplier, until a level is at its
    narrowest.
    """
    n_levels = len(cells)
    room = widest - narrowest
    step = 1.0 / n_levels
    wanted = step * (2 * (1 - narrowest) + step)  # the share of all widths a level is meant for
    # At its narrowest, a level intercepts the integral of 2 c (t - x) over its step of widths.
    lost = np.maximum(wanted - cells * step**2, 0)
    given, is_free = np.zeros(n_levels), room > 0
    bend = np.divide(lost, room**2, out=np.ones(n_levels), where=is_free)
    while excess > 1e-12 and is_free.any():
        share = np.where(is_free, cells / bend, 0.0)
        asked = share * excess / (cells @ share)
        is_beyond = is_free & (asked >= room)
        if not is_beyond.any():
            given += asked
            break
        given[is_beyond] = room[is_beyond]
        excess -= float(cells[is_beyond] @ room[is_beyond])
        is_free &= ~is_beyond
    return widest - given
