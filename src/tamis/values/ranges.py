"""Range: an interval of numbers or of timestamps, either border open, closed or absent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np

from tamis.errors import InvalidValue, quoted
from tamis.values.numeric import Number, check_integer
from tamis.values.timestamps import as_timestamp

Bound = Number | datetime

_ENDS = {"[]": (False, False), "[)": (False, True), "(]": (True, False), "()": (True, True)}


@dataclass(frozen=True, slots=True)
class Range:
    """An interval; an absent border (None) does not bound, and takes no part in open or closed.

    >>> Range(1, 5, "[)").contains(5)
    False
    >>> Range(low=3).intersects(Range(high=3))
    True
    >>> Range(5, 3).is_empty
    True
    """

    low: Bound | None = None
    high: Bound | None = None
    ends: str = "[]"

    def __post_init__(self) -> None:
        if not isinstance(self.ends, str) or self.ends not in _ENDS:
            raise InvalidValue(f"ends {quoted(self.ends)} are not one of {', '.join(_ENDS)}")
        low = None if self.low is None else _check_bound(self.low)
        high = None if self.high is None else _check_bound(self.high)
        if isinstance(low, datetime) != isinstance(high, datetime) and None not in (low, high):
            raise InvalidValue(f"{quoted(low)} and {quoted(high)} are not of one kind")
        # An absent border is written closed, so that equal ranges compare equal.
        left = "[" if low is None else self.ends[0]
        right = "]" if high is None else self.ends[1]
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "ends", left + right)

    @property
    def low_open(self) -> bool:
        """Whether the low border itself is outside."""
        return self.ends[0] == "("

    @property
    def high_open(self) -> bool:
        """Whether the high border itself is outside."""
        return self.ends[1] == ")"

    @property
    def is_of_timestamps(self) -> bool:
        """Whether the borders are timestamps; a range without borders is one of numbers."""
        return isinstance(self.low, datetime) or isinstance(self.high, datetime)

    @property
    def is_empty(self) -> bool:
        """Whether nothing lies inside."""
        return not self.intersects(self)

    def contains(self, bound: Bound) -> bool:
        """Whether a number or timestamp lies inside; False for the other kind."""
        return self.intersects(Range(bound, bound))

    def intersects(self, other: Range) -> bool:
        """Whether the two intervals share a point of the real line."""
        if self.is_of_timestamps != other.is_of_timestamps:
            return False
        return all(
            _is_below(a, b)
            for a in (self, other)
            for b in (self, other)
        )  # fmt: skip


def _is_below(a: Range, b: Range) -> bool:
    """Whether a's low border leaves room below b's high border."""
    if a.low is None or b.high is None:
        return True
    if a.low == b.high:
        return not (a.low_open or b.high_open)
    return a.low < b.high  # type: ignore[operator]  # borders are of one kind here


def _check_bound(bound: object) -> Bound:
    if isinstance(bound, np.integer | np.floating):
        bound = bound.item()
    if isinstance(bound, date):
        return as_timestamp(bound)
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        raise InvalidValue(f"{quoted(bound)} cannot bound a range; give a number or a timestamp")
    if isinstance(bound, int):
        return check_integer(bound)
    if math.isnan(bound):
        raise InvalidValue("NaN cannot bound a range; leave the border out instead")
    return float(bound)
