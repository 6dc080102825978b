"""Axes: what the values of a column mean to a sparse part, as two monotone integers.

An axis is a column that some slot constrains. The *code* of a value orders it among the axis's
edges: low <= x <= high implies code(low) <= code(x) <= code(high), and only equal codes need the
exact bounds, on an exact axis not even these. The *mass* of a value is the share
of all bounds below it, 0..65535, so that buckets and cells of equal mass suit skewed data too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel

N_EDGES = 255  # edges of an axis that is not exact: quantiles of its bounds
MAX_EXACT = 32_000  # an axis with at most so many different bounds is exact
N_SAMPLE = 8192  # constraints that tell the quantiles


class Axes(NamedTuple):
    """M axes; the edges of axis a are rows ``edge_start[a]`` to ``edge_start[a + 1]``."""

    edge_start: Array  # i8[M + 1]
    edge: Array  # f8[4E]: edge, ascending; 256 / half its distance to the next; mass below, above
    jump_start: Array  # i4[M + 1], first entry of an axis in jump
    jump_map: Array  # f8[3M]: half the first edge, cells a half unit, cells
    jump: Array  # i4[J]: number of edges in the cells of a uniform grid before this one
    is_exact: Array  # u1[M]: every bound is an edge
    shift: Array  # u1[M]: bits of a code that have no room in code_bits
    ties: Array  # u1[M + 2]: equal codes need the exact bounds; then 0 and 1, see sparse_records


def axis_bits(n_axes):
    """Bits of an axis, where M and M + 1 are axes too."""
    return (n_axes + 1).bit_length()


def code_bits(n_axes):
    """Bits of a code: an axis and two codes make 32 bits."""
    return (32 - axis_bits(n_axes)) // 2


@inlined
def jump_cell(jump_map, a, x):
    """The cell of x, not NaN, in the uniform grid over the edges of axis a."""
    # max(0.0, NaN) is 0.0: an infinite x on an axis of one edge, whose grid is all one cell.
    place = min(
        jump_map[3 * a + 2] - 1.0, max(0.0, (0.5 * x - jump_map[3 * a]) * jump_map[3 * a + 1])
    )
    return np.int32(place)


@inlined
def locate(edge, jump, cell, first, last, exact, x):
    """Code and mass of x, not NaN, on an axis whose edges are rows first to last.

    A binary search among the edges of the cell of x: i4, its entry in jump.
    """
    at, end = first + jump[cell], first + jump[cell + 1]
    while at < end:
        middle = (at + end) >> 1
        if edge[4 * middle] <= x:
            at = middle + 1
        else:
            end = middle
    code, mass = np.int64(at - first), np.int64(0)
    if exact:  # infinities are no edges, but no finite value may tie with them
        code = 1 + 2 * code + (x == np.inf) - (x == -np.inf)
    if at > first:
        row = 4 * (at - 1)
        below, above = np.int64(edge[row + 2]), np.int64(edge[row + 3])
        if exact:
            is_edge = edge[row] == x
            code -= is_edge
            mass = below if is_edge else above
        else:
            step = np.int64(0)
            if at < last:
                part = (0.5 * x - 0.5 * edge[row]) * edge[row + 1]
                step = np.int64(min(255.0, max(0.0, part)))
            code = code * 256 + step
            mass = below + ((above - below) * step >> 8)
    return code, mass


@kernel
def encode_bounds(axes, axis, low, high, code, mass):
    """Write code and mass: u2[K, 2] of the bounds low, high: f8[K] on axis: i4[K]. O(K)."""
    edge_start, edge, jump_start = axes.edge_start, axes.edge, axes.jump_start
    jump_map, jump, is_exact, shift = axes.jump_map, axes.jump, axes.is_exact, axes.shift
    for k in range(axis.size):
        a = axis[k]
        first, last = edge_start[a], edge_start[a + 1]
        for side in range(2):
            x = high[k] if side else low[k]
            cell = jump_start[a] + jump_cell(jump_map, a, x)
            c, m = locate(edge, jump, cell, first, last, is_exact[a], x)
            code[k, side], mass[k, side] = c >> shift[a], m


@kernel
def sample_bounds(axis, low, high, step, fill, values):
    """Write the bounds of every ``step[a]``-th constraint of axis a to values[fill[a]:]. O(K)."""
    seen = np.zeros(step.size, np.int64)
    for k in range(axis.size):
        a = axis[k]
        if seen[a] == 0:
            values[fill[a]], values[fill[a] + 1] = low[k], high[k]
            fill[a] += 2
            seen[a] = step[a]
        seen[a] -= 1


def build_axes(axis, low, high, count):
    """Axes of the constraints axis: i4[K], low, high: f8[K]; count: i8[M] of each axis."""
    n_axes = len(count)
    step = np.maximum(1, count // N_SAMPLE)
    start = np.concatenate([[0], np.cumsum(2 * (count // step + 1))])
    values = np.full(start[-1], np.nan)
    sample_bounds(axis, low, high, step, start[:-1].copy(), values)
    edges, jumps = [], []
    jump_map, is_exact = np.ones((n_axes, 3)), np.ones(n_axes, np.uint8)
    by_axis = None
    for a in range(n_axes):
        sample = values[start[a] : start[a + 1]]
        distinct, n = np.unique(sample[np.isfinite(sample)], return_counts=True)
        is_few = len(distinct) <= MAX_EXACT
        if step[a] > 1:
            is_few = 2 * len(distinct) <= len(sample)
            if is_few:
                if by_axis is None:
                    by_axis = np.argsort(axis.astype(np.uint16), kind="stable")
                    ends = np.cumsum(count)
                mine = by_axis[ends[a] - count[a] : ends[a]]
                every = np.concatenate([low[mine], high[mine]])
                exact, n_exact = np.unique(every[np.isfinite(every)], return_counts=True)
                is_few = len(exact) <= MAX_EXACT
                if is_few:
                    distinct, n = exact, n_exact
        if not is_few:
            distinct, n = _quantiles(distinct, n)
        is_exact[a] = is_few
        edges.append(_edge_rows(distinct, n))
        jumps.append(_jump_table(distinct, jump_map[a]))
    edge_start, jump_start = np.zeros(n_axes + 1, np.int64), np.zeros(n_axes + 1, np.int32)
    np.cumsum([len(rows) for rows in edges], out=edge_start[1:])
    np.cumsum([len(table) for table in jumps], out=jump_start[1:])
    edge = np.concatenate([*edges, np.zeros((0, 4))]).reshape(-1)
    jump = np.concatenate([*jumps, np.zeros(0, np.int32)])
    shift, ties = _shorten_codes(np.diff(edge_start), is_exact)
    return Axes(edge_start, edge, jump_start, jump_map.reshape(-1), jump, is_exact, shift, ties)


def code_lengths(n_edges, is_exact):
    """How many bits the greatest code of each axis has."""
    return np.frexp(np.where(is_exact, 2 * n_edges + 2, 256 * n_edges + 255))[1]


def _shorten_codes(n_edges, is_exact):
    """Axes.shift and Axes.ties."""
    n_bits = code_lengths(n_edges, is_exact)
    shift = np.maximum(0, n_bits - code_bits(len(n_edges))).astype(np.uint8)
    ties = np.append((is_exact == 0) | (shift > 0), [0, 1]).astype(np.uint8)
    return shift, ties


def _quantiles(distinct, n):
    """At most N_EDGES of the values, which occur n times, and the number up to the next."""
    end = np.cumsum(n)
    wanted = np.linspace(0, end[-1] - 1, N_EDGES).astype(np.int64)
    chosen = np.unique(np.searchsorted(end, wanted, side="right"))
    return distinct[chosen], np.diff(np.append(end[chosen] - n[chosen], end[-1]))


def _edge_rows(distinct, n):
    """The rows of Axes.edge for one axis."""
    rows = np.zeros((len(distinct), 4))
    rows[:, 0] = distinct
    total = np.cumsum(n)
    rows[:, 3] = total * 65535 // max(1, n.sum())
    rows[1:, 2] = rows[:-1, 3]
    with np.errstate(divide="ignore", over="ignore"):
        slope = 256.0 / np.diff(0.5 * distinct)
    rows[:-1, 1] = np.where(np.isfinite(slope), slope, 0.0)
    return rows


def _jump_table(distinct, grid):
    """The grid over the edges of one axis: writes its row of Axes.jump_map, returns its jump."""
    if not len(distinct):
        return np.zeros(2, np.int32)
    cells = 1 << len(distinct).bit_length()
    with np.errstate(divide="ignore", over="ignore"):
        scale = cells / (0.5 * distinct[-1] - 0.5 * distinct[0])
    grid[:] = 0.5 * distinct[0], scale if np.isfinite(scale) else 0.0, cells
    place = np.clip((0.5 * distinct - grid[0]) * grid[1], 0, cells - 1).astype(np.int64)
    return np.searchsorted(place, np.arange(cells + 1)).astype(np.int32)
