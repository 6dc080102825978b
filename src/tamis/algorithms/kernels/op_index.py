"""OpIndex: comparisons by pivot attribute, operator and attribute."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.predicates import AT_LEAST, AT_MOST, EQUAL, NOT_EQUAL, write_predicates

N_HASHED = 256  # lists of equalities a pivot
N_SCANNED = 3  # lists of other operators a pivot and attribute


@inlined
def lists_per_pivot(n_attributes):
    """How many lists one pivot attribute has."""
    return n_attributes * N_SCANNED + N_HASHED


@inlined
def hash_of(m, value):
    """One of N_HASHED numbers for an attribute and a value."""
    bits = np.float64(value + 0.0).view(np.uint64)  # + 0.0: -0 equals 0
    mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(m)
    return np.int64((mixed * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(56))


@kernel
def count_attributes(stored, slots, counts):
    """Add to counts (i8[M]) how many of slots (i4[n]) constrain each attribute."""
    for i in range(slots.size):
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            counts[np.int64(stored.attribute[k])] += 1


@kernel
def choose_pivots(stored, slots, frequency, pivots):
    """Write to pivots[slot] (i4[P]) the slot's least frequent attribute, -1 if it has none."""
    for i in range(slots.size):
        best = -1
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            m = np.int64(stored.attribute[k])
            if best < 0 or frequency[m] < frequency[best]:
                best = m
        pivots[slots[i]] = best


@kernel
def fill_predicates(stored, slots, pivots, n_attributes, keys, owners, values):
    """Write each comparison's list, slot and value. O(constraints)."""
    operators, bounds = np.empty(2, np.int64), np.empty(2)
    at = 0
    for i in range(slots.size):
        first = pivots[slots[i]] * lists_per_pivot(n_attributes)
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            m = np.int64(stored.attribute[k])
            for j in range(write_predicates(stored, k, operators, bounds)):
                if operators[j] == EQUAL:
                    keys[at] = first + n_attributes * N_SCANNED + hash_of(m, bounds[j])
                else:
                    operator = 2 if operators[j] == NOT_EQUAL else operators[j]
                    keys[at] = first + m * N_SCANNED + operator
                owners[at] = slots[i]
                values[at] = bounds[j]
                at += 1


@kernel
def count_list(lists, b, operator, value, counts):
    """Add to the counts of a list's slots whether value `operator` their bound holds."""
    start = np.uint64(lists.start[b])
    end = start + np.uint64(lists.size[b])
    if operator == AT_LEAST:
        for i in range(start, end):
            counts[np.uint32(lists.slots[i])] += value >= lists.values[i]
    elif operator == AT_MOST:
        for i in range(start, end):
            counts[np.uint32(lists.slots[i])] += value <= lists.values[i]
    elif operator == EQUAL:
        for i in range(start, end):
            counts[np.uint32(lists.slots[i])] += value == lists.values[i]
    else:
        for i in range(start, end):
            counts[np.uint32(lists.slots[i])] += value != lists.values[i]


@kernel
def count_satisfied(lists, event, first, last, counts):
    """Count the satisfied comparisons of all slots whose pivot is attribute first..last - 1.

    Pivots that the event lacks are passed over. counts: u1[P], u2[P] or u4[P].
    O(comparisons of these slots; of the equalities only one hashed list an attribute).
    """
    n_attributes = event.size
    for pivot in range(first, last):
        if np.isnan(event[pivot]):
            continue
        lists_of_pivot = pivot * lists_per_pivot(n_attributes)
        for m in range(n_attributes):
            value = event[m]
            if np.isnan(value):
                continue
            b = lists_of_pivot + m * N_SCANNED
            count_list(lists, b, AT_LEAST, value, counts)
            count_list(lists, b + 1, AT_MOST, value, counts)
            count_list(lists, b + 2, NOT_EQUAL, value, counts)
            b = lists_of_pivot + n_attributes * N_SCANNED + hash_of(m, value)
            count_list(lists, b, EQUAL, value, counts)
