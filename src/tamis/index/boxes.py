"""Boxes: many subscriptions at once as arrays of bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidSubscription
from tamis.language.tree import InRange, all_of
from tamis.model import Subscription
from tamis.model.subscription import DEFAULT_PRIORITY
from tamis.values import Range


def subscriptions_of_boxes(
    attributes: Sequence[str],
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    ids: Sequence[str] | None,
    low_open: npt.ArrayLike | None,
    high_open: npt.ArrayLike | None,
    priority: npt.ArrayLike | None,
) -> Iterator[Subscription]:
    """A subscription a row; a NaN bound does not bound, and a box without bounds accepts all."""
    lows = np.asarray(low, dtype=np.float64)
    shape = (lows.shape[0] if lows.ndim == 2 else -1, len(attributes))
    highs = np.asarray(high, dtype=np.float64)
    opens = [
        np.zeros(shape, dtype=bool) if flags is None else np.asarray(flags, dtype=bool)
        for flags in (low_open, high_open)
    ]
    given = {"low": lows, "high": highs, "low_open": opens[0], "high_open": opens[1]}
    for name, array in given.items():
        if array.shape != shape:
            raise InvalidSubscription(
                f"{name} has shape {array.shape}; expected (N, {len(attributes)}), a column an "
                "attribute, the same N for all"
            )
    n_boxes = shape[0]
    names = [str(row) for row in range(n_boxes)] if ids is None else list(ids)
    levels = np.full(n_boxes, DEFAULT_PRIORITY) if priority is None else np.asarray(priority)
    if len(names) != n_boxes or levels.shape != (n_boxes,):
        raise InvalidSubscription(
            f"{len(names)} ids and {levels.shape} priorities for {n_boxes} boxes; expected one each"
        )
    for row in range(n_boxes):
        parts = [
            InRange(name, _range(lows[row, m], highs[row, m], opens[0][row, m], opens[1][row, m]))
            for m, name in enumerate(attributes)
            if not (np.isnan(lows[row, m]) and np.isnan(highs[row, m]))
        ]
        yield Subscription(names[row], all_of(parts), int(levels[row]))


def _range(low: float, high: float, low_open: bool, high_open: bool) -> Range:
    ends = ("(" if low_open else "[") + (")" if high_open else "]")
    return Range(
        None if np.isnan(low) else float(low), None if np.isnan(high) else float(high), ends
    )
