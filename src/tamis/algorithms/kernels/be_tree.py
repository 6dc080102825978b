"""BE-Tree: a tree that parts subscriptions by attributes, and each part by halves of the domain.

A *node* (the paper's c-node with its bucket of a c-directory) has a range of cells of one
attribute, a list of subscriptions (l-node), perhaps two halves, and *parts* (p-nodes), each for
one more attribute. A subscription is in exactly one list: in a node whose range encloses its
constraint on every attribute on the way from the root. Lists are chained through the slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.cells import cell_of
from tamis.kernels.compiled import Array, kernel

N_CELLS = 2**20  # a node of one cell cannot be halved
N_NODES, N_PARTS, N_WAITING, FREE_NODE, FREE_PART = 0, 1, 2, 3, 4  # places in ``state``


class Tree(NamedTuple):
    """Nodes and parts by number; -1 stands for none. Node 0 is the root."""

    first: Array  # i4[N], first cell of the node's range
    last: Array  # i4[N], last cell
    halves: Array  # i4[N, 2], the nodes of the lower and the upper half
    part_of: Array  # i4[N], the part the node belongs to; -1 for the root
    parts: Array  # i4[N], the first part below the node
    head: Array  # i4[N], the first slot of the list
    size: Array  # i4[N], length of the list
    capacity: Array  # i4[N], more than so many overflow
    waiting: Array  # i4[N], nodes to be looked at; free nodes are chained through ``head``
    attribute: Array  # i4[Q], of a part
    owner: Array  # i4[Q], the node above a part
    top: Array  # i4[Q], the node of a part that has the whole domain
    sibling: Array  # i4[Q], the next part of the same owner, or the next free part
    n_below: Array  # i4[Q], subscriptions in a part
    score: Array  # f8[Q], how many of them an event is expected to be spared
    after: Array  # i4[P], the next slot of the same list
    before: Array  # i4[P], the slot before it; -1 for the first
    node_of: Array  # i4[P]
    state: Array  # i8[5]


@kernel
def constraint_on(stored, slot, m):
    """The constraint of a slot on attribute m, or -1."""
    for k in range(stored.start[slot], stored.end[slot]):
        if stored.attribute[k] == m:
            return k
    return -1


@kernel
def cells_of(stored, k, domains):
    """First and last cell of constraint k; all of them if it excludes a value."""
    if stored.negated[k]:
        return 0, N_CELLS - 1
    m = np.int64(stored.attribute[k])
    low = cell_of(domains, m, stored.low[k], N_CELLS)
    return low, cell_of(domains, m, stored.high[k], N_CELLS)


@kernel
def gain_of(stored, k, domains):
    """The share of values that constraint k does not accept."""
    first, last = cells_of(stored, k, domains)
    return 1.0 - (last - first + 1) / N_CELLS


@kernel
def link(tree, node, slot):
    """Put a slot at the head of a node's list."""
    tree.after[slot] = tree.head[node]
    tree.before[slot] = -1
    if tree.head[node] >= 0:
        tree.before[tree.head[node]] = slot
    tree.head[node] = slot
    tree.node_of[slot] = node
    tree.size[node] += 1


@kernel
def unlink(tree, slot):
    """Take a slot out of its list."""
    node = tree.node_of[slot]
    if tree.before[slot] >= 0:
        tree.after[tree.before[slot]] = tree.after[slot]
    else:
        tree.head[node] = tree.after[slot]
    if tree.after[slot] >= 0:
        tree.before[tree.after[slot]] = tree.before[slot]
    tree.size[node] -= 1
    tree.node_of[slot] = -1


@kernel
def new_node(tree, part, first, last, capacity):
    """A node without halves, parts and slots; requires that there is room."""
    state = tree.state
    node = state[FREE_NODE]
    if node >= 0:
        state[FREE_NODE] = tree.head[node]
    else:
        node = state[N_NODES]
        state[N_NODES] += 1
    tree.part_of[node], tree.first[node], tree.last[node] = part, first, last
    tree.halves[node, 0] = tree.halves[node, 1] = tree.parts[node] = tree.head[node] = -1
    tree.size[node], tree.capacity[node] = 0, capacity
    return node


