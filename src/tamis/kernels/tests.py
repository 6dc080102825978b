"""Tests: what an interval cannot say, checked on the slots that the intervals let through.

A test is an operation with a column and two operands. NaN in the column means that the value
is missing: then no operation but IS_MISSING holds, and its negation does. Operations that need
more have a list, whose number is their first operand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, kernel
from tamis.kernels.memory import prefetch
from tamis.kernels.polygons import ask_for_polygon, is_in_polygon
from tamis.kernels.verdicts import ACCEPTED, REJECTED, UNDECIDED

IN_RANGE = 0  # low <= value <= high
DIFFERS = 1  # value != low
IS_MISSING = 2
ASK = 3  # only the filter itself can tell
IN_SET = 4  # value is in the list: numbers, ascending
IS_NEAR = 5  # point is near: latitude column, center (radians), cosine, haversine, margin
IN_POLYGON = 6  # point is inside: latitude column, then as ``kernels.polygons`` says
FIRST_WITH_LIST = IN_SET
NEGATED = 16  # added to an operation: it must not hold


class Tests(NamedTuple):
    """The tests of P slots: those of slot p are ``start[p]`` to ``start[p + 1]``."""

    start: Array  # i4[P + 1], ascending
    operation: Array  # u1[T]
    column: Array  # i4[T]
    low: Array  # f8[T]
    high: Array  # f8[T]
    list_start: Array  # i8[L + 1], ascending
    lists: Array  # f8[...]


@kernel
def _is_in_set(value, lists, first, last):
    """ACCEPTED if ``value`` is in ``lists[first:last]``. O(log length)."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if lists[middle] < value:
            first = middle + 1
        else:
            last = middle
    return ACCEPTED if first < end and lists[first] == value else REJECTED


@kernel
def _is_near(lon, lat, lists, first):
    """Whether a point is near, UNDECIDED where rounding could matter. O(1)."""
    if abs(lon) > 180.0 or abs(lat) > 90.0:
        return REJECTED
    center_lon, center_lat = lists[first + 1], lists[first + 2]
    across = math.sin((math.radians(lat) - center_lat) / 2)
    along = math.sin((math.radians(lon) - center_lon) / 2)
    h = across * across + lists[first + 3] * math.cos(math.radians(lat)) * along * along
    excess = h - lists[first + 4]
    if abs(excess) <= lists[first + 5]:
        return UNDECIDED
    return ACCEPTED if excess < 0 else REJECTED


@kernel
def _verdict(tests, t, operation, vector):
    """What one test says of an event; ``operation`` is the test's without NEGATED."""
    value = vector[tests.column[t]]
    if operation == IS_MISSING:
        return ACCEPTED if value != value else REJECTED
    if value != value:
        return REJECTED
    if operation == IN_RANGE:
        return ACCEPTED if tests.low[t] <= value <= tests.high[t] else REJECTED
    if operation == DIFFERS:
        return ACCEPTED if value != tests.low[t] else REJECTED
    first, last = tests.list_start[int(tests.low[t])], tests.list_start[int(tests.low[t]) + 1]
    if operation == IN_SET:
        return _is_in_set(value, tests.lists, first, last)
    other = vector[int(tests.lists[first])]
    if operation == IS_NEAR:
        return _is_near(value, other, tests.lists, first)
    return is_in_polygon(value, other, tests.lists, first + 1)


@kernel
def judge(tests, vector, slot):
    """REJECTED or ACCEPTED, or UNDECIDED where only the filter can tell. O(tests of the slot).

    ``vector``: f8[M], the event.
    """
    verdict = ACCEPTED
    for t in range(tests.start[slot], tests.start[slot + 1]):
        operation = tests.operation[t]
        if operation == ASK:
            verdict = UNDECIDED
            continue
        said = _verdict(tests, t, operation & 15, vector)
        if said == UNDECIDED:
            verdict = UNDECIDED
        elif (said == ACCEPTED) == (operation >= NEGATED):
            return REJECTED
    return verdict


@kernel
def ask_for_tests(tests, vector, slots, first, last):
    """Ask for what ``judge`` will look at for slots[first:last], so that all wait at once.

    Each step looks at what the one before has asked for: where the tests of a slot are, the tests,
    their lists, and of polygons the header, the cell and its edges. O(tests).
    """
    for i in range(first, last):
        prefetch(tests.start, np.uint64(slots[i]))
    n_tests = 0
    for i in range(first, last):
        for t in range(tests.start[slots[i]], tests.start[slots[i] + 1]):
            at = np.uint64(t)
            prefetch(tests.operation, at)
            prefetch(tests.column, at)
            prefetch(tests.low, at)
            prefetch(tests.high, at)
            n_tests += 1
    if n_tests == 0 or tests.lists.size == 0:
        return
    for step in range(5):
        for i in range(first, last):
            for t in range(tests.start[slots[i]], tests.start[slots[i] + 1]):
                operation = tests.operation[t] & 15
                if operation >= FIRST_WITH_LIST:
                    number = np.uint64(tests.low[t])
                    if step == 0:
                        prefetch(tests.list_start, number)
                    elif step == 1:
                        prefetch(tests.lists, np.uint64(tests.list_start[number]))
                    elif operation == IN_POLYGON:
                        at = tests.list_start[number]
                        x, y = vector[tests.column[t]], vector[int(tests.lists[at])]
                        ask_for_polygon(x, y, tests.lists, at + 1, step - 2)


@kernel
def _verdict_of_any(tests, t, operation, choices):
    """What one test says of an event with several values: ACCEPTED if it does of one choice."""
    said = REJECTED
    for c in range(choices.shape[0]):
        one = _verdict(tests, t, operation, choices[c])
        if one == ACCEPTED:
            return ACCEPTED
        if one == UNDECIDED:
            said = UNDECIDED
    return said


@kernel
def judge_any(tests, choices, slot):
    """``judge`` for an event of which attributes may have several values. O(tests x choices).

    ``choices``: f8[C, M], every way to choose one value of each attribute. A test holds if some
    value meets it, that is in some choice; a negated one, if it does in none. Requires that what
    a slot asks of one value is one test: not so where the longitude and the latitude of a point
    are tested apart and an attribute has several points.
    """
    verdict = ACCEPTED
    for t in range(tests.start[slot], tests.start[slot + 1]):
        operation = tests.operation[t]
        if operation == ASK:
            verdict = UNDECIDED
            continue
        said = _verdict_of_any(tests, t, operation & 15, choices)
        if said == UNDECIDED:
            verdict = UNDECIDED
        elif (said == ACCEPTED) == (operation >= NEGATED):
            return REJECTED
    return verdict


NO_TESTS = Tests(
    np.zeros(0, np.int32),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int32),
    np.zeros(0, np.float64),
    np.zeros(0, np.float64),
    np.zeros(1, np.int64),
    np.zeros(0, np.float64),
)
