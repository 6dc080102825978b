"""BEQ-Tree: a quadtree over two attributes; in each leaf the events in order of each attribute.

The plane is a grid of 2^DEPTH x 2^DEPTH squares, and a node at depth d is a square of the grid
2^d x 2^d. A leaf holds up to E events. In a leaf an event is a number from 0 on, and for each
attribute the numbers of those that have a value stand in order of it. A leaf that is full is
split in four; one that is a single square of the grid gets a further leaf behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel

DEPTH = 16
NOWHERE = 1  # the node of events that lack a place; the root is 0
N_NODES, N_LEAVES = 0, 1  # places in Quads.used


class Quads(NamedTuple):
    """The tree, and its leaves."""

    used: Array  # i8[2], how many nodes and leaves there are
    child: Array  # i4[n_nodes], the first of four children, -1 in a leaf
    leaf: Array  # i4[n_nodes], the number of a leaf
    behind: Array  # i4[n_leaves], the next leaf of the same square, or -1
    size: Array  # i4[n_leaves]
    slots: Array  # i4[n_leaves, E], the events
    n_ordered: Array  # i4[n_leaves, M]
    order: Array  # u2[n_leaves, M, E], numbers of events, by value
    is_stale: Array  # b1[n_leaves], whether the order has to be made


class Space(NamedTuple):
    """The two attributes of the plane; the second may be absent (-1)."""

    attribute: Array  # i8[2]
    low: Array  # f8[2]
    width: Array  # f8[2]


@inlined
def square_of(space, axis, value):
    """The row or column of the grid that holds a value (not NaN); never decreases with it."""
    place = (value - space.low[axis]) / space.width[axis] * 2.0**DEPTH
    if not place > 0:
        return 0
    return 2**DEPTH - 1 if place >= 2.0**DEPTH else int(place)


@kernel
def find_node(quads, space, event):
    """The node of an event (f8[M]) that is a leaf, and its depth."""
    x, y = 0, 0
    if np.isnan(event[space.attribute[0]]):
        return NOWHERE, DEPTH
    x = square_of(space, 0, event[space.attribute[0]])
    if space.attribute[1] >= 0:
        if np.isnan(event[space.attribute[1]]):
            return NOWHERE, DEPTH
        y = square_of(space, 1, event[space.attribute[1]])
    node, depth = 0, 0
    while quads.child[node] >= 0:
        depth += 1
        node = quads.child[node] + child_of(x, y, depth)
    return node, depth


@inlined
def child_of(x, y, depth):
    """Which of the four children at this depth a square of the grid is in."""
    shift = DEPTH - depth
    return ((x >> shift) & 1) + 2 * ((y >> shift) & 1)


@kernel
def first_place(quads, events, leaf, m, value, is_after):
    """The first place in a leaf's order of attribute m whose value is at least (or above) value.

    O(log E), each step a look at the event.
    """
    low, high = 0, quads.n_ordered[leaf, m]
    while low < high:
        middle = (low + high) >> 1
        found = events[quads.slots[leaf, quads.order[leaf, m, middle]], m]
        if found < value or (is_after and found == value):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def put_in_order(quads, events, leaf, number):
    """Insert an event of a leaf into the order of each attribute it has. O(M E)."""
    slot = quads.slots[leaf, number]
    for m in range(events.shape[1]):
        value = events[slot, m]
        if not np.isnan(value):
            place = first_place(quads, events, leaf, m, value, True)
            for at in range(quads.n_ordered[leaf, m], place, -1):
                quads.order[leaf, m, at] = quads.order[leaf, m, at - 1]
            quads.order[leaf, m, place] = number
            quads.n_ordered[leaf, m] += 1


@kernel
def sort_leaf(quads, events, leaf, values):
    """Make the orders of a leaf anew; values: f8[E] is written. O(M E log E)."""
    for m in range(events.shape[1]):
        n = 0
        for number in range(quads.size[leaf]):
            value = events[quads.slots[leaf, number], m]
            values[number] = value
            n += not np.isnan(value)
        order = np.argsort(values[: quads.size[leaf]])  # NaN goes last
        for at in range(n):
            quads.order[leaf, m, at] = order[at]
        quads.n_ordered[leaf, m] = n
    quads.is_stale[leaf] = False


@kernel
def split(quads, space, events, node, depth):
    """Give a leaf four children and its events to them, in no order yet."""
    leaf, first = quads.leaf[node], quads.used[N_NODES]
    quads.used[N_NODES] += 4
    n_events = quads.size[leaf]
    moved = quads.slots[leaf, :n_events].copy()
    quads.child[node] = first
    for at in range(4):
        new = leaf
        if at > 0:
            new = quads.used[N_LEAVES]
            quads.used[N_LEAVES] += 1
        quads.child[first + at] = -1
        quads.leaf[first + at] = new
        quads.behind[new] = -1
        quads.size[new] = 0
        quads.is_stale[new] = True
    for i in range(n_events):
        x = square_of(space, 0, events[moved[i], space.attribute[0]])
        y = 0
        if space.attribute[1] >= 0:
            y = square_of(space, 1, events[moved[i], space.attribute[1]])
        new = quads.leaf[first + child_of(x, y, depth + 1)]
        quads.slots[new, quads.size[new]] = moved[i]
        quads.size[new] += 1


@kernel
def leaf_with_room(quads, space, events, event):
    """A leaf for an event that is not full, made if need be; -1 if there is no room for that."""
    while True:
        node, depth = find_node(quads, space, event)
        leaf = quads.leaf[node]
        while quads.size[leaf] == quads.slots.shape[1] and quads.behind[leaf] >= 0:
            leaf = quads.behind[leaf]
        if quads.size[leaf] < quads.slots.shape[1]:
            return leaf
        if quads.used[N_NODES] + 4 > quads.child.size or quads.used[N_LEAVES] + 3 > quads.size.size:
            return -1
        if depth < DEPTH:
            split(quads, space, events, node, depth)
            continue
        new = quads.used[N_LEAVES]
        quads.used[N_LEAVES] += 1
        quads.behind[leaf] = new
        quads.behind[new] = -1
        quads.size[new] = 0
        quads.is_stale[new] = True
        return new


@kernel
def add_events(quads, space, events, slots, first, are_many):
    """Take event slots (i4[n]) from ``first`` on; return how many are taken in all.

    Fewer than n if nodes or leaves run out. With ``are_many`` leaves are left stale, to be put
    in order when all are there.
    """
    for i in range(first, slots.size):
        leaf = leaf_with_room(quads, space, events, events[slots[i]])
        if leaf < 0:
            return i
        number = quads.size[leaf]
        quads.slots[leaf, number] = slots[i]
        quads.size[leaf] += 1
        quads.is_stale[leaf] |= are_many
        if not quads.is_stale[leaf]:
            put_in_order(quads, events, leaf, number)
    return slots.size


@kernel
def sort_stale(quads, events):
    """Put all stale leaves in order. O(leaves + M E log E for each that is stale)."""
    values = np.empty(quads.slots.shape[1])
    for leaf in range(quads.used[N_LEAVES]):
        if quads.is_stale[leaf]:
            sort_leaf(quads, events, leaf, values)


@kernel
def number_in(quads, leaf, slot):
    """The number of an event in a leaf, or -1."""
    for number in range(quads.size[leaf]):
        if quads.slots[leaf, number] == slot:
            return number
    return -1


@kernel
def remove_event(quads, events, leaf, number):
    """Take an event out of a leaf; the last one gets its number. O(M E)."""
    last = quads.size[leaf] - 1
    for m in range(events.shape[1]):
        n_kept = 0
        for at in range(quads.n_ordered[leaf, m]):
            other = quads.order[leaf, m, at]
            if other != number:
                quads.order[leaf, m, n_kept] = number if other == last else other
                n_kept += 1
        quads.n_ordered[leaf, m] = n_kept
    quads.slots[leaf, number] = quads.slots[leaf, last]
    quads.size[leaf] = last


@kernel
def remove_events(quads, space, events, slots):
    """Take event slots (i4[n]), which are there, out of their leaves. O(n M E)."""
    for i in range(slots.size):
        node, _ = find_node(quads, space, events[slots[i]])
        leaf = quads.leaf[node]
        number = number_in(quads, leaf, slots[i])
        while number < 0:
            leaf = quads.behind[leaf]
            number = number_in(quads, leaf, slots[i])
        remove_event(quads, events, leaf, number)


@kernel
def count_range(quads, leaf, m, first, last, counts):
    """Count the events from one place to before another in a leaf's order; how many."""
    for at in range(first, last):
        counts[quads.order[leaf, m, at]] += 1
    return max(0, last - first)


