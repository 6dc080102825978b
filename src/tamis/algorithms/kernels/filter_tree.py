"""The filter tree: paths of constraints merged where they begin alike, and the descent.

A node tests one constraint; its children, which stand side by side, are in groups by attribute
and kind. A path that only one subscription goes on is not drawn out in nodes: the rest of it
stays with the subscription.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel

POINT, RANGE, EXCLUDED = 0, 1, 2  # kinds of constraints, in the order of siblings


class Paths(NamedTuple):
    """The constraints of E subscriptions, those of path e in ``start[e]`` to ``start[e + 1]``."""

    start: Array  # i8[E + 1]
    n_merged: Array  # i4[E], the constraints that take part in the tree: the first ones
    rank: Array  # i4[K], the place of the attribute in the order of names, ascending in a path
    kind: Array  # u1[K]
    attribute: Array  # i4[K]
    low: Array  # f8[K]
    high: Array  # f8[K]


class Nodes(NamedTuple):
    """V nodes, a parent before its children; node 0 is the root and tests nothing."""

    low: Array  # f8[V]
    high: Array  # f8[V]
    first: Array  # i4[V], the entries that hang at a node: first to last - 1
    last: Array  # i4[V]
    first_group: Array  # i4[V], the groups of its children: first to last - 1
    last_group: Array  # i4[V]


class Groups(NamedTuple):
    """Siblings of one attribute and kind: nodes first to last - 1, by ascending (low, high)."""

    attribute: Array  # i4[G]
    kind: Array  # u1[G]
    first: Array  # i4[G]
    last: Array  # i4[G]


class Tree(NamedTuple):
    """E subscriptions as a tree, the entries in the order of their paths. Nothing in it changes."""

    slot: Array  # i4[E]
    paths: Paths
    rest: Array  # i8[E], where the part of a path begins that its node has not tested
    nodes: Nodes
    groups: Groups


@kernel
def fill_paths(stored, slots, rank_of, n_names, paths):
    """Write the constraints of slots (i4[E]) as paths in the order of rank_of (i4[M]).

    Constraints of rank n_names or more do not take part in the tree. paths: written, its
    ``start`` given. O(E k^2) for k constraints each.
    """
    for e in range(slots.size):
        begin, end = paths.start[e], paths.start[e]
        n_merged = 0
        for k in range(stored.start[slots[e]], stored.end[slots[e]]):
            m = np.int64(stored.attribute[k])
            rank = rank_of[m]
            at = end
            while at > begin and paths.rank[at - 1] > rank:
                _move(paths, at - 1, at)
                at -= 1
            paths.rank[at], paths.attribute[at] = rank, m
            paths.low[at], paths.high[at] = stored.low[k], stored.high[k]
            if stored.negated[k]:
                paths.kind[at] = EXCLUDED
            else:
                paths.kind[at] = POINT if stored.low[k] == stored.high[k] else RANGE
            n_merged += rank < n_names
            end += 1
        paths.n_merged[e] = n_merged


@inlined
def _move(paths, source, target):
    paths.rank[target] = paths.rank[source]
    paths.kind[target] = paths.kind[source]
    paths.attribute[target] = paths.attribute[source]
    paths.low[target] = paths.low[source]
    paths.high[target] = paths.high[source]


@kernel
def compare(paths, a, b):
    """How many constraints two paths begin alike with, and whether path a comes first (or equal).

    The shorter one comes first, then order is by rank, kind, low and high.
    """
    i, j = paths.start[a], paths.start[b]
    n_alike = 0
    shorter = min(paths.n_merged[a], paths.n_merged[b])
    while n_alike < shorter:
        if paths.rank[i] != paths.rank[j]:
            return n_alike, paths.rank[i] < paths.rank[j]
        if paths.kind[i] != paths.kind[j]:
            return n_alike, paths.kind[i] < paths.kind[j]
        if paths.low[i] != paths.low[j]:
            return n_alike, paths.low[i] < paths.low[j]
        if paths.high[i] != paths.high[j]:
            return n_alike, paths.high[i] < paths.high[j]
        i, j, n_alike = i + 1, j + 1, n_alike + 1
    return n_alike, paths.n_merged[a] <= paths.n_merged[b]


@kernel
def sort_paths(paths, order, other):
    """Sort the numbers 0..E - 1 by their paths into order (i4[E]); other: i4[E], scratch.

    Merging, stable. O(E log E) comparisons.
    """
    n = order.size
    for e in range(n):
        order[e] = e
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for at in range(begin, end):
                takes_left = i < middle
                if takes_left and j < end:
                    takes_left = compare(paths, order[i], order[j])[1]
                if takes_left:
                    other[at] = order[i]
                    i += 1
                else:
                    other[at] = order[j]
                    j += 1
        order[:] = other
        width *= 2


@kernel
def count_nodes(paths, n_alike):
    """Write how many constraints each path shares with the one before; return a bound of nodes.

    paths: sorted; n_alike: i4[E + 1], written, with 0 at both ends. O(E k).
    """
    n_entries = paths.n_merged.size
    n_alike[0] = n_alike[n_entries] = 0
    for e in range(1, n_entries):
        n_alike[e] = compare(paths, e - 1, e)[0]
    n_nodes = 1
    for e in range(n_entries):
        drawn = max(n_alike[e], n_alike[e + 1]) + 1
        n_nodes += max(0, min(paths.n_merged[e], drawn) - n_alike[e])
    return n_nodes


@kernel
def plant(paths, n_alike, nodes, groups, rest):
    """Make the nodes and groups of sorted paths; return how many of each.

    n_alike: as ``count_nodes`` wrote it; rest: i8[E], written. Until a node is divided, its
    ``first`` and ``last`` are all entries below it. O(constraints).
    """
    depth = np.zeros(nodes.low.size, np.int32)
    n_nodes, n_groups = 1, 0
    nodes.first[0], nodes.last[0] = 0, rest.size
    node = 0
    while node < n_nodes:
        first, last, d = nodes.first[node], nodes.last[node], depth[node]
        at = first
        while at < last and (last - first == 1 or paths.n_merged[at] == d):
            rest[at] = paths.start[at] + d
            at += 1
        nodes.last[node] = at
        nodes.first_group[node] = n_groups
        while at < last:
            k = paths.start[at] + d
            begin = at
            at += 1
            while at < last and n_alike[at] > d:
                at += 1
            is_new = n_groups == nodes.first_group[node]
            if not is_new:
                g = n_groups - 1
                is_new = groups.attribute[g] != paths.attribute[k]
                is_new = is_new or groups.kind[g] != paths.kind[k]
            if is_new:
                groups.attribute[n_groups] = paths.attribute[k]
                groups.kind[n_groups] = paths.kind[k]
                groups.first[n_groups] = n_nodes
                n_groups += 1
            nodes.low[n_nodes], nodes.high[n_nodes] = paths.low[k], paths.high[k]
            nodes.first[n_nodes], nodes.last[n_nodes] = begin, at
            depth[n_nodes] = d + 1
            n_nodes += 1
            groups.last[n_groups - 1] = n_nodes
        nodes.last_group[node] = n_groups
        node += 1
    return n_nodes, n_groups


@inlined
def count_below(values, first, last, value):
    """The first of first..last whose value in ascending values is above the given one."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] <= value:
            first = middle + 1
        else:
            last = middle
    return first