@kernel
def new_part(tree, owner, m, capacity):
    """A part of a node for attribute m, with a node for the whole domain; requires room."""
    state = tree.state
    part = state[FREE_PART]
    if part >= 0:
        state[FREE_PART] = tree.sibling[part]
    else:
        part = state[N_PARTS]
        state[N_PARTS] += 1
    tree.attribute[part], tree.owner[part] = m, owner
    tree.sibling[part], tree.parts[owner] = tree.parts[owner], part
    tree.n_below[part], tree.score[part] = 0, 0.0
    tree.top[part] = new_node(tree, part, 0, N_CELLS - 1, capacity)
    return part


@kernel
def enclosing_node(tree, node, first, last):
    """The smallest node from this one down through halves that encloses a range of cells."""
    while True:
        middle = (tree.first[node] + tree.last[node]) // 2
        half = 0 if last <= middle else 1
        child = tree.halves[node, half]
        if child < 0 or (half == 1 and first <= middle):
            return node
        node = child


@kernel
def insert(tree, stored, domains, slot):
    """Put a slot where it belongs, and its node among those to be looked at if it overflows.

    At each node the part with the highest score is taken, of those whose attribute the
    subscription constrains. O(depth x parts).
    """
    node = 0
    while True:
        best, best_k = -1, -1
        part = tree.parts[node]
        while part >= 0:
            if best < 0 or tree.score[part] > tree.score[best]:
                k = constraint_on(stored, slot, tree.attribute[part])
                if k >= 0:
                    best, best_k = part, k
            part = tree.sibling[part]
        if best < 0:
            break
        tree.n_below[best] += 1
        tree.score[best] += gain_of(stored, best_k, domains)
        first, last = cells_of(stored, best_k, domains)
        node = enclosing_node(tree, tree.top[best], first, last)
    link(tree, node, slot)
    if tree.size[node] > tree.capacity[node]:
        await_look(tree, node)


@kernel
def await_look(tree, node):
    """Put a node among those to be looked at."""
    tree.waiting[tree.state[N_WAITING]] = node
    tree.state[N_WAITING] += 1


@kernel
def split_in_halves(tree, stored, domains, node, max_size):
    """Space clustering: move what lies in one half of the node's range to that half.

    Halves are made when the first subscription needs them.
    """
    if tree.part_of[node] < 0 or tree.first[node] == tree.last[node]:
        return
    m = tree.attribute[tree.part_of[node]]
    middle = (tree.first[node] + tree.last[node]) // 2
    slot = tree.head[node]
    while slot >= 0:
        following = tree.after[slot]
        first, last = cells_of(stored, constraint_on(stored, slot, m), domains)
        half = 0 if last <= middle else (1 if first > middle else -1)
        if half >= 0:
            if tree.halves[node, half] < 0:
                low = tree.first[node] if half == 0 else middle + 1
                high = middle if half == 0 else tree.last[node]
                tree.halves[node, half] = new_node(tree, tree.part_of[node], low, high, max_size)
            unlink(tree, slot)
            link(tree, tree.halves[node, half], slot)
        slot = following
    for half in range(2):
        if tree.halves[node, half] >= 0:
            await_look(tree, tree.halves[node, half])


@kernel
def best_attribute(tree, stored, domains, node, scores, is_used):
    """The attribute not used on the way to a node that promises most for its list, or -1.

    scores: f8[M], is_used: b1[M], scratch. What is promised: subscriptions spared by an event.
    """
    scores[:] = -1.0
    is_used[:] = False
    above = node
    while tree.part_of[above] >= 0:
        is_used[tree.attribute[tree.part_of[above]]] = True
        above = tree.owner[tree.part_of[above]]
    slot = tree.head[node]
    while slot >= 0:
        for k in range(stored.start[slot], stored.end[slot]):
            m = np.int64(stored.attribute[k])
            if not is_used[m]:
                scores[m] = max(scores[m], 0.0) + gain_of(stored, k, domains)
        slot = tree.after[slot]
    best = np.argmax(scores)
    return best if scores[best] >= 0 else -1


