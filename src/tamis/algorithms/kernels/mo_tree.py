"""MO-Tree: a bucket for every combination of cells of the indexed attributes.

Subscriptions belong to overlapping cells, events to disjoint ones; an item is in one bucket, the
number whose digits are its cells. Beside it stands a word of eight codes of 7 bits, two for each
of the first four layers: ``126 - cell of low`` and ``cell of high``, of 127 cells. A bit above
each code stays clear for comparing all eight at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.places import place_cell, place_of

LAST_CODE = 126
FREE = 127  # both codes of a free attribute, or of a missing value
N_CODED = 4  # layers
N_PARENTS = 256  # whose buckets are looked up before their entries are read
GUARD = np.uint64(0x8080808080808080)


class Layers(NamedTuple):
    """The layers of a tree: H attributes, the same C overlapping and V disjoint cells for each."""

    attribute: Array  # i8[H]
    begin: Array  # f8[C], the narrowest level first; the last cell is the whole domain
    end: Array  # f8[C]
    level_start: Array  # i8[L + 1]
    n_values: int  # V; cell V is for events without a value


class Scratch(NamedTuple):
    """What matching writes on the way; C is the number of cells, overlapping or disjoint."""

    cells: Array  # i4[H, C], the cells each layer visits
    n_found: Array  # i8[H], how many
    parents: Array  # i4[...], the first buckets below the visited nodes of the last layer
    ranges: Array  # i8[N_PARENTS x C, 2], where the entries of some buckets are


@kernel
def interval_cell(layers, low, high):
    """The smallest overlapping cell around an interval of places; of several the nearest."""
    for level in range(layers.level_start.size - 1):
        nearest, found = np.inf, -1
        for cell in range(layers.level_start[level], layers.level_start[level + 1]):
            if layers.begin[cell] <= low and high <= layers.end[cell]:
                off = abs(layers.begin[cell] + layers.end[cell] - low - high)
                if off < nearest:
                    nearest, found = off, cell
        if found >= 0:
            return found
    return layers.begin.size - 1


@inlined
def with_codes(word, layer, low, high):
    """The word with the codes of an interval of places in the given layer."""
    low_code = LAST_CODE - place_cell(low, LAST_CODE + 1)
    codes = np.uint64(low_code | (place_cell(high, LAST_CODE + 1) << 8))
    return word | (codes << np.uint64(16 * layer))


@inlined
def with_free(word, layer):
    """The word with the codes of what is free, or missing, in the given layer."""
    return word | (np.uint64(FREE | (FREE << 8)) << np.uint64(16 * layer))


@inlined
def may_accept(subscription, event):
    """Whether no code of an event's word is above that of a subscription's."""
    return (((subscription | GUARD) - event) & GUARD) == GUARD


@kernel
def find_asked(stored, slot, m):
    """The constraint of a slot on attribute m, or -1."""
    for k in range(stored.start[slot], stored.end[slot]):
        if stored.attribute[k] == m:
            return k
    return -1


@kernel
def subscription_word(layers, places, stored, slot):
    """The word of a slot."""
    word = np.uint64(0)
    for layer in range(min(layers.attribute.size, N_CODED)):
        m = layers.attribute[layer]
        k = find_asked(stored, slot, m)
        if k < 0:
            word = with_free(word, layer)
        elif stored.negated[k]:
            word = with_codes(word, layer, 0.0, 1.0)
        else:
            low, high = place_of(places, m, stored.low[k]), place_of(places, m, stored.high[k])
            word = with_codes(word, layer, low, high)
    return word


@kernel
def place_subscriptions(layers, places, stored, slots, buckets, words):
    """Write the bucket (i4[n]) and the word (u8[n]) of slots (i4[n]). O(n H (k + C))."""
    n_cells = layers.begin.size
    for i in range(slots.size):
        bucket = np.int64(0)
        for layer in range(layers.attribute.size):
            m = layers.attribute[layer]
            k = find_asked(stored, slots[i], m)
            cell = n_cells - 1
            if k >= 0 and not stored.negated[k]:
                low, high = place_of(places, m, stored.low[k]), place_of(places, m, stored.high[k])
                cell = interval_cell(layers, low, high)
            bucket = bucket * n_cells + cell
        buckets[i] = bucket
        words[i] = subscription_word(layers, places, stored, slots[i])


@kernel
def event_word(layers, places, event):
    """The word of an event (f8[M])."""
    word = np.uint64(0)
    for layer in range(min(layers.attribute.size, N_CODED)):
        m = layers.attribute[layer]
        if np.isnan(event[m]):
            word = with_free(word, layer)
        else:
            place = place_of(places, m, event[m])
            word = with_codes(word, layer, place, place)
    return word


@kernel
def place_events(layers, places, events, slots, buckets, words):
    """Write the bucket (i4[n]) and the word (u8[n]) of event slots (i4[n]). O(n H)."""
    for i in range(slots.size):
        event, bucket = events[slots[i]], np.int64(0)
        for layer in range(layers.attribute.size):
            m = layers.attribute[layer]
            cell = layers.n_values
            if not np.isnan(event[m]):
                cell = place_cell(place_of(places, m, event[m]), layers.n_values)
            bucket = bucket * (layers.n_values + 1) + cell
        buckets[i] = bucket
        words[i] = event_word(layers, places, event)


@kernel
def stab(layers, places, event, cells, n_found):
    """Write the overlapping cells an event must visit: cells (i4[H, C]), how many (i8[H]).

    Those around its value; if that is missing, only the last, which holds who leaves it free.
    """
    last = layers.begin.size - 1
    for layer in range(layers.attribute.size):
        m, n = layers.attribute[layer], 0
        if np.isnan(event[m]):
            cells[layer, 0] = last
            n = 1
        else:
            place = place_of(places, m, event[m])
            for cell in range(last + 1):
                if layers.begin[cell] <= place and place <= layers.end[cell]:
                    cells[layer, n] = cell
                    n += 1
        n_found[layer] = n


@kernel
def intersect(layers, places, subscription, cells, n_found):
    """Write the disjoint cells a subscription must visit: cells (i4[H, V + 1]), how many (i8[H]).

    Those its interval touches; all, and that of the missing, where it is free.
    """
    for layer in range(layers.attribute.size):
        m = layers.attribute[layer]
        k = find_asked(subscription, 0, m)
        first, last = 0, layers.n_values - 1
        if k < 0:
            last = layers.n_values
        elif not subscription.negated[k]:
            first = place_cell(place_of(places, m, subscription.low[k]), layers.n_values)
            last = place_cell(place_of(places, m, subscription.high[k]), layers.n_values)
        for cell in range(first, last + 1):
            cells[layer, cell - first] = cell
        n_found[layer] = last + 1 - first


@kernel
def write_parents(cells, n_found, n_cells, parents):
    """Write the first bucket below each visited node of the last layer; return how many.

    cells: i4[H, ...], n_found: i8[H]; parents: i4[the product of n_found[:-1]].
    """
    n_parents = 1
    parents[0] = 0
    for layer in range(n_found.size - 1):
        n_children = n_found[layer]
        for i in range(n_parents - 1, -1, -1):  # backwards, so that none is written before read
            parent = parents[i]
            for j in range(n_children):
                parents[i * n_children + j] = (parent + cells[layer, j]) * n_cells
        n_parents *= n_children
    return n_parents


@kernel
def write_ranges(lists, parents, first, last, cells, n_last, ranges):
    """Write where the entries below parents[first:last] (i4[...]) are; return how many ranges.

    cells, n_last: the cells of the last layer; ranges: i8[..., 2], start and end. Buckets that
    stand side by side are one range.
    """
    n_ranges = 0
    for p in range(first, last):
        start = end = np.int64(0)
        for j in range(n_last):
            bucket = parents[p] + cells[j]
            if lists.start[bucket] != end:
                ranges[n_ranges, 0], ranges[n_ranges, 1] = start, end
                n_ranges += start < end
                start = end = lists.start[bucket]
            end += lists.size[bucket]
        ranges[n_ranges, 0], ranges[n_ranges, 1] = start, end
        n_ranges += start < end
    return n_ranges


@kernel
def read_ranges(lists, ranges, n_ranges, event_word, out, n_out):
    """Append the slots in ranges (i8[..., 2]) whose words may accept an event; the new length."""
    for r in range(n_ranges):
        for i in range(ranges[r, 0], ranges[r, 1]):
            out[n_out] = lists.slots[i]
            n_out += may_accept(lists.values[i], event_word)
    return n_out


@kernel
def find_subscriptions(layers, places, lists, scratch, event, out):
    """Write the slots of the visited buckets whose words may accept an event; return how many.

    O(buckets + entries). Buckets are looked up some way ahead of their entries, as both are far
    apart in memory.
    """
    stab(layers, places, event, scratch.cells, scratch.n_found)
    n_parents = write_parents(scratch.cells, scratch.n_found, layers.begin.size, scratch.parents)
    word = event_word(layers, places, event)
    cells, n_last = scratch.cells[layers.attribute.size - 1], scratch.n_found[-1]
    n_out = 0
    for first in range(0, n_parents, N_PARENTS):
        last = min(n_parents, first + N_PARENTS)
        n_ranges = write_ranges(lists, scratch.parents, first, last, cells, n_last, scratch.ranges)
        n_out = read_ranges(lists, scratch.ranges, n_ranges, word, out, n_out)
    return n_out


@kernel
def read_events(lists, ranges, n_ranges, word, validity, out, n_out, n_expired):
    """Append the event slots in ranges that a subscription's word may accept to out[:n_out].

    validity: (until f8[Q], now); expired ones go to the end of out, before the n_expired that
    are there. Returns both new numbers.
    """
    until, now = validity
    for r in range(n_ranges):
        for i in range(ranges[r, 0], ranges[r, 1]):
            slot = lists.slots[i]
            if until[slot] < now:
                n_expired += 1
                out[out.size - n_expired] = slot
            else:
                out[n_out] = slot
                n_out += may_accept(word, lists.values[i])
    return n_out, n_expired


@kernel
def find_events(layers, places, lists, scratch, subscription, validity, out):
    """Write the event slots of the visited buckets that a subscription's word may accept.

    validity: (until f8[Q], now); who has expired is written to the end of out (i4[Q]). Returns
    how many may be accepted, and how many have expired. O(buckets + entries).
    """
    intersect(layers, places, subscription, scratch.cells, scratch.n_found)
    n_parents = write_parents(scratch.cells, scratch.n_found, layers.n_values + 1, scratch.parents)
    word = subscription_word(layers, places, subscription, 0)
    cells, n_last = scratch.cells[layers.attribute.size - 1], scratch.n_found[-1]
    n_out, n_expired = 0, 0
    for first in range(0, n_parents, N_PARENTS):
        last = min(n_parents, first + N_PARENTS)
        n_ranges = write_ranges(lists, scratch.parents, first, last, cells, n_last, scratch.ranges)
        n_out, n_expired = read_events(
            lists, scratch.ranges, n_ranges, word, validity, out, n_out, n_expired
        )
    return n_out, n_expired


@kernel
def replace_words(lists, buckets, slots, words):
    """Write words[i] (u8[n]) beside slots[i] in list buckets[i], where it is."""
    for i in range(slots.size):
        at = lists.start[buckets[i]]
        while lists.slots[at] != slots[i]:
            at += 1
        lists.values[at] = words[i]
