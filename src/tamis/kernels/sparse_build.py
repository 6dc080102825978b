"""Sparse boxes, built: an immutable, exact index of slots that constrain a few of many columns.

Columns become axes (``sparse_axes``), slots go into groups that an event finds in a directory
(``sparse_groups``); large groups are cut into words along lines (``sparse_lines``,
``sparse_words``, ``sparse_reach``). Slots that no selective constraint leads to are in strips
(``sparse_strips``, ``sparse_strip_tests``). What all these let through is decided by
``sparse_records``.
How an event is matched is told in ``sparse_match``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array
from tamis.kernels.scan import Constraints
from tamis.kernels.sparse_axes import build_axes, encode_bounds
from tamis.kernels.sparse_directory import copy_entries, new_directory, table_size
from tamis.kernels.sparse_groups import (
    Bounds,
    Groups,
    choose_leaders,
    count_kinds,
    count_points,
    enter_groups,
    order_constraints,
)
from tamis.kernels.sparse_lines import NO_LINES, choose_lines, write_order
from tamis.kernels.sparse_reach import choose_second_axes, find_seconds, write_reach
from tamis.kernels.sparse_records import build_records, record_layout, test_layout
from tamis.kernels.sparse_strip_tests import build_strip_tests
from tamis.kernels.sparse_strips import N_COLOURS, Crowd, build_plots, choose_pairs
from tamis.kernels.sparse_words import build_lines, build_words

MAX_COLUMNS = 65_000  # columns that the slots of a part may use
N_LEADER_ROUNDS = 3
N_LINE_ROUNDS = 3  # of pairs, too
N_LEADER_SAMPLE, N_LINE_SAMPLE = 1 << 15, 1 << 16  # slots that take part in all but the last round


# What is where in SparsePart.layout
TEST_AXIS_BITS, TEST_BITS, TEST_SECOND, AXIS_BITS, CODE_BITS = range(5)
FREE_FIRST, FREE_END, N_AXES, N_CELLS, N_FIELDS = range(5, 10)


class SparsePart(NamedTuple):
    """P slots, N places, M axes, G groups, W words, B blocks; arrays are flat: row i at a[r*i]."""

    layout: Array  # i8[10]: test_layout, record_layout, the unconstrained places, M, D, F
    columns: Array  # i4[M], ascending: the column of an axis
    edge_start: Array  # i8[M + 1], see sparse_axes
    edge: Array  # f8[4E]
    jump_start: Array  # i4[M + 1]
    jump_map: Array  # f8[3M]
    jump: Array  # i4[J]
    is_exact: Array  # u1[M]
    shift: Array  # u1[M]
    ties: Array  # u1[M + 2]
    kind_start: Array  # i4[M + 1]: the kinds whose first axis is a
    kind: Array  # i4[5..]: type, axis, level, second axis or NO_AXIS, its level
    cell_kind: Array  # i4[D], see sparse_directory
    cell_key: Array  # u8[D]
    cell_group: Array  # i4[D]
    group: Array  # i4[6(G + 1)]: first place, fences, end of the places to scan, first word
    plot_start: Array  # i4[M + 1], see sparse_strips
    plot: Array  # i4[2(Q + 1)]: second axis, first strip
    gate: Array  # i4[2 N_GATES Q]: first strip, end
    strip: Array  # i4[3(S + 1)]: first block, least and greatest mass
    fence: Array  # u1[2 N_FENCES S]: first block, end
    mark: Array  # u1[M], see sparse_strip_tests
    strip_test: Array  # u1[3 ITEMS B]
    line_start: Array  # i8[M + 1]
    line_length: Array  # i8[M + 1]
    lines: Array  # u8[L], lines[0] all ones
    word: Array  # u4[4W]
    reach: Array  # u8[W], see sparse_reach
    test: Array  # u4[N - BLOCK B], see sparse_records
    record: Array  # u4[FN]


def build(constraints: Constraints) -> SparsePart:
    """The part of the slots of ``Constraints``; those with an empty interval get no place.

    Requires no NaN and at most MAX_COLUMNS different columns.
    """
    start, column, low, high = (_read_only(array) for array in constraints)
    columns, axis = _axes_of(column)
    n_axes = len(columns)
    count = np.bincount(axis, minlength=n_axes)
    axes = build_axes(axis, low, high, count)
    bounds, lead = _lead_slots(start, axis, low, high, count, axes)
    directory, kinds, groups = _group_slots(bounds, low, lead)
    lines = _choose_lines(bounds, groups, count)
    pair = _choose_pairs(bounds, groups, count)
    is_live = np.ones(len(lines), bool)
    is_live[np.repeat(np.arange(len(lines)), np.diff(start))[low > high]] = False
    pair[~is_live] = -1
    second = _find_seconds(bounds, groups, lines, kinds)
    grouped, first = _order_grouped(bounds, groups, lines, second, is_live)
    words, group = build_words(grouped, first, groups, lines, n_axes)
    line_parts = build_lines(bounds, grouped, words, n_axes)
    reach = np.empty(len(words.place), np.uint64)
    write_reach(bounds, grouped, lead, second, words, reach)
    free = np.nonzero(np.diff(start) == 0)[0].astype(np.int32)
    in_strips, plots = build_plots(bounds, pair, n_axes)
    strip_tests = build_strip_tests(bounds, pair, in_strips)
    n_tested = len(grouped) + len(free)
    slot_of_place = np.concatenate([grouped, free, in_strips])
    test, record = build_records(bounds, slot_of_place, n_tested, lead, lines, n_axes)
    sizes = (n_axes, len(directory.kind), record.shape[1])
    bits = (*test_layout(n_axes), *record_layout(n_axes))
    layout = np.array([*bits, len(grouped), n_tested, *sizes], np.int64)
    kind_start = np.searchsorted(kinds[:, 1], np.arange(n_axes + 1)).astype(np.int32)
    arrays = (
        layout, columns, *axes, kind_start, kinds, *directory, group, *plots, *strip_tests,
        *line_parts, reach, test, record,
    )  # fmt: skip
    return SparsePart(*(array.reshape(-1) for array in arrays))


def _read_only(array):
    """A read-only view: kernels are compiled once, for arrays in memory and mapped ones alike."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _axes_of(column):
    """The columns in use, ascending, and the axis of every constraint: i4[K]."""
    n_of_column = np.bincount(column)
    columns = np.nonzero(n_of_column)[0].astype(np.int32)
    if len(columns) == len(n_of_column):
        return columns, column
    axis_of_column = np.zeros(len(n_of_column), np.int32)
    axis_of_column[columns] = np.arange(len(columns))
    return columns, _read_only(axis_of_column[column])


