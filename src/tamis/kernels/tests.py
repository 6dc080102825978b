"""Tests: what an interval cannot say, checked on the slots that the intervals let through.

A test is an operation with a column and two operands. NaN in the column means that the value
is missing: then no operation but IS_MISSING holds, and its negation does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.compiled import inlined, kernel

IN_RANGE = 0  # low <= value <= high
DIFFERS = 1  # value != low
IN_SET = 2  # value is among set_values[set_start[low]:set_start[low + 1]]
IS_MISSING = 3
ASK = 4  # only the filter itself can tell
NEGATED = 16  # added to an operation: it must not hold

REJECTED, ACCEPTED, UNDECIDED = 0, 1, 2


class Tests(NamedTuple):
    """The tests of P slots: those of slot p are ``start[p]`` to ``start[p + 1]``."""

    __test__ = False  # not a test case

    start: npt.NDArray[np.int32]  # i4[P + 1], ascending
    operation: npt.NDArray[np.uint8]  # u1[T]
    column: npt.NDArray[np.int32]  # i4[T]
    low: npt.NDArray[np.float64]  # f8[T]
    high: npt.NDArray[np.float64]  # f8[T]
    set_start: npt.NDArray[np.int32]  # i4[S + 1], ascending
    set_values: npt.NDArray[np.float64]  # f8[...], ascending within a set


@inlined
def _holds(operation, value, low, high, set_start, set_values):  # type: ignore[no-untyped-def]
    if operation == IS_MISSING:
        return value != value
    if value != value:
        return False
    if operation == IN_RANGE:
        return low <= value <= high
    if operation == DIFFERS:
        return value != low
    which = int(low)
    first, last = set_start[which], set_start[which + 1]
    while first < last:
        middle = (first + last) // 2
        if set_values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first < set_start[which + 1] and set_values[first] == value


@kernel
def judge(tests, vector, slot):  # type: ignore[no-untyped-def]
    """REJECTED or ACCEPTED, or UNDECIDED where only the filter can tell. O(tests of the slot).

    ``vector``: f8[M], the event.
    """
    verdict = ACCEPTED
    for t in range(tests.start[slot], tests.start[slot + 1]):
        operation = tests.operation[t]
        if operation == ASK:
            verdict = UNDECIDED
            continue
        held = _holds(
            operation & 15,
            vector[tests.column[t]],
            tests.low[t],
            tests.high[t],
            tests.set_start,
            tests.set_values,
        )
        if held == (operation >= NEGATED):
            return REJECTED
    return verdict