@inlined
def meets_rest(paths, k, end, event):
    """Whether an event meets constraints k..end - 1."""
    holds = True
    while holds and k < end:
        value = event[paths.attribute[k]]
        if paths.kind[k] == EXCLUDED:
            holds = value < paths.low[k] or value > paths.low[k]
        else:
            holds = paths.low[k] <= value and value <= paths.high[k]
        k += 1
    return holds


@kernel
def collect(tree, gone, node, event, out, n_out):
    """Append the slots that hang at a node, are not gone and accept the rest; the new length.

    gone: u1[E].
    """
    for e in range(tree.nodes.first[node], tree.nodes.last[node]):
        if not gone[e] and meets_rest(tree.paths, tree.rest[e], tree.paths.start[e + 1], event):
            out[n_out] = tree.slot[e]
            n_out += 1
    return n_out


@kernel
def descend(tree, gone, event, out, n_out):
    """Append the slots of a tree that accept an event (f8[M], NaN = missing); the new length.

    Algorithm 1: at each node take its filters, then for every term go down to the children of
    that name whose value covers it. Going on without a term is to look at the next group.
    Points are searched, of ranges only those that begin low enough are looked at.
    O(nodes visited + siblings looked at + rests compared).
    """
    nodes, groups = tree.nodes, tree.groups
    group = np.empty(event.size + 1, np.int32)
    child = np.empty(event.size + 1, np.int32)
    last_child = np.empty(event.size + 1, np.int32)
    n_out = collect(tree, gone, 0, event, out, n_out)
    depth = 0
    group[0], child[0], last_child[0] = nodes.first_group[0], 0, 0
    node_of = np.zeros(event.size + 1, np.int32)
    while depth >= 0:
        if child[depth] < last_child[depth]:
            node = child[depth]
            child[depth] += 1
            g = group[depth] - 1
            value = event[groups.attribute[g]]
            if groups.kind[g] == EXCLUDED:
                if value == nodes.low[node]:
                    continue
            elif nodes.high[node] < value:
                continue
            n_out = collect(tree, gone, node, event, out, n_out)
            if nodes.first_group[node] < nodes.last_group[node]:
                depth += 1
                node_of[depth] = node
                group[depth], child[depth], last_child[depth] = nodes.first_group[node], 0, 0
        elif group[depth] < nodes.last_group[node_of[depth]]:
            g = group[depth]
            group[depth] += 1
            value = event[groups.attribute[g]]
            if np.isnan(value):
                continue
            child[depth], last_child[depth] = groups.first[g], groups.last[g]
            if groups.kind[g] != EXCLUDED:
                last_child[depth] = count_below(nodes.low, groups.first[g], groups.last[g], value)
            if groups.kind[g] == POINT:  # each value once: only the last of these can be it
                child[depth] = max(groups.first[g], last_child[depth] - 1)
        else:
            depth -= 1
    return n_out
