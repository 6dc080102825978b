"""Polygons: whether a point lies inside, by a grid of cells that know most of the answer.

A polygon is a list of numbers, from ``first`` on:

    HEADER      how many chains, cells a side (0: there is no grid), the least x and y, cells a unit
                of x and of y
    chains      some edges of a ring one after the other: the least and greatest x, the least and
                greatest y, the first and the last corner
    cells       row by row: UNKNOWN, or the first edge that touches the cell, how many edges from it
                to the last that does, and whether the cell's mark is inside, packed into a number
    corners     x and y of those of every ring, the first again as the last; NaN after each ring

Edge e leads from corner e to the next; those at NaN are none.

The *mark* of a cell is a point within it. A point of a cell is on the mark's side of the border if
the line between them crosses edges of the cell an even number of times; edges that do not touch
the cell cannot cross that line. Even-odd over the edges of all rings serves holes and several parts
alike. Nothing here decides what rounding could turn: then it is UNDECIDED.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.memory import prefetch
from tamis.kernels.verdicts import ACCEPTED, REJECTED, UNDECIDED

HEADER = 6
CHAIN = 6  # numbers that are said of a chain
UNKNOWN = -1.0  # a cell that leaves it to the chains
MOST_EDGES = 63  # of a cell that does not

# Off the middle, where borders of regular shapes are.
_MARK_X, _MARK_Y = 0.5371, 0.4629
# Beyond this part of the terms it is made of, the sign of an orientation is certain.
_ORIENTATION_ERROR = 1e-14
# By this part of a cell an edge may be nearer than computed: the point and its cell are rounded.
_NEAR = 1e-6


@inlined
def _side_of(x1, y1, x2, y2, x, y):
    """The side of the line from 1 to 2 on which a point lies: -1 or 1, 0 if that is not certain."""
    a, b = (x2 - x1) * (y - y1), (x - x1) * (y2 - y1)
    is_certain = abs(a - b) > _ORIENTATION_ERROR * (abs(a) + abs(b))  # never with NaN
    return np.int64(is_certain) * (1 if a > b else -1)


@inlined
def _place_of(lists, first, x, y):
    """Where a point lies in the grid: cells from its left, and from its bottom."""
    along = (x - lists[first + 2]) * lists[first + 4]
    across = (y - lists[first + 3]) * lists[first + 5]
    return along, across


@inlined
def _mark_of(lists, first, column, row):
    """The mark of a cell."""
    x = lists[first + 2] + (column + _MARK_X) / lists[first + 4]
    y = lists[first + 3] + (row + _MARK_Y) / lists[first + 5]
    return x, y


@inlined
def _cells(lists, first):
    """Where the cells begin."""
    return first + HEADER + CHAIN * np.int64(lists[first])


@inlined
def _cell_of(x, y, lists, first):
    """The number of the cell that a point is in; -1 if none."""
    n_cells = np.int64(lists[first + 1])
    along, across = _place_of(lists, first, x, y)
    is_there = 0 <= along < n_cells and 0 <= across < n_cells
    return np.int64(across) * n_cells + np.int64(along) if is_there else np.int64(-1)


@kernel
def is_in_polygon(x, y, lists, first):
    """Whether a point is inside; UNDECIDED on a border. O(edges of a cell), seldom O(edges)."""
    said = UNDECIDED
    if lists[first + 1] > 0:
        said = _is_in_cell(x, y, lists, first)
    return _is_in_chains(x, y, lists, first) if said == UNDECIDED else said


@kernel
def _is_in_cell(x, y, lists, first):
    """``is_in_polygon`` by the cell of the point; UNDECIDED where that cannot tell."""
    cell = _cell_of(x, y, lists, first)
    said = np.int64(lists[_cells(lists, first) + cell]) if cell >= 0 else -1
    if said < 0:
        return UNDECIDED
    is_inside, n_edges = said & 1, (said >> 1) & MOST_EDGES
    if n_edges:
        n_cells = np.int64(lists[first + 1])
        mark_x, mark_y = _mark_of(lists, first, cell % n_cells, cell // n_cells)
        begin = _cells(lists, first) + n_cells * n_cells + 2 * (said >> 7)
        crossed = _crossings(x, y, mark_x, mark_y, lists, begin, begin + 2 * n_edges)
        if crossed < 0:
            return UNDECIDED
        is_inside ^= crossed & 1
    return ACCEPTED if is_inside else REJECTED


@kernel
def _crossings(x, y, mark_x, mark_y, lists, begin, end):
    """How many edges between corners the line to the mark crosses; -1 if that is not certain.

    Between two rings there is an edge that is none.
    """
    n_crossed, is_certain = 0, True
    for i in range(begin, end, 2):
        x1, y1, x2, y2 = lists[i], lists[i + 1], lists[i + 2], lists[i + 3]
        ends = _side_of(x1, y1, x2, y2, x, y) * _side_of(x1, y1, x2, y2, mark_x, mark_y)
        corners = _side_of(x, y, mark_x, mark_y, x1, y1) * _side_of(x, y, mark_x, mark_y, x2, y2)
        # One of the two lies wholly on one side of the other, or a corner is NaN.
        is_passed = ends > 0 or corners > 0 or np.isnan(x1 + x2)
        is_certain &= is_passed or ends * corners != 0
        n_crossed += not is_passed
    return n_crossed if is_certain else -1


@kernel
def ask_for_polygon(x, y, lists, first, step):
    """Ask for what ``is_in_polygon`` will look at: the header, then the cell, then its edges.

    Each step looks at what the one before has asked for. O(edges of a cell).
    """
    if step == 0:
        prefetch(lists, np.uint64(first))
        prefetch(lists, np.uint64(first + HEADER - 1))
        return
    cell = _cell_of(x, y, lists, first)
    if cell >= 0:
        at = _cells(lists, first) + cell
        if step == 1:
            prefetch(lists, np.uint64(at))
        else:
            n_cells, said = np.int64(lists[first + 1]), np.int64(lists[at])
            begin = _cells(lists, first) + n_cells * n_cells + 2 * (said >> 7)
            for i in range(0, 2 * ((said >> 1) & MOST_EDGES) if said > 0 else 0, 8):
                prefetch(lists, np.uint64(begin + i))


@kernel
def _is_in_chains(x, y, lists, first):
    """``is_in_polygon`` by the crossings of a ray to the right.

    Where the ray meets all of a chain or nothing, its ends tell how often it is crossed.
    O(chains + edges of those near the point).
    """
    is_inside = False
    n_cells = np.int64(lists[first + 1])
    last = _cells(lists, first)
    corners = last + n_cells * n_cells
    for chain in range(first + HEADER, last, CHAIN):
        if lists[chain + 2] <= y <= lists[chain + 3] and x <= lists[chain + 1]:
            begin = corners + 2 * np.int64(lists[chain + 4])
            end = corners + 2 * np.int64(lists[chain + 5])
            if x < lists[chain]:
                is_inside ^= (lists[begin + 1] <= y) != (lists[end + 1] <= y)
            else:
                said = _cross(x, y, lists, begin, end)
                if said == UNDECIDED:
                    return UNDECIDED
                is_inside ^= said == ACCEPTED
    return ACCEPTED if is_inside else REJECTED


@kernel
def _cross(x, y, lists, first, last):
    """Whether a ray crosses the edges between corners an odd number of times. O(edges).

    UNDECIDED if the point may lie on one of them.
    """
    is_inside = False
    for i in range(first, last, 2):
        x1, y1, x2, y2 = lists[i], lists[i + 1], lists[i + 2], lists[i + 3]
        if y < min(y1, y2) or y > max(y1, y2) or x > max(x1, x2):
            continue
        if x >= min(x1, x2):
            side = _side_of(x1, y1, x2, y2, x, y)
            if side == 0:
                return UNDECIDED
            if (y1 <= y) != (y2 <= y) and ((side > 0) == (y2 > y1)):
                is_inside = not is_inside
        elif (y1 <= y) != (y2 <= y):
            is_inside = not is_inside
    return ACCEPTED if is_inside else REJECTED


@kernel
def fill_cells(lists, first):
    """Write the cells of a polygon that ends with ``lists``; all are UNKNOWN yet.

    O(edges x cells they touch + cells x chains).
    """
    n_cells = np.int64(lists[first + 1])
    cells = _cells(lists, first)
    corners = cells + n_cells * n_cells
    least = np.full(n_cells * n_cells, np.int64(1) << 40)
    most = np.full(n_cells * n_cells, np.int64(-1))
    for edge in range((len(lists) - corners) // 2 - 1):
        if not np.isnan(lists[corners + 2 * edge] + lists[corners + 2 * edge + 2]):
            _touch(lists, first, corners + 2 * edge, edge, least, most)
    for cell in range(n_cells * n_cells):
        n_edges = max(0, most[cell] + 1 - least[cell])
        column, row = cell % n_cells, cell // n_cells
        x, y = _mark_of(lists, first, column, row)
        along, across = _place_of(lists, first, x, y)
        if not (column < along < column + 1 and row < across < row + 1):
            continue  # numbers are too coarse for such cells
        said = _is_in_chains(x, y, lists, first)
        if said != UNDECIDED and n_edges <= MOST_EDGES:
            begin = least[cell] if n_edges else 0
            lists[cells + cell] = 128 * begin + 2 * n_edges + (said == ACCEPTED)


@inlined
def _touch(lists, first, at, number, least, most):
    """Note the edge at lists[at] in the cells that it may touch."""
    n_cells = np.int64(lists[first + 1])
    x1, y1 = _place_of(lists, first, lists[at], lists[at + 1])
    x2, y2 = _place_of(lists, first, lists[at + 2], lists[at + 3])
    bottom, top = max(0, np.int64(min(y1, y2) - _NEAR)), np.int64(max(y1, y2) + _NEAR)
    for row in range(bottom, min(n_cells - 1, top) + 1):
        left, right = min(x1, x2), max(x1, x2)
        if abs(y2 - y1) > 0.5:  # otherwise it is hardly in two rows
            slope = (x2 - x1) / (y2 - y1)
            a, b = x1 + slope * (row - _NEAR - y1), x1 + slope * (row + 1 + _NEAR - y1)
            left, right = max(left, min(a, b)), min(right, max(a, b))
        start, stop = max(0, np.int64(left - _NEAR)), np.int64(right + _NEAR)
        for column in range(start, min(n_cells - 1, stop) + 1):
            cell = row * n_cells + column
            least[cell], most[cell] = min(least[cell], number), max(most[cell], number)
