"""R*-Tree: subscriptions as boxes."""

from __future__ import annotations

from tamis.kernels.compiled import kernel


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