@kernel
def find_in_leaf(quads, events, subscription, leaf, sure, counts, out, n_out):
    """Append the events of a leaf that meet all constraints to out[:n_out]; the new length.

    Counts, for each event, the constraints it meets; sure: i8[2], constraints that all meet.
    counts: u2[E], written. O(k log E + events that meet a constraint).
    """
    n_asked = 0
    for number in range(quads.size[leaf]):
        counts[number] = 0
    for k in range(subscription.start[0], subscription.end[0]):
        if k == sure[0] or k == sure[1]:
            continue
        m, n_asked = np.int64(subscription.attribute[k]), n_asked + 1
        first = first_place(quads, events, leaf, m, subscription.low[k], False)
        last = first_place(quads, events, leaf, m, subscription.high[k], True)
        if subscription.negated[k]:
            n_met = count_range(quads, leaf, m, 0, first, counts)
            n_met += count_range(quads, leaf, m, last, quads.n_ordered[leaf, m], counts)
        else:
            n_met = count_range(quads, leaf, m, first, last, counts)
        if n_met == 0:
            return n_out
    for number in range(quads.size[leaf]):
        if counts[number] == n_asked:
            out[n_out] = quads.slots[leaf, number]
            n_out += 1
    return n_out


@kernel
def write_window(space, subscription, window, asked):
    """Write the squares that a subscription's constraints on the plane span: window (i8[2, 2]).

    asked: i8[2], its constraint on each axis, -1 if it has none or excludes a value. Returns
    whether it asks for a value on all axes, so that no event without a place is accepted.
    """
    asks_all = True
    for axis in range(2):
        window[axis, 0], window[axis, 1], asked[axis] = 0, 2**DEPTH - 1, -1
        has_asked = space.attribute[axis] < 0
        for k in range(subscription.start[0], subscription.end[0]):
            if subscription.attribute[k] == space.attribute[axis]:
                has_asked = True
                if not subscription.negated[k]:
                    window[axis, 0] = square_of(space, axis, subscription.low[k])
                    window[axis, 1] = square_of(space, axis, subscription.high[k])
                    asked[axis] = k
        asks_all &= has_asked
    return asks_all


