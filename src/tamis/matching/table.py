"""Table: subscriptions as arrays of constraints, the compiled form that matchers receive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidSubscription
from tamis.kernels.constraints import (
    close_ends,
    count_bounded,
    fill_bounded,
    find_disorder,
    find_hollow,
)
from tamis.matching.attributes import MAX_ATTRIBUTES
from tamis.matching.capabilities import Kinds
from tamis.matching.numbers import as_numbers

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """N subscriptions: those of row r constrain by entries ``start[r]`` to ``start[r + 1]``.

    Ends are closed (an open one is moved to the next float64 further in), absent bounds are
    infinite. ``kinds`` are the kinds of constraints that occur. ``is_hollow`` marks rows of
    which an interval holds nothing: they match no event.

    >>> nan = np.nan
    >>> table = Table.from_boxes([[0.2, nan]], [[0.4, nan]], high_open=[[True, False]])
    >>> table.attribute.tolist(), table.high.tolist()
    ([0], [0.39999999999999997])
    """

    start: npt.NDArray[np.int64]
    attribute: npt.NDArray[np.uint16]
    low: Floats
    high: Floats
    negated: npt.NDArray[np.uint8]
    kinds: Kinds
    is_hollow: Flags

    def __len__(self) -> int:
        return len(self.start) - 1

    @classmethod
    def from_constraints(
        cls,
        start: npt.ArrayLike,
        attribute: npt.ArrayLike,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        *,
        low_open: npt.ArrayLike | None = None,
        high_open: npt.ArrayLike | None = None,
        negated: npt.ArrayLike | None = None,
        n_attributes: int,
    ) -> Table:
        """One entry a constraint; attributes ascend within a subscription; NaN does not bound.

        ``negated`` marks constraints that hold for every value but ``low`` (= ``high``).
        """
        starts, names = _as_whole("start", start), _as_whole("attribute", attribute)
        lows, highs = as_bounds(low), as_bounds(high)
        excluded = np.zeros(names.shape, np.bool_) if negated is None else np.asarray(negated) != 0
        for name, array in (("low", lows), ("high", highs), ("negated", excluded)):
            if array.shape != names.shape or names.ndim != 1:
                raise InvalidSubscription(
                    f"{name} has shape {array.shape}; expected {names.shape}, as attribute has"
                )
        if not _is_partition(starts, len(names)):
            raise InvalidSubscription(
                f"start does not rise from 0 to {len(names)}, the number of constraints"
            )
        n_attributes = min(n_attributes, MAX_ATTRIBUTES)
        row = find_disorder(starts, names, n_attributes)
        if row >= 0:
            raise InvalidSubscription(
                f"the attributes of subscription {row} do not ascend, or are not below "
                f"{n_attributes}; expected each attribute at most once, in order"
            )
        if (excluded & (lows != highs)).any():
            raise InvalidSubscription("a negated constraint excludes one value: low must be high")
        ends = _as_flags(low_open, lows.shape), _as_flags(high_open, highs.shape)
        if any((excluded & opened).any() for opened in ends if opened.size):
            raise InvalidSubscription("a negated constraint with an open end; it has no ends")
        return cls._closed(starts, names.astype(np.uint16), lows, highs, ends, excluded)

    @classmethod
    def from_boxes(
        cls,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        low_open: npt.ArrayLike | None = None,
        high_open: npt.ArrayLike | None = None,
    ) -> Table:
        """A row a subscription, a column an attribute; NaN on both sides leaves it free."""
        lows, highs = as_bounds(low), as_bounds(high)
        if lows.ndim != 2 or lows.shape != highs.shape:
            raise InvalidSubscription(
                f"low has shape {lows.shape} and high {highs.shape}; expected (N, M) for both"
            )
        if lows.shape[1] > MAX_ATTRIBUTES:
            raise InvalidSubscription(
                f"{lows.shape[1]:,} attributes; expected at most {MAX_ATTRIBUTES:,}"
            )
        opened = _as_flags(low_open, lows.shape), _as_flags(high_open, lows.shape)
        start = np.empty(len(lows) + 1, np.int64)
        count_bounded(lows, highs, start)
        n_constraints = int(start[-1])
        if n_constraints < lows.size:
            kept = ~(np.isnan(lows) & np.isnan(highs))
            ends = tuple(one[kept] if one.size else one for one in opened)
        else:
            ends = tuple(one.ravel() for one in opened)
        attribute = np.empty(n_constraints, np.uint16)
        bounds = np.empty(n_constraints), np.empty(n_constraints)
        fill_bounded(lows, highs, attribute, *bounds)
        return cls._closed(start, attribute, *bounds, ends, np.zeros(n_constraints, np.uint8))

    @classmethod
    def _closed(
        cls,
        start: npt.NDArray[np.int64],
        attribute: npt.NDArray[np.uint16],
        low: Floats,
        high: Floats,
        ends: tuple[Any, ...],
        negated: npt.NDArray[Any],
    ) -> Table:
        """``low`` and ``high`` belong to the table and are written."""
        excluded = np.ascontiguousarray(negated, np.uint8)
        kinds = Kinds(int(close_ends(low, high, *ends, excluded)))
        is_hollow = np.empty(len(start) - 1, np.bool_)
        find_hollow(start, low, high, excluded, is_hollow)
        return cls(start, attribute, low, high, excluded, kinds, is_hollow)


def as_bounds(given: npt.ArrayLike) -> Floats:
    """A new array of float64; integers that float64 does not hold are refused."""
    raw = as_numbers(given, InvalidSubscription)
    if raw.dtype.kind not in "fiuO":
        raise InvalidSubscription(f"bounds of type {raw.dtype}; expected numbers")
    try:
        return np.array(raw, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidSubscription(f"the bounds are not arrays of numbers: {error}") from None


def _as_flags(given: npt.ArrayLike | None, shape: tuple[int, ...]) -> Flags:
    if given is None:
        return np.zeros(0, np.bool_)
    try:
        flags = np.ascontiguousarray(given, np.bool_)
    except ValueError as error:
        raise InvalidSubscription(f"the flags of open ends are no array: {error}") from None
    if flags.shape != shape:
        raise InvalidSubscription(
            f"the flags of open ends have shape {flags.shape}; expected {shape}, as the bounds have"
        )
    return flags


def _as_whole(name: str, given: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = as_numbers(given, InvalidSubscription)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidSubscription(f"{name} is of type {array.dtype}; expected whole numbers")
    return array.astype(np.int64)


def _is_partition(start: npt.NDArray[np.int64], n: int) -> bool:
    if start.ndim != 1 or not len(start):
        return False
    return bool(start[0] == 0 and start[-1] == n and (np.diff(start) >= 0).all())
