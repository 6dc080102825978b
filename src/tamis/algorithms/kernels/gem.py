"""GEM: constraints as points of a triangle of cells, and what an event excludes there.

A constraint is the point (low, high). Its row is the cell of high, its column the cell of low,
and column <= row. Inside a cell each bound is kept as a place of 16 bits: with its cell it is the
number of one of ``n_cells * 65536`` parts of the domain. Parts that differ tell which bound is
lower; equal ones leave it to the exact bounds. Excluded values lie in a row above the triangle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.bits import set_bit
from tamis.kernels.cells import cell_of
from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.slot_lists import Lists

PLACE_BITS = 16
_PLACES = (1 << PLACE_BITS) - 1
_NEVER_ABOVE, _NEVER_BELOW = 1 << PLACE_BITS, -1  # limits that no place passes


class Triangle(NamedTuple):
    """The cells of M attributes: cell (row, column) of m is list ``cell_at(m, row, column)``."""

    lists: Lists  # the value beside a slot is u4, the place of low << 16 | the place of high
    n_cells: int
    row_count: Array  # i8[M, n_cells], how many constraints are in each row
    column_count: Array  # i8[M, n_cells], and in each column


class Caches(NamedTuple):
    """For values of each attribute the slots that do not match there, or hold nothing."""

    place: Array  # f8[M, C], ascending
    words: Array  # u8[M, C, W]


@inlined
def cell_at(m, row, column, n_cells):
    """The list of a cell; ``row = n_cells`` is the row of excluded values."""
    return m * (n_cells * (n_cells + 3) // 2) + row * (row + 1) // 2 + column


@inlined
def part_of(domains, m, value, n_cells):
    """The part of the domain a value is in: its cell << 16 | its place there."""
    return cell_of(domains, m, value, n_cells << PLACE_BITS)


@kernel
def fill_cells(stored, slots, domains, n_cells, keys, owners, places):
    """Write each constraint's cell, slot and places. O(constraints).

    slots: i4[n]; keys, owners: i4[K]; places: u4[K], an entry for each constraint of the slots.
    """
    at = 0
    for i in range(slots.size):
        slot = slots[i]
        for k in range(stored.start[slot], stored.end[slot]):
            m = np.int64(stored.attribute[k])
            low = part_of(domains, m, stored.low[k], n_cells)
            high = part_of(domains, m, stored.high[k], n_cells)
            row = n_cells if stored.negated[k] else high >> PLACE_BITS
            keys[at] = cell_at(m, row, low >> PLACE_BITS, n_cells)
            owners[at] = slot
            places[at] = (low & _PLACES) << PLACE_BITS | (high & _PLACES)
            at += 1


@kernel
def count_cells(triangle, stored, slots, domains, more):
    """Add ``more`` (1 or -1) to the counters of the rows and columns of slots (i4[n])."""
    n_cells = triangle.n_cells
    for i in range(slots.size):
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            if not stored.negated[k]:
                m = np.int64(stored.attribute[k])
                high = part_of(domains, m, stored.high[k], n_cells) >> PLACE_BITS
                low = part_of(domains, m, stored.low[k], n_cells) >> PLACE_BITS
                triangle.row_count[m, high] += more
                triangle.column_count[m, low] += more


@kernel
def find_rates(triangle, domains, n_asking, n_held, event, rates):
    """Write the share of subscriptions that match on each attribute, by the counters.

    n_asking: i8[M]; n_held: subscriptions in all; event, rates: f8[M]. Rows below the value's
    and columns beyond count fully, those of the value by the share the value divides. O(M cells).
    """
    for m in range(event.size):
        if np.isnan(event[m]):
            rates[m] = 1.0 - n_asking[m] / max(1, n_held)
            continue
        part = part_of(domains, m, event[m], triangle.n_cells)
        cell, share = part >> PLACE_BITS, (part & _PLACES) / (_PLACES + 1)
        n_unmatched = 0
        for row in range(cell):
            n_unmatched += triangle.row_count[m, row]
        for column in range(cell + 1, triangle.n_cells):
            n_unmatched += triangle.column_count[m, column]
        on_border = share * triangle.row_count[m, cell]
        on_border += (1.0 - share) * triangle.column_count[m, cell]
        rates[m] = max(0.0, 1.0 - (n_unmatched + on_border) / max(1, n_held))


@kernel
def exclude(triangle, caches, columns, stored, domains, event, plan, words):
    """Set the bit of every slot that does not match on the excluding attributes of a plan.

    columns: see kernels/columns.py; event: f8[M]; plan: (order i4[M], how many exclude); words:
    u8[W], written whole. Stops when nobody is left. O(entries passed).
    """
    order, n_excluding = plan
    is_first_cached = n_excluding > 0 and caches.place.shape[1] > 0
    if is_first_cached and not np.isnan(event[order[0]]):
        start_from_cache(triangle, caches, stored, domains, order[0], event[order[0]], words)
    else:
        is_first_cached = False
        for at in range(words.size):
            words[at] = columns.absent[at]
    for k in range(np.int64(is_first_cached), n_excluding):
        m = np.int64(order[k])
        if np.isnan(event[m]):
            for at in range(words.size):
                words[at] |= columns.asked[m, at]
        else:
            exclude_by_areas(triangle, stored, domains, m, event[m], words)
        if is_full(words):
            return


@kernel
def is_full(words):
    """Whether every bit is set; one unset bit near the front answers at once."""
    for at in range(words.size):
        if ~words[at]:
            return False
    return True


@kernel
def exclude_by_areas(triangle, stored, domains, m, value, words):
    """Set the bits of the areas A and B and of what does not match in A', B' and D (Algorithm 1).

    O(constraints on m that do not match + those in the value's row and column).
    """
    n_cells = triangle.n_cells
    cell = part_of(domains, m, value, n_cells) >> PLACE_BITS
    first = cell_at(m, 0, 0, n_cells)
    mark_lists(triangle.lists, first, cell_at(m, cell, 0, n_cells), words)
    for row in range(cell + 1, n_cells):
        start = cell_at(m, row, 0, n_cells)
        mark_lists(triangle.lists, start + cell + 1, start + row + 1, words)
    examine_border(triangle, stored, domains, m, value, words, 0)
    mark_excluded(triangle, stored, domains, m, value, words)


@kernel
def examine_border(triangle, stored, domains, m, value, words, renewed):
    """Compare the constraints in the value's row (A'), column (B') and on the diagonal (D).

    renewed: 0 to set the bits of those that do not match, 1 to write the bits of all.
    """
    n_cells, lists = triangle.n_cells, triangle.lists
    part = part_of(domains, m, value, n_cells)
    cell, place = part >> PLACE_BITS, part & _PLACES
    asked = (m, value)
    for column in range(cell):
        b = cell_at(m, cell, column, n_cells)
        examine(lists, b, (_NEVER_ABOVE, place), stored, asked, words, renewed)
    for row in range(cell + 1, n_cells):
        b = cell_at(m, row, cell, n_cells)
        examine(lists, b, (place, _NEVER_BELOW), stored, asked, words, renewed)
    examine(lists, cell_at(m, cell, cell, n_cells), (place, place), stored, asked, words, renewed)


@kernel
def examine(lists, b, limits, stored, asked, words, renewed):
    """Set the bits of list b's slots with low above or high below the limits, by their places.

    limits: the value's place for low and for high, or one that never decides; asked: attribute
    and value, for the exact comparison where places are equal; renewed: as in ``examine_border``.
    """
    low_limit, high_limit = np.int64(limits[0]), np.int64(limits[1])
    start, renewed = np.uint64(lists.start[b]), np.uint64(renewed)
    for i in range(start, start + np.uint64(lists.size[b])):
        slot, places = np.uint64(lists.slots[i]), np.int64(lists.values[i])
        low, high = places >> PLACE_BITS, places & _PLACES
        is_out = np.uint64(low > low_limit) | np.uint64(high < high_limit)
        if low == low_limit or high == high_limit:
            is_out = np.uint64(not meets(stored, slot, asked[0], asked[1]))
        word, bit = slot >> np.uint64(6), slot & np.uint64(63)
        words[word] = (words[word] & ~(renewed << bit)) | (is_out << bit)


@kernel
def meets(stored, slot, m, value):
    """Whether a value meets the constraint of a slot on attribute m, which it has."""
    k = stored.start[slot]
    while stored.attribute[k] != m:
        k += 1
    if stored.negated[k]:
        return value != stored.low[k]
    return stored.low[k] <= value and value <= stored.high[k]


@kernel
def mark_excluded(triangle, stored, domains, m, value, words):
    """Set the bits of the slots that exclude a value. O(excluded values in its cell)."""
    cell = part_of(domains, m, value, triangle.n_cells) >> PLACE_BITS
    b, lists = cell_at(m, triangle.n_cells, cell, triangle.n_cells), triangle.lists
    for i in range(lists.start[b], lists.start[b] + lists.size[b]):
        if not meets(stored, lists.slots[i], m, value):
            set_bit(words, lists.slots[i])


@kernel
def mark_lists(lists, first, last, words):
    """Set the bits of all slots in lists first..last - 1."""
    for b in range(first, last):
        start = np.uint64(lists.start[b])
        for i in range(start, start + np.uint64(lists.size[b])):
            set_bit(words, lists.slots[i])


@kernel
def unmark_lists(lists, first, last, words):
    """Clear the bits of all slots in lists first..last - 1."""
    for b in range(first, last):
        start = np.uint64(lists.start[b])
        for i in range(start, start + np.uint64(lists.size[b])):
            slot = np.uint64(lists.slots[i])
            words[slot >> np.uint64(6)] &= ~(np.uint64(1) << (slot & np.uint64(63)))


@kernel
def nearest_cache(caches, m, value):
    """The number of the cache of attribute m whose place is nearest to a value. O(caches)."""
    nearest = 0
    for c in range(1, caches.place.shape[1]):
        if abs(caches.place[m, c] - value) < abs(caches.place[m, nearest] - value):
            nearest = c
    return nearest


@kernel
def start_from_cache(triangle, caches, stored, domains, m, value, words):
    """Write the bits of the slots that do not match on attribute m, by a cache (Algorithm 5).

    The nearest cache is copied; what lies between its rectangle and the value's is put right.
    words: u8[W], written whole. O(W + constraints between the two).
    """
    m = np.int64(m)
    n_cells, lists = triangle.n_cells, triangle.lists
    c = nearest_cache(caches, m, value)
    place = caches.place[m, c]
    for at in range(words.size):
        words[at] = caches.words[m, c, at]
    if place == value:
        return
    cell = part_of(domains, m, value, n_cells) >> PLACE_BITS
    cached = part_of(domains, m, place, n_cells) >> PLACE_BITS
    if value < place:
        for row in range(cell + 1, cached + 1):
            start = cell_at(m, row, 0, n_cells)
            unmark_lists(lists, start, start + cell, words)
        for row in range(cached, n_cells):
            start = cell_at(m, row, 0, n_cells)
            mark_lists(lists, start + cell + 1, start + cached + 1, words)
    else:
        for row in range(cached, cell):
            start = cell_at(m, row, 0, n_cells)
            mark_lists(lists, start, start + cached + 1, words)
        for row in range(cell + 1, n_cells):
            start = cell_at(m, row, 0, n_cells)
            unmark_lists(lists, start + cached, start + cell, words)
    examine_border(triangle, stored, domains, m, value, words, 1)
    b = cell_at(m, n_cells, cached, n_cells)
    unmark_lists(lists, b, b + 1, words)
    mark_excluded(triangle, stored, domains, m, value, words)


@kernel
def put_caches(caches, stored, slots):
    """Write the bits of new slots (i4[n]) in every cache. O(n M caches)."""
    n_attributes, n_caches = caches.place.shape
    for i in range(slots.size):
        slot = slots[i]
        word, shift = slot >> 6, np.uint64(slot & 63)
        k, end = stored.start[slot], stored.end[slot]
        for m in range(n_attributes):
            is_asked = k < end and stored.attribute[k] == m
            for c in range(n_caches):
                is_out = np.uint64(0)
                if is_asked:
                    place = caches.place[m, c]
                    is_outside = place < stored.low[k] or place > stored.high[k]
                    is_out = np.uint64(is_outside != (stored.negated[k] == 1))
                kept = caches.words[m, c, word] & ~(np.uint64(1) << shift)
                caches.words[m, c, word] = kept | (is_out << shift)
            k += is_asked


@kernel
def drop_caches(caches, slots):
    """Set the bits of slots (i4[n]) that hold nothing any more in every cache. O(n M caches)."""
    n_attributes, n_caches = caches.place.shape
    for i in range(slots.size):
        word, bit = slots[i] >> 6, np.uint64(1) << np.uint64(slots[i] & 63)
        for m in range(n_attributes):
            for c in range(n_caches):
                caches.words[m, c, word] |= bit
