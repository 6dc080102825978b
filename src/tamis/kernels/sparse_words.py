"""Words: 64 slots a bit each, and lines, where an event finds the bits it touches.

Places are the slots in the order of the part: by group, lines, then mass of the low that leads.
Line (axis, bucket) holds a word of bits for every word that uses the axis: the slots whose interval
touches the bucket. The line after the last bucket is empty: it stands for a missing value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, kernel
from tamis.kernels.sparse_axes import axis_bits
from tamis.kernels.sparse_groups import N_BUCKETS, POINT, quarter_of
from tamis.kernels.sparse_lines import NO_LINES, axis_of_key, constraint_on

BUCKET_SHIFT = 16 - (N_BUCKETS.bit_length() - 1)  # from mass to bucket


class Words(NamedTuple):
    """W words."""

    place: Array  # i4[W], of bit 0
    end: Array  # i4[W], place after the last bit
    axis: Array  # i4[W, 3], M = none
    at: Array  # u4[W, 3], position in the lines of that axis


@kernel
def cut_words(slot_of_place, group_of_slot, lines, n_axes, group, words):
    """Cut the places into words of up to 64 with the same group and lines; return how many.

    Writes words but for ``at``, and of group: i4[G + 1, 6], as of fence_groups, the first place,
    the end of the places to scan and the first word. O(P).
    """
    n_places = slot_of_place.size
    n_words = place = 0
    g = -1
    while place < n_places:
        slot = slot_of_place[place]
        while g < group_of_slot[slot]:
            g += 1
            group[g, 0] = group[g, 4] = place
            group[g, 5] = n_words
        end = place
        while end < n_places:
            other = slot_of_place[end]
            if group_of_slot[other] != g or lines[other] != lines[slot]:
                break
            end += 1
        if lines[slot] == u64(NO_LINES):
            group[g, 4] = end
        else:
            n, size = (end - place + 63) // 64, end - place
            for w in range(n):
                words.place[n_words] = place + size * w // n
                words.end[n_words] = place + size * (w + 1) // n
                for x in range(3):
                    a = axis_of_key(lines[slot], x)
                    words.axis[n_words, x] = a if a >= 0 else n_axes
                n_words += 1
        place = end
    while g < group.shape[0] - 1:
        g += 1
        group[g, 0] = group[g, 4] = n_places
        group[g, 5] = n_words
    return n_words


@kernel
def fence_groups(slot_of_place, lead, first, group):
    """Write the fences of the places to scan: group[:, 1:4], from the rest of it. O(P).

    A row of group: first place; first place of the second, third and fourth quarter of the cell
    of the leader; end of the places to scan; first word. ``first``: u2[P], ascending among the
    places to scan of a group: the mass of the leader's low.
    """
    for g in range(group.shape[0]):
        for x in range(1, 4):
            group[g, x] = group[g, 4]
        for place in range(group[g, 4] - 1, group[g, 0] - 1, -1):
            slot = slot_of_place[place]
            if lead[slot, 0] > POINT:
                for x in range(1, quarter_of(np.int64(first[slot]), lead[slot, 3]) + 1):
                    group[g, x] = place


@kernel
def place_lines(words, n_axes, longest, line_length):
    """Write words.at, and line_length: i8[M + 1], words of a line. O(W).

    Words that a ``longest`` line has no room for do without it: they let through too much.
    """
    line_length[:] = 0
    for w in range(words.axis.shape[0]):
        for x in range(3):
            a = words.axis[w, x]
            words.at[w, x] = 0
            if a < n_axes and line_length[a] < longest:
                words.at[w, x] = line_length[a]
                line_length[a] += 1
            else:
                words.axis[w, x] = n_axes


@kernel
def draw_lines(bounds, slot_of_place, words, line_start, line_length, lines):
    """Set the bits of every slot in the buckets it touches. lines: u8[L], from zeros. O(bits)."""
    start, axis, mass = bounds.start, bounds.axis, bounds.mass
    n_axes = line_start.size - 1
    lines[0] = ~u64(0)  # the line of "no axis"
    for w in range(words.place.size):
        for x in range(3):
            a = words.axis[w, x]
            if a == n_axes:
                continue
            at = line_start[a] + np.int64(words.at[w, x])
            for place in range(words.place[w], words.end[w]):
                bit = u64(1) << u64(place - words.place[w])
                k = constraint_on(start, axis, slot_of_place[place], a)
                for b in range(mass[k, 0] >> BUCKET_SHIFT, (mass[k, 1] >> BUCKET_SHIFT) + 1):
                    lines[at + b * line_length[a]] |= bit


def build_words(slot_of_place, first, groups, lines, n_axes):
    """The words of all groups, but for ``at``, and group: i4[G + 1, 6] as of fence_groups."""
    n = len(slot_of_place)
    group = np.zeros((len(groups.size) + 1, 6), np.int32)
    room = Words(
        np.empty(n, np.int32), np.empty(n, np.int32),
        np.empty((n, 3), np.int32), np.empty((0, 3), np.uint32),
    )  # fmt: skip
    n_words = cut_words(slot_of_place, groups.of_slot, lines, n_axes, group, room)
    fence_groups(slot_of_place, groups.lead, first, group)
    at = np.zeros((n_words, 3), np.uint32)
    words = Words(*(array[:n_words].copy() for array in room[:3]), at)
    return words, group


def build_lines(bounds, slot_of_place, words, n_axes):
    """line_start, line_length: i8[M + 1], lines: u8[L] and word: u4[W, 4] of the words.

    A row of word: three times axis | position in its lines << axis_bits, then the place of bit 0.
    """
    bits = axis_bits(n_axes)
    line_length, line_start = np.zeros(n_axes + 1, np.int64), np.ones(n_axes + 1, np.int64)
    place_lines(words, n_axes, 1 << (32 - bits), line_length)
    line_start[1:] += np.cumsum(line_length[:-1] * (N_BUCKETS + 1))
    lines = np.zeros(line_start[-1], np.uint64)
    draw_lines(bounds, slot_of_place, words, line_start, line_length, lines)
    word = np.empty((len(words.place), 4), np.uint32)
    word[:, :3] = words.axis | words.at << bits
    word[:, 3] = words.place
    return line_start, line_length, lines, word
