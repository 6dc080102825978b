"""Plans of a pipeline: in which order an event's attributes are handled, and by which method.

A plan is an order of the attributes and a number: so many at its front exclude subscriptions by
an index, the others select among those that are left. What an event lacks comes second, right
behind the attribute the pipeline begins with; excluding by it costs nothing.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel


@kernel
def order_by_rate(rates, event, order):
    """Write the attributes by rising rate, the missing ones second; how many are missing.

    rates: f8[M], the share of subscriptions that match on each attribute; event: f8[M], NaN =
    missing; order: i4[M], written. O(M log M).
    """
    n_missing = 0
    for m in range(event.size):
        n_missing += np.isnan(event[m])
    ascending = np.argsort(rates, kind="mergesort")
    has_first = n_missing < event.size
    at_missing, at_present = np.int64(has_first), np.int64(0)
    for i in range(event.size):
        m = ascending[i]
        if np.isnan(event[m]):
            order[at_missing] = m
            at_missing += 1
        else:
            order[at_present] = m
            at_present += 1 + (n_missing if at_present == 0 else 0)
    return n_missing


@kernel
def fit_first(rates, event, order):
    """Write the plan of rising matching rates; return how many attributes exclude.

    The first attribute excludes; the next ones do as long as fewer subscriptions miss on them
    than are left, by the product of the rates before. rates, event, order as in
    ``order_by_rate``. O(M log M).
    """
    n_missing = order_by_rate(rates, event, order)
    share_left = 1.0
    for k in range(event.size):
        m = order[k]
        if k > 0 and k > n_missing and share_left <= 1.0 - rates[m]:
            return k
        share_left *= rates[m]
    return event.size


@kernel
def fit_best(rates, event, order):
    """Write the plan of lowest cost; return how many attributes exclude.

    Tries every non-empty set of attributes that exclude, the others selecting by rising rate.
    rates, event, order as in ``order_by_rate``. O(2^M M).
    """
    n_missing = order_by_rate(rates, event, order)
    n_present = event.size - n_missing
    if n_present == 0:
        return event.size
    present = np.empty(n_present, np.int32)
    present[0] = order[0]
    present[1:] = order[n_missing + 1 :]
    share = 1.0
    for k in range(1, n_missing + 1):
        share *= rates[order[k]]
    best = best_set(rates[present], share)
    n_before, n_behind = 0, 0
    for i in range(n_present):
        n_before += (best >> i) & 1
    missing = order[1 : n_missing + 1].copy()
    at, at_behind = 0, n_missing + n_before
    for i in range(n_present):
        if (best >> i) & 1:
            order[at] = present[i]
            at += 1 + (n_missing if at == 0 else 0)
        else:
            order[at_behind + n_behind] = present[i]
            n_behind += 1
    order[1 : n_missing + 1] = missing
    return n_missing + n_before


@kernel
def best_set(rates, share):
    """The set of attributes, as bits, that should exclude so that the cost is lowest.

    rates: f8[n], ascending, n < 63; share: what is left before. O(2^n n).
    """
    best, lowest = 1, np.inf
    for chosen in range(1, 1 << rates.size):
        cost, left = 0.0, share
        for i in range(rates.size):
            if (chosen >> i) & 1:
                cost += 1.0 - rates[i]
                left *= rates[i]
        for i in range(rates.size):
            if not (chosen >> i) & 1:
                cost += left
                left *= rates[i]
        if cost < lowest:
            best, lowest = chosen, cost
    return best


@kernel
def find_costs(rates, event, order, n_excluding, costs):
    """Write the cost of each step of a plan (f8[M]), as a share of all subscriptions. O(M).

    An excluding step costs the share that does not match, a selecting one the share that is
    left, a missing attribute nothing.
    """
    share_left = 1.0
    for k in range(event.size):
        m = order[k]
        if np.isnan(event[m]):
            costs[k] = 0.0
        else:
            costs[k] = 1.0 - rates[m] if k < n_excluding else share_left
        share_left *= rates[m]
