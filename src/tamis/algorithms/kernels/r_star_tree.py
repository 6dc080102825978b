"""R*-Tree: subscriptions as boxes, and events that a subscription accepts."""

from __future__ import annotations

from tamis.kernels.compiled import kernel
from tamis.kernels.constraints import holds


@kernel
def write_boxes(domains, stored, slots, low, high):
    """Write the boxes of slots (i4[n]): low, high (f8[n, D], D >= M), places in [0, 1].

    A side is the whole domain where a slot asks nothing or excludes a value. Places never
    decrease with the value, so who accepts an event has a box around it.
    """
    for i in range(slots.size):
        for m in range(low.shape[1]):
            low[i, m], high[i, m] = 0.0, 1.0
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            if not stored.negated[k]:
                m = stored.attribute[k]
                base, width = domains.low[m], domains.width[m]
                low[i, m] = min(max((stored.low[k] - base) / width, 0.0), 1.0)
                high[i, m] = min(max((stored.high[k] - base) / width, 0.0), 1.0)


@kernel
def keep_accepted(events, subscription, slots, n_slots):
    """Keep those of slots[:n_slots] whose events (f8[Q, M]) slot 0 of a subscription accepts."""
    n_kept = 0
    for at in range(n_slots):
        is_accepted, k = True, subscription.start[0]
        while is_accepted and k < subscription.end[0]:
            is_accepted = holds(subscription, k, events[slots[at], subscription.attribute[k]])
            k += 1
        if is_accepted:
            slots[n_kept] = slots[at]
            n_kept += 1
    return n_kept
