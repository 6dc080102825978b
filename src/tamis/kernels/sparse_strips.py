"""Strips: where slots are that no selective constraint leads to.

Such a slot chooses two of its constraints, and all that choose the same axes form a *plot*. The
places of a plot are cut into *strips* that are near each other on the first axis, and ordered by
the low on the second. So of a strip that an event touches on the first axis it is a *run* of
places that can hold it on the second: fences tell its first place and its end for each of 32
buckets of the second. Runs are scanned, see ``sparse_strip_scan``: their tests lie side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, kernel
from tamis.kernels.sparse_directory import mix

STRIP = 192  # places of a strip, more or less; a fence has eight bits
N_FENCES = 32  # buckets of the second axis
FENCE_SHIFT = 16 - (N_FENCES.bit_length() - 1)  # from mass to bucket
N_COLOURS = 4  # any five axes have two of one colour
MAX_PICK = 6  # constraints of a slot that may choose its plot
# Costs in ns: testing a place of a run, looking for the runs of a plot
TEST_NS, PLOT_NS = 0.4, 30.0


class Crowd(NamedTuple):
    """How many slots use which axes."""

    n_slots: int
    share: Array  # f8[M], of the slots that constrain an axis
    colour: Array  # u1[M], below N_COLOURS


class Plots(NamedTuple):
    """Q plots of S strips, by first axis and second axis."""

    plot_start: Array  # i4[M + 1]: the plots whose first axis is a
    plot: Array  # i4[Q + 1, 3]: second axis, first strip, first fence
    strip: Array  # i4[S + 1, 3]: first place, least and greatest mass on the first axis
    fence: Array  # u1[..]: of a plot, by bucket and strip, first place and end, from its first on


@kernel
def pair_cost(bounds, i, j, n_used):
    """Cost in ns of a slot in the plot of its constraints i and j, if n_used slots use it."""
    share = bounds.share
    touched = min(1.0, share[j] + 1.0 / N_FENCES)
    if i != j:
        touched *= min(1.0, share[i] + STRIP / n_used)
    return TEST_NS * touched + PLOT_NS / n_used


@kernel
def choose_pairs(bounds, group_of_slot, crowd, tally, step, is_first, is_last, pair):
    """Choose the plot of every ``step``-th slot at the root: pair: i4[P, 2], two constraints.

    A round of a local search on ``tally``: i4[T], the number of slots by axes, by hash and so a
    little too high. In the first round nobody has chosen: as many as may be expected are taken
    to use a plot, and axes of different colours cost more, so that slots with different axes
    agree on far fewer pairs (Turan). The last round leaves the tally as it is. Both constraints
    may be the same, where few slots share two axes; a slot without any, or in a group, has none
    (-1). O(P).
    """
    start, axis, order = bounds.start, bounds.axis, bounds.order
    share, colour, mask = crowd.share, crowd.colour, u64(tally.size - 1)
    for slot in range(0, start.size - 1, step):
        if group_of_slot[slot] >= 0:
            continue
        if not is_first and not is_last and pair[slot, 0] >= 0:
            old = pair_key(axis[pair[slot, 0]], axis[pair[slot, 1]])
            tally[mix(old) & mask] -= step
        p, best, best_at = start[slot], 1e30, u64(0)
        n = min(start[slot + 1] - p, MAX_PICK)
        for x in range(n):
            for y in range(x, n):
                i, j = order[p + x], order[p + y]
                if axis[j] < axis[i]:
                    i, j = j, i
                a, b = axis[i], axis[j]
                at = mix(pair_key(a, b)) & mask
                n_used = tally[at] + 1.0
                if is_first:
                    n_used = max(n_used, crowd.n_slots * share[a] * (share[b] if i != j else 1.0))
                cost = pair_cost(bounds, i, j, n_used)
                if is_first and colour[a] != colour[b]:
                    cost += TEST_NS
                if cost < best:
                    best, best_at = cost, at
                    pair[slot, 0], pair[slot, 1] = i, j
        if n and not is_last:
            tally[best_at] += step


@kernel
def pair_key(a, b):
    """Two axes as one number."""
    return u64(a) << u64(32) | u64(b)


def order_places(bounds, pair, n_axes):
    """The slots at the root, by plot, strip and low on the second axis, and where plots begin.

    ``pair``: i4[P, 2], as of choose_pairs. Returns slots: i4[R], the first place of every strip
    and the end: i8[S + 1], and the first strip of every plot and the end: i8[Q + 1].
    """
    slots = np.nonzero(pair[:, 0] >= 0)[0]
    one, two = pair[slots, 0], pair[slots, 1]
    key = bounds.axis[one].astype(np.int64) * n_axes + bounds.axis[two]
    order = np.lexsort((bounds.mass[one, 0], key))
    first = np.nonzero(np.diff(key[order], prepend=-1))[0]
    size = np.diff(np.append(first, len(slots)))
    n_strips = -(-size // STRIP)
    plot_first = np.concatenate([[0], np.cumsum(n_strips)])
    nth = np.arange(plot_first[-1]) - np.repeat(plot_first[:-1], n_strips)
    cut = np.repeat(first, n_strips) + nth * np.repeat(size, n_strips) // np.repeat(
        n_strips, n_strips
    )
    strip_first = np.append(cut, len(slots))
    strip = np.repeat(np.arange(len(cut)), np.diff(strip_first))
    order = order[np.lexsort((bounds.mass[two[order], 0], strip))]
    return slots[order].astype(np.int32), strip_first, plot_first


@kernel
def write_strips(bounds, pair, slot_of_place, plot, strip, fence):
    """Write reaches and fences; ``strip`` has its first places, ``plot`` all. O(places).

    ``slot_of_place``: i4[R], those of the strips. A place is in the run of a bucket unless all up
    to it end before, or it and all after it begin behind.
    """
    mass = bounds.mass
    for q in range(plot.shape[0] - 1):
        n_strips = plot[q + 1, 1] - plot[q, 1]
        for s in range(plot[q, 1], plot[q + 1, 1]):
            at = plot[q, 2] + 2 * (s - plot[q, 1])
            first, end = strip[s, 0], strip[s + 1, 0]
            least, greatest = 65535, 0
            n_before = n_until = np.int64(0)
            for bucket in range(N_FENCES):
                while first + n_until < end:
                    k = pair[slot_of_place[first + n_until], 1]
                    if mass[k, 0] >> FENCE_SHIFT > bucket:
                        break
                    n_until += 1
                while first + n_before < end:
                    k = pair[slot_of_place[first + n_before], 1]
                    if mass[k, 1] >> FENCE_SHIFT >= bucket:
                        break
                    n_before += 1
                fence[at + 2 * n_strips * bucket] = min(n_before, n_until)
                fence[at + 2 * n_strips * bucket + 1] = n_until
            for place in range(first, end):
                k = pair[slot_of_place[place], 0]
                least = min(least, np.int64(mass[k, 0]))
                greatest = max(greatest, np.int64(mass[k, 1]))
            strip[s, 1], strip[s, 2] = least, greatest


def build_plots(bounds, pair, n_axes):
    """Slots by place: i4[R], and Plots; places are counted from the first of all strips on."""
    slots, strip_first, plot_first = order_places(bounds, pair, n_axes)
    plot = np.zeros((len(plot_first), 3), np.int32)
    strip = np.zeros((len(strip_first), 3), np.int32)
    strip[:, 0] = strip_first
    plot[:, 1] = plot_first
    plot[:, 2] = 2 * N_FENCES * plot_first
    leaders = pair[slots[strip_first[plot_first[:-1]]]]
    plot[:-1, 0] = bounds.axis[leaders[:, 1]]
    plot_start = np.searchsorted(bounds.axis[leaders[:, 0]], np.arange(n_axes + 1))
    fence = np.zeros(2 * N_FENCES * plot_first[-1], np.uint8)
    write_strips(bounds, pair, slots, plot, strip, fence)
    return slots, Plots(plot_start.astype(np.int32), plot, strip, fence)