@kernel
def find_events(quads, space, events, subscription, out):
    """Write the event slots that slot 0 of a subscription accepts; return how many.

    Descends to the leaves that its window touches; a constraint on the plane need not be looked
    at in a leaf that lies strictly inside.
    """
    window, asked = np.empty((2, 2), np.int64), np.empty(2, np.int64)
    sure, counts = np.full(2, -1), np.empty(quads.slots.shape[1], np.uint16)
    stack = np.empty((4 * DEPTH, 4), np.int64)  # node, depth, column, row
    n_out, n_stack = 0, 1
    stack[0, 0] = stack[0, 1] = stack[0, 2] = stack[0, 3] = 0
    if not write_window(space, subscription, window, asked):
        leaf = np.int64(quads.leaf[NOWHERE])
        while leaf >= 0:
            n_out = find_in_leaf(quads, events, subscription, leaf, sure, counts, out, n_out)
            leaf = np.int64(quads.behind[leaf])
    while n_stack > 0:
        n_stack -= 1
        node, depth = stack[n_stack, 0], stack[n_stack, 1]
        touches = True
        for axis in range(2):
            first = stack[n_stack, 2 + axis] << (DEPTH - depth)
            last = first + (1 << (DEPTH - depth)) - 1
            touches &= first <= window[axis, 1] and window[axis, 0] <= last
            is_inside = window[axis, 0] < first and last < window[axis, 1]
            sure[axis] = asked[axis] if is_inside else -1
        if not touches:
            continue
        if quads.child[node] < 0:
            leaf = np.int64(quads.leaf[node])
            while leaf >= 0:
                n_out = find_in_leaf(quads, events, subscription, leaf, sure, counts, out, n_out)
                leaf = np.int64(quads.behind[leaf])
            continue
        column, row = stack[n_stack, 2], stack[n_stack, 3]
        for at in range(4):
            stack[n_stack, 0] = quads.child[node] + at
            stack[n_stack, 1] = depth + 1
            stack[n_stack, 2] = 2 * column + (at & 1)
            stack[n_stack, 3] = 2 * row + (at >> 1)
            n_stack += 1
    return n_out