def _lead_slots(start, axis, low, high, count, axes):
    """Bounds, and lead: i4[P, 5] as of choose_leaders."""
    n_slots, n = len(start) - 1, len(axis)
    code, mass = np.empty((n, 2), np.uint16), np.empty((n, 2), np.uint16)
    encode_bounds(axes, axis, low, high, code, mass)
    bounds = Bounds(start, axis, code, mass, np.empty(n, np.float32), np.empty(n, np.int32))
    points = new_directory(int((low == high).sum()))
    n_same = np.zeros(len(points.kind), np.int32)
    entry = np.empty(n, np.int32)
    count_points(axis, low, high, points, n_same, entry)
    order_constraints(bounds, entry, n_same, count)
    lead = np.empty((n_slots, 5), np.int32)
    max_level = max(4, n_slots.bit_length() - 4)
    step = max(1, n_slots // N_LEADER_SAMPLE)
    used = np.zeros(_tally_size(n_slots), np.int32)
    count_kinds(bounds, used, max_level, step)
    for i in range(N_LEADER_ROUNDS):
        is_last = i == N_LEADER_ROUNDS - 1
        tally = np.zeros_like(used)
        choose_leaders(bounds, entry, n_same, used, tally, max_level, 1 if is_last else step, lead)
        used = tally
    return bounds, lead


def _tally_size(n_slots):
    return min(1 << 22, table_size(4 * n_slots))


def _group_slots(bounds, low, lead):
    """Directory, kinds by axis and Groups."""
    n_led = int((lead[:, 0] >= 0).sum())
    found, known = new_directory(n_led), new_directory(n_led)
    kinds, group_of_slot = np.zeros((n_led, 5), np.int32), np.empty(len(lead), np.int32)
    n_groups, n_kinds = enter_groups(bounds, low, lead, known, found, kinds, group_of_slot)
    order = np.argsort(kinds[:n_kinds, 1], kind="stable")
    new_number = np.empty(n_kinds, np.int32)
    new_number[order] = np.arange(n_kinds, dtype=np.int32)
    directory = new_directory(n_groups)
    copy_entries(found, new_number, directory)
    size = np.bincount(group_of_slot[group_of_slot >= 0], minlength=n_groups)
    kind, is_used = np.empty(n_groups, np.int32), directory.kind >= 0
    kind[directory.group[is_used]] = directory.kind[is_used]
    return directory, kinds[order], Groups(lead, group_of_slot, size, kind)


def _choose_lines(bounds, groups, count):
    """The lines of every slot: u8[P]."""
    n_slots = len(groups.of_slot)
    colour = _colours(count, 2)
    share = count / max(1, n_slots)
    tally = np.zeros(_tally_size(n_slots), np.int32)
    lines = np.zeros(n_slots, np.uint64)
    for i in range(N_LINE_ROUNDS):
        is_last, n_known = i == N_LINE_ROUNDS - 1, 0 if i else len(count)
        step = 1 if is_last else max(1, n_slots // N_LINE_SAMPLE)
        choose_lines(bounds, groups, colour[:n_known], share[:n_known], tally, step, is_last, lines)
    return lines


def _colours(count, n_colours):
    """A colour for every axis, so that all have as many of the axes that most slots use: u1[M]."""
    colour = np.empty(len(count), np.uint8)
    colour[np.argsort(-count)] = np.arange(len(count)) % n_colours
    return colour


def _choose_pairs(bounds, groups, count):
    """The constraints that lead a slot to its plot: i4[P, 2], -1 = it has none."""
    n_slots = len(groups.of_slot)
    crowd = Crowd(n_slots, count / max(1, n_slots), _colours(count, N_COLOURS))
    tally = np.zeros(_tally_size(n_slots), np.int32)
    pair = np.full((n_slots, 2), -1, np.int32)
    for i in range(N_LINE_ROUNDS):
        is_last = i == N_LINE_ROUNDS - 1
        step = 1 if is_last else max(1, n_slots // N_LINE_SAMPLE)
        choose_pairs(bounds, groups.of_slot, crowd, tally, step, i == 0, is_last, pair)
    return pair


def _find_seconds(bounds, groups, lines, kinds):
    """The constraint of slots in words on the second axis of their kind: i4[P], -1 = none.

    Writes that axis to kinds.
    """
    is_in_word = lines != NO_LINES
    some = np.arange(0, len(lines), max(1, len(lines) // N_LINE_SAMPLE))
    choose_second_axes(bounds, groups, some[is_in_word[some]], kinds)
    second = np.empty(len(lines), np.int32)
    find_seconds(bounds, groups, kinds, is_in_word, second)
    return second


def _order_grouped(bounds, groups, lines, second, is_live):
    """The living slots in groups, by group, lines and what leads: i4[..]; and that: u2[P]."""
    first = np.empty(len(lines), np.uint16)
    write_order(bounds, groups, second, first)
    slots = np.nonzero(is_live & (groups.of_slot >= 0))[0]
    order = np.lexsort((first[slots], lines[slots], groups.of_slot[slots]))
    return slots[order].astype(np.int32), first
