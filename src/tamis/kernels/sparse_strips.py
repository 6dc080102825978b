"""Strips: where slots are that no selective constraint leads to.

Such a slot chooses two of its constraints, and all that choose the same axes form a *plot*. The
places of a plot are cut into *strips* that are near each other on the first axis, and ordered by
the low on the second. A strip is some blocks of 16 places, whose tests lie side by side
(``sparse_strip_tests``). Of a strip that an event touches on the first axis it is a *run* of
blocks that can hold it on the second: *gates* of a plot tell the strips, *fences* the blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, kernel
from tamis.kernels.sparse_directory import mix

BLOCK = 16  # places whose tests are looked at at once
STRIP = 12 * BLOCK  # places of a strip at most
N_GATES, N_FENCES = 64, 32  # buckets of the first axis and of the second
GATE_SHIFT, FENCE_SHIFT = (17 - n.bit_length() for n in (N_GATES, N_FENCES))  # from mass to bucket
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
    plot: Array  # i4[Q + 1, 2]: second axis, first strip
    gate: Array  # i4[Q, N_GATES, 2]: by bucket of the first axis, first strip and end
    strip: Array  # i4[S + 1, 3]: first block, least and greatest mass on the first axis
    fence: Array  # u1[..]: of a plot, by bucket of the second axis and strip, first block and end


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
    to use a plot, and axes of different colours cost more for slots of more axes than there are
    colours, so that slots with different axes agree on far fewer pairs (Turan). The last round
    leaves the tally as it is. Both constraints may be the same, where few slots share two axes; a
    slot without any, or in a group, has none (-1). O(P).
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
                if is_first and n > N_COLOURS and colour[a] != colour[b]:
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

    ``pair``: i4[P, 2], as of choose_pairs. Returns slots by place: i4[BLOCK B], -1 where a strip
    does not fill its last block, the first block of every strip and the end: i8[S + 1], and the
    first strip of every plot and the end: i8[Q + 1].
    """
    slots = np.nonzero(pair[:, 0] >= 0)[0]
    one, two = pair[slots, 0], pair[slots, 1]
    key = bounds.axis[one].astype(np.int64) * n_axes + bounds.axis[two]
    order = np.lexsort((bounds.mass[one, 0], key))
    plot_first = np.append(np.nonzero(np.diff(key[order], prepend=-1))[0], len(slots))
    size = np.diff(plot_first)
    n_strips = -(-size // STRIP)
    first_strip = np.concatenate([[0], np.cumsum(n_strips)])
    nth = np.arange(first_strip[-1]) - np.repeat(first_strip[:-1], n_strips)
    in_plot = nth * np.repeat(size, n_strips) // np.repeat(n_strips, n_strips)
    strip_first = np.append(np.repeat(plot_first[:-1], n_strips) + in_plot, len(slots))
    strip_size = np.diff(strip_first)
    first_block = np.concatenate([[0], np.cumsum(-(-strip_size // BLOCK))])
    strip = np.repeat(np.arange(len(strip_size)), strip_size)
    order = order[np.lexsort((bounds.mass[two[order], 0], strip))]
    of_place = np.full(BLOCK * first_block[-1], -1, np.int32)
    of_place[np.arange(len(slots)) + (BLOCK * first_block - strip_first)[strip]] = slots[order]
    return of_place, first_block, first_strip


@kernel
def write_fences(bounds, pair, slot_of_place, plot, strip, fence):
    """Write the reaches of strips, which have their first blocks, and fences. O(places).

    A place is in the run of a bucket unless all up to it end before, or it and all after it begin
    behind.
    """
    mass = bounds.mass
    for q in range(plot.shape[0] - 1):
        n_strips = plot[q + 1, 1] - plot[q, 1]
        for s in range(plot[q, 1], plot[q + 1, 1]):
            at = 2 * N_FENCES * plot[q, 1] + 2 * (s - plot[q, 1])
            first, end = BLOCK * strip[s, 0], BLOCK * strip[s + 1, 0]
            while slot_of_place[end - 1] < 0:
                end -= 1
            strip[s, 1], strip[s, 2] = 65535, 0
            for place in range(first, end):
                k = pair[slot_of_place[place], 0]
                strip[s, 1] = min(strip[s, 1], np.int32(mass[k, 0]))
                strip[s, 2] = max(strip[s, 2], np.int32(mass[k, 1]))
            before = until = first
            for bucket in range(N_FENCES):
                while (
                    until < end and mass[pair[slot_of_place[until], 1], 0] >> FENCE_SHIFT <= bucket
                ):
                    until += 1
                while (
                    before < until
                    and mass[pair[slot_of_place[before], 1], 1] >> FENCE_SHIFT < bucket
                ):
                    before += 1
                fence[at] = fence[at + 1] = (before - first) // BLOCK
                if before < until:
                    fence[at + 1] = (until - first + BLOCK - 1) // BLOCK
                at += 2 * n_strips


@kernel
def write_gates(plot, strip, gate):
    """Write gate: i4[Q, N_GATES, 2]. O(strips + gates)."""
    for q in range(plot.shape[0] - 1):
        first, end = plot[q, 1], plot[q + 1, 1]
        before = until = first
        for bucket in range(N_GATES):
            while until < end and strip[until, 1] >> GATE_SHIFT <= bucket:
                until += 1
            while before < until and strip[before, 2] >> GATE_SHIFT < bucket:
                before += 1
            gate[q, bucket, 0], gate[q, bucket, 1] = before, until


def build_plots(bounds, pair, n_axes):
    """Slots by place, as of order_places, and Plots."""
    slot_of_place, first_block, first_strip = order_places(bounds, pair, n_axes)
    plot = np.zeros((len(first_strip), 2), np.int32)
    strip = np.zeros((len(first_block), 3), np.int32)
    gate = np.zeros((len(first_strip) - 1, N_GATES, 2), np.int32)
    fence = np.zeros(2 * N_FENCES * first_strip[-1], np.uint8)
    plot[:, 1], strip[:, 0] = first_strip, first_block
    leaders = pair[slot_of_place[BLOCK * first_block[first_strip[:-1]]]]
    plot[:-1, 0] = bounds.axis[leaders[:, 1]]
    plot_start = np.searchsorted(bounds.axis[leaders[:, 0]], np.arange(n_axes + 1))
    write_fences(bounds, pair, slot_of_place, plot, strip, fence)
    write_gates(plot, strip, gate)
    return slot_of_place, Plots(plot_start.astype(np.int32), plot, gate, strip, fence)
