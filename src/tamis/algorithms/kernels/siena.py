"""Siena: comparisons by attribute and operator, in buckets by their value."""

from __future__ import annotations

import numpy as np

from tamis.kernels.cells import cell_of
from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.counting import count_list
from tamis.kernels.predicates import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    N_OPERATORS,
    NOT_EQUAL,
    write_predicates,
)


@inlined
def first_list(m, operator, n_buckets):
    """The number of the first bucket of one operator of an attribute."""
    return (m * N_OPERATORS + operator) * n_buckets


@kernel
def fill_predicates(stored, slots, domains, n_buckets, keys, owners, values):
    """Write each comparison's bucket, slot and value. O(constraints)."""
    operators, bounds = np.empty(2, np.int64), np.empty(2)
    at = 0
    for i in range(slots.size):
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            m = np.int64(stored.attribute[k])
            for j in range(write_predicates(stored, k, operators, bounds)):
                cell = cell_of(domains, m, bounds[j], n_buckets)
                keys[at] = first_list(m, operators[j], n_buckets) + cell
                owners[at] = slots[i]
                values[at] = bounds[j]
                at += 1


@kernel
def count_lists(lists, first, last, counts):
    """Add one to the counts of every slot of lists first..last - 1."""
    for b in range(first, last):
        count_list(lists, b, counts)


@kernel
def count_satisfied(lists, domains, n_buckets, event, first, last, counts):
    """Count the satisfied comparisons on attributes first..last - 1 of every slot.

    counts: u1[P], u2[P] or u4[P]. Only a value's own bucket is compared. O(satisfied comparisons).
    """
    for m in range(first, last):
        value = event[m]
        if np.isnan(value):
            continue
        cell = cell_of(domains, m, value, n_buckets)
        least = first_list(m, AT_LEAST, n_buckets)
        most = first_list(m, AT_MOST, n_buckets)
        unequal = first_list(m, NOT_EQUAL, n_buckets)
        count_lists(lists, least, least + cell, counts)
        count_lists(lists, most + cell + 1, most + n_buckets, counts)
        count_lists(lists, unequal, unequal + cell, counts)
        count_lists(lists, unequal + cell + 1, unequal + n_buckets, counts)
        for operator in range(N_OPERATORS):
            b = first_list(m, operator, n_buckets) + cell
            for i in range(lists.start[b], lists.start[b] + lists.size[b]):
                bound = lists.values[i]
                if operator == AT_LEAST:
                    is_met = value >= bound
                elif operator == AT_MOST:
                    is_met = value <= bound
                elif operator == EQUAL:
                    is_met = value == bound
                else:
                    is_met = value != bound
                counts[lists.slots[i]] += is_met