@kernel
def split_by_attributes(tree, stored, domains, node, max_size, scores, is_used):
    """Space partitioning: give the best attributes parts of their own until the list fits.

    If no attribute is left, the list may grow to twice its size.
    """
    while tree.size[node] > tree.capacity[node]:
        m = best_attribute(tree, stored, domains, node, scores, is_used)
        if m < 0:
            tree.capacity[node] = 2 * tree.size[node]
            return
        part = new_part(tree, node, m, max_size)
        slot = tree.head[node]
        while slot >= 0:
            following = tree.after[slot]
            k = constraint_on(stored, slot, m)
            if k >= 0:
                unlink(tree, slot)
                link(tree, tree.top[part], slot)
                tree.n_below[part] += 1
                tree.score[part] += gain_of(stored, k, domains)
            slot = following
        await_look(tree, tree.top[part])


@kernel
def insert_many(tree, stored, domains, slots, n_done, max_size):
    """Insert slots from n_done on, as long as there is room for the nodes that a split makes.

    slots: i4[n]. Returns how many are inserted; if less than n, or if nodes are still waiting,
    the arrays must grow and the call be repeated.
    """
    n_attributes = domains.low.size
    scores, is_used = np.empty(n_attributes), np.empty(n_attributes, np.bool_)
    state = tree.state
    while True:
        while state[N_WAITING] > 0:
            is_full = state[N_NODES] + n_attributes + 2 > tree.first.size
            if is_full or state[N_PARTS] + n_attributes > tree.owner.size:
                return n_done
            state[N_WAITING] -= 1
            node = tree.waiting[state[N_WAITING]]
            if tree.size[node] > tree.capacity[node]:
                split_in_halves(tree, stored, domains, node, max_size)
                split_by_attributes(tree, stored, domains, node, max_size, scores, is_used)
        if n_done == slots.size:
            return n_done
        insert(tree, stored, domains, slots[n_done])
        n_done += 1


@kernel
def dissolve(tree, part):
    """Move all of a part into the list of its owner, and free its nodes and parts."""
    state, owner = tree.state, tree.owner[part]
    if tree.parts[owner] == part:
        tree.parts[owner] = tree.sibling[part]
    else:
        other = tree.parts[owner]
        while tree.sibling[other] != part:
            other = tree.sibling[other]
        tree.sibling[other] = tree.sibling[part]
    await_look(tree, tree.top[part])
    tree.sibling[part], state[FREE_PART] = state[FREE_PART], part
    while state[N_WAITING] > 0:
        state[N_WAITING] -= 1
        node = tree.waiting[state[N_WAITING]]
        for half in range(2):
            if tree.halves[node, half] >= 0:
                await_look(tree, tree.halves[node, half])
        below = tree.parts[node]
        while below >= 0:
            following = tree.sibling[below]
            await_look(tree, tree.top[below])
            tree.sibling[below], state[FREE_PART] = state[FREE_PART], below
            below = following
        slot = tree.head[node]
        while slot >= 0:
            following = tree.after[slot]
            link(tree, owner, slot)
            slot = following
        tree.head[node], state[FREE_NODE] = state[FREE_NODE], node


@kernel
def remove_many(tree, stored, domains, slots, max_size):
    """Take slots (i4[n]) out; parts that became small go back into the list above them."""
    for i in range(slots.size):
        slot = slots[i]
        node = tree.node_of[slot]
        unlink(tree, slot)
        while tree.part_of[node] >= 0:
            part = tree.part_of[node]
            tree.n_below[part] -= 1
            k = constraint_on(stored, slot, tree.attribute[part])
            tree.score[part] -= gain_of(stored, k, domains)
            node = tree.owner[part]
            if tree.size[node] + tree.n_below[part] <= max_size // 2:
                dissolve(tree, part)
