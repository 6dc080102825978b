"""The yardstick: a blocked, vectorised columnar scan over float32 bounds, exact by a recheck."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.bench.workloads import Floats, Workload
from tamis.kernels.compiled import kernel

BLOCK = 4_096
FEW = BLOCK // 16  # so few rows of a block are quicker one by one

Rows = npt.NDArray[np.int32]


class Columns(NamedTuple):
    """Bounds an attribute after the other, rounded outwards: f4[M, N]; ±inf where unbounded."""

    low: npt.NDArray[np.float32]
    high: npt.NDArray[np.float32]


class Bounds(NamedTuple):
    """Exact bounds with closed ends, a row a subscription: f8[N, M]; ±inf where unbounded."""

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


class Scan:
    """Every subscription looked at for every event; the result is exact.

    >>> from tamis.bench.workloads import make
    >>> workload = make("W1", scale=0.001)
    >>> scan = Scan(workload)
    >>> bool(np.array_equal(scan.match(workload.values[0]), numpy_rows(workload, 0)))
    True
    """

    def __init__(self, workload: Workload) -> None:
        self.bounds = closed_bounds(workload)
        self._columns = Columns(
            _rounded(self.bounds.low, np.float32(-np.inf)),
            _rounded(self.bounds.high, np.float32(np.inf)),
        )
        self._found = np.empty(workload.n_subscriptions + 1, dtype=np.int32)
        self._is_left = np.empty(BLOCK, dtype=np.uint32)

    def match(self, event: Floats) -> Rows:
        """The rows that accept the event, ascending; NaN where it lacks the attribute."""
        # A missing value fails every predicate but one without a lower bound; the recheck tells.
        narrow = known(event).astype(np.float32)
        n_candidates = scan_columns(self._columns, narrow, self._is_left, self._found)
        n_found = keep_exact(self.bounds, event, self._found, n_candidates)
        return self._found[:n_found].copy()


def closed_bounds(workload: Workload) -> Bounds:
    """Bounds with closed ends that hold the same floats."""
    low, high = workload.low.copy(), workload.high.copy()
    np.nextafter(low, np.inf, out=low, where=workload.low_open)
    np.nextafter(high, -np.inf, out=high, where=workload.high_open)
    low[np.isnan(low)] = -np.inf
    high[np.isnan(high)] = np.inf
    return Bounds(low, high)


def known(values: Floats) -> Floats:
    """Events with -inf where a value is missing: what only a predicate without lower bound takes.

    The workloads have no predicate with an upper bound alone.
    """
    return np.where(np.isnan(values), -np.inf, values)


def _rounded(bounds: Floats, outwards: np.float32) -> npt.NDArray[np.float32]:
    """The nearest float32 and one step further out, by columns."""
    columns = np.empty(bounds.shape[::-1], dtype=np.float32)
    for m, column in enumerate(columns):
        np.copyto(column, bounds[:, m], casting="same_kind")
        np.nextafter(column, outwards, out=column)
    return columns


@kernel
def scan_columns(columns, event, is_left, found):  # type: ignore[no-untyped-def]
    """Write the rows whose rounded bounds hold the event; return how many.

    event: f4[M]; is_left: u4[BLOCK], scratch; found: i4[N + 1], written.
    A block of rows is narrowed attribute by attribute, all of it at once as long as many rows
    are left, then row by row. O(N·M), sixteen comparisons an instruction.
    """
    n_attributes, n_rows = columns.low.shape
    n_found = 0
    for start in range(0, n_rows, BLOCK):
        end = min(n_rows, start + BLOCK)
        left = is_left[: end - start]
        left[:] = 1
        n_left, m = end - start, 0
        while m < n_attributes and n_left > FEW:
            n_left = narrow_block(
                columns.low[m, start:end], columns.high[m, start:end], event[m], left
            )
            m += 1
        if n_left:
            n_candidates = append_left(left, start, found, n_found)
            n_found = narrow_rows(columns, event, m, found, (n_found, n_candidates))
    return n_found


@kernel
def narrow_block(low, high, value, left):  # type: ignore[no-untyped-def]
    """Keep in ``left`` (u4[size], 0 or 1) what low <= value <= high holds for; return how many."""
    n_left = np.uint32(0)
    for i in range(len(left)):
        left[i] &= np.uint32(low[i] <= value) & np.uint32(value <= high[i])
        n_left += left[i]
    return n_left


@kernel
def append_left(left, start, found, n_found):  # type: ignore[no-untyped-def]
    """Append start + i for every left[i]; return the new length. Most groups of 16 are empty."""
    whole = len(left) // 16 * 16
    for group in range(0, whole, 16):
        some = np.uint32(0)
        for i in range(group, group + 16):
            some |= left[i]
        if some:
            for i in range(group, group + 16):
                found[n_found] = start + i
                n_found += left[i]
    for i in range(whole, len(left)):
        found[n_found] = start + i
        n_found += left[i]
    return n_found


@kernel
def narrow_rows(columns, event, first, rows, span):  # type: ignore[no-untyped-def]
    """Keep of rows[span[0]:span[1]] those that hold from attribute ``first`` on; return the end."""
    begin, end = span
    for m in range(first, len(event)):
        n_kept = begin
        for at in range(begin, end):
            row = rows[at]
            rows[n_kept] = row
            n_kept += (columns.low[m, row] <= event[m]) & (event[m] <= columns.high[m, row])
        end = n_kept
    return end


@kernel
def keep_exact(bounds, event, rows, n_rows):  # type: ignore[no-untyped-def]
    """Keep the rows whose exact bounds hold the event, in place; return how many.

    event: f8[M], NaN = missing; rows: i4[>= n_rows], ascending, overwritten.
    """
    n_kept = 0
    for at in range(n_rows):
        row = rows[at]
        if holds(bounds.low[row], bounds.high[row], event):
            rows[n_kept] = row
            n_kept += 1
    return n_kept


@kernel
def holds(low, high, event):  # type: ignore[no-untyped-def]
    """Whether every attribute is inside, or unbounded."""
    for m in range(len(event)):
        is_inside = low[m] <= event[m] and event[m] <= high[m]
        if not is_inside and not (low[m] == -np.inf and high[m] == np.inf):
            return False
    return True


def numpy_rows(workload: Workload, event: int) -> Rows:
    """The same by plain NumPy on the exact bounds, all at once: the oracle of the scan."""
    values = workload.values[event]
    low, high = workload.low, workload.high
    above = np.where(workload.low_open, low < values, low <= values) | np.isnan(low)
    below = np.where(workload.high_open, values < high, values <= high) | np.isnan(high)
    is_free = np.isnan(low) & np.isnan(high)
    holds_all = (is_free | (above & below & ~np.isnan(values))).all(axis=1)
    return np.flatnonzero(holds_all).astype(np.int32)
