"""Predicates: a constraint as comparisons of one operator each."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

AT_LEAST, AT_MOST, EQUAL, NOT_EQUAL = 0, 1, 2, 3
N_OPERATORS = 4


@kernel
def write_predicates(stored, k, operators, values):
    """Write the comparisons that say constraint k to operators (i8[2]) and values (f8[2]).

    Returns how many: one for a point, an excluded value, or an interval with one bound or none
    (x >= -inf: there is a value); otherwise two.
    """
    low, high = stored.low[k], stored.high[k]
    if stored.negated[k] or low == high:
        operators[0] = NOT_EQUAL if stored.negated[k] else EQUAL
        values[0] = low
        return 1
    n = 0
    if low > -np.inf or high == np.inf:
        operators[0], values[0] = AT_LEAST, low
        n = 1
    if high < np.inf:
        operators[n], values[n] = AT_MOST, high
        n += 1
    return n


@kernel
def count_predicates(stored, slots, counts):
    """Write to counts[i] (i8[n]) how many comparisons slots[i] (i4[n]) consists of."""
    operators, values = np.empty(2, np.int64), np.empty(2)
    for i in range(slots.size):
        counts[i] = 0
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            counts[i] += write_predicates(stored, k, operators, values)
