"""Sparse boxes, matched: one event.

An event

1. looks up code, mass and line of each of its values;
2. probes the directory once, twice or four times for every kind of group, and takes what its
   masses can touch: spans of places to scan, and words;
3. ANDs three lines a word and lists the places whose bits are left;
4. looks through the plots for the blocks that its masses can touch;
5. decides about places by test, record and, on a tie, exact bounds.

Each step is a loop of its own without branches on data in memory, and asks for what the next one
reads, so that cache misses overlap with each other and with the work.
"""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

from tamis.kernels.bits import lowest_bit, popcount
from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.memory import prefetch_at
from tamis.kernels.sparse_axes import jump_cell, locate
from tamis.kernels.sparse_build import (
    AXIS_BITS,
    FREE_END,
    FREE_FIRST,
    N_AXES,
    N_CELLS,
    TEST_AXIS_BITS,
    TEST_BITS,
    TEST_SECOND,
)
from tamis.kernels.sparse_directory import find
from tamis.kernels.sparse_fit import ask_for_records, check_records
from tamis.kernels.sparse_groups import N_BUCKETS, PAIR, POINT, quarter_of
from tamis.kernels.sparse_reach import EVERYWHERE, NO_AXIS, is_in_reach, reach_on
from tamis.kernels.sparse_scratch import CHUNK, NO_MASS, NOTHING, ROOM, open_handle
from tamis.kernels.sparse_strip_tests import MISSING, add_run, step_of, test_blocks
from tamis.kernels.sparse_strips import FENCE_SHIFT, GATE_SHIFT, N_FENCES, N_GATES
from tamis.kernels.sparse_vectors import LANES, TABLE, which_hold, which_hold_plainly
from tamis.kernels.sparse_words import BUCKET_SHIFT

TESTS_A_LINE = 16  # of the cache
SOON = 8 * TESTS_A_LINE  # places of a span whose tests are asked for at once
BLOCKS = 512  # of strips, tested at once


@kernel
def encode_event(part, s, event):
    """Look up all values of the event; returns how many axes are present."""
    n = 0
    for a in range(part.layout[N_AXES]):
        x = event[u64(part.columns[a])]
        s.present[n] = a
        n += x == x
    for i in range(n):  # three loops: the misses of all axes overlap
        a = s.present[i]
        x = event[u64(part.columns[a])]
        s.value[a] = x + 0.0  # -0.0 is 0.0
        cell = part.jump_start[a] + jump_cell(part.jump_map, a, x)
        s.cell[a] = cell
        prefetch_at(part.jump, u64(cell))
    for i in range(n):
        a = s.present[i]
        prefetch_at(part.edge, u64(4 * (part.edge_start[a] + part.jump[s.cell[a]])))
    drop = 16 - part.layout[TEST_BITS]
    for i in range(n):
        a = s.present[i]
        code, mass = locate(
            part.edge, part.jump, s.cell[a], part.edge_start[a], part.edge_start[a + 1],
            part.is_exact[a], s.value[a],
        )  # fmt: skip
        code = 2 * (code >> part.shift[a])
        s.codes[a] = code + part.ties[a]
        s.mass[a], s.rough[a] = mass, mass >> drop
        s.line[a] = part.line_start[a] + (mass >> BUCKET_SHIFT) * part.line_length[a]
        s.table[part.mark[a]] = step_of(mass)
    return n


@inlined
def clear_event(part, s, n_present):
    """Make all values missing again."""
    for i in range(n_present):
        a = s.present[i]
        s.codes[a], s.mass[a], s.rough[a] = NOTHING, NO_MASS, NOTHING
        s.line[a] = part.line_start[a] + N_BUCKETS * part.line_length[a]
        s.table[part.mark[a]] = MISSING


@inlined
def add_span(spans, n, first, end):
    """Append a span unless it is empty; returns how many there are."""
    spans[2 * n], spans[2 * n + 1] = first, end
    return n + (end > first)


@inlined
def add_words(part, s, first, end, here, n):
    """Append the words from first to end that an event reaches; returns how many there are."""
    for w in range(first, end):
        s.word[n] = w
        n += is_in_reach(part.reach[w], here)
    return n


@inlined
def place_on_second(part, s, kind):
    """Where the event is on the second axis of a kind."""
    a = part.kind[5 * kind + 3]
    y = np.int64(NO_MASS)
    if a != NO_AXIS:
        y = np.int64(s.mass[a])
    return reach_on(y, y) if y != NO_MASS else u64(EVERYWHERE)


@kernel
def find_groups(part, s, n_present):
    """Collect spans of places and the words of all groups the event leads to; returns how many."""
    mask = u64(part.layout[N_CELLS] - 1)
    n_places = add_span(s.place_span, np.int64(0), part.layout[FREE_FIRST], part.layout[FREE_END])
    n_words = np.int64(0)
    for i in range(n_present):
        a = s.present[i]
        m = s.mass[a]
        for kind in range(part.kind_start[a], part.kind_start[a + 1]):
            kind_type = part.kind[5 * kind]
            x0 = x1 = y0 = y1 = 0
            quarter = 3
            here = reach_on(m, m) | place_on_second(part, s, kind) << u64(32)
            if kind_type != POINT:
                x1 = m >> (16 - part.kind[5 * kind + 2])
                x0 = max(0, x1 - 1)
                quarter = quarter_of(m, part.kind[5 * kind + 2])
            if kind_type == PAIR:
                y1 = s.mass[part.kind[5 * kind + 3]]
                if y1 == NO_MASS:
                    continue
                y1 = y1 >> (16 - part.kind[5 * kind + 4])
                y0 = max(0, y1 - 1)
            for x in range(x0, x1 + 1):
                for y in range(y0, y1 + 1):
                    key = s.value_bits[a] if kind_type == POINT else (u64(x) << u64(16)) | u64(y)
                    h = find(part.cell_kind, part.cell_key, mask, kind, key)
                    if part.cell_kind[h] >= 0:
                        g = 6 * part.cell_group[h]
                        first, end = part.group[g], part.group[g + quarter + 1]
                        if x < x1:
                            first, end = part.group[g + quarter], part.group[g + 4]
                        n_places = add_span(s.place_span, n_places, first, end)
                        for place in range(first, min(end, first + SOON), TESTS_A_LINE):
                            prefetch_at(part.test, u64(place))
                        n_words = add_words(
                            part, s, part.group[g + 5], part.group[g + 11], here, n_words
                        )
    return n_places, n_words


@kernel
def find_blocks(part, s, n_present):
    """Write the blocks of all strips that the event touches to s.block; returns how many."""
    n = np.int64(0)
    for i in range(n_present):
        a = s.present[i]
        x = s.mass[a]
        for q in range(part.plot_start[a], part.plot_start[a + 1]):
            y = s.mass[part.plot[2 * q]]
            if y == NO_MASS:
                continue
            first, n_strips = part.plot[2 * q + 1], part.plot[2 * q + 3] - part.plot[2 * q + 1]
            gate = 2 * (N_GATES * q + (x >> GATE_SHIFT))
            fence = 2 * (N_FENCES * first + (y >> FENCE_SHIFT) * n_strips - first)
            for strip in range(part.gate[gate], part.gate[gate + 1]):
                before, until = part.fence[fence + 2 * strip], part.fence[fence + 2 * strip + 1]
                add_run(s.block, n, np.int64(part.strip[3 * strip] + before))
                is_touched = (part.strip[3 * strip + 1] <= x) & (x <= part.strip[3 * strip + 2])
                n += (np.int64(until) - np.int64(before)) * is_touched
    return n


@inlined
def test_masks(layout):
    """Where low and width of a test are, the masks of axis and bounds, and the second test."""
    axis_bits, bits = layout[TEST_AXIS_BITS], layout[TEST_BITS]
    axis_mask, mask = u64((1 << axis_bits) - 1), u64((1 << bits) - 1)
    return u64(axis_bits), u64(axis_bits + bits), axis_mask, mask, u64(layout[TEST_SECOND])


@inlined
def which_of(test, first, n, rough, masks, n_axes):
    """Which of test[first : first + n], n <= LANES, hold for the event: a bit each."""
    low_at, width_at, axis_mask, mask, second = masks
    if n_axes + 2 <= TABLE:
        return which_hold(test, first, n, rough, low_at, width_at, axis_mask, mask, second)
    return which_hold_plainly(test, first, n, rough, low_at, width_at, axis_mask, mask, second)


@kernel
def test_places(part, s, span, n_spans):
    """Write the places of the spans whose test holds to s.kept; returns next span and how many.

    A span that does not fit whole is left with the rest.
    """
    masks, n_axes = test_masks(part.layout), part.layout[N_AXES]
    room, n = np.int64(ROOM), np.int64(0)
    while span < n_spans and room:
        place = s.place_span[2 * span]
        end = min(s.place_span[2 * span + 1], place + room)
        room -= end - place
        s.place_span[2 * span] = end
        span += end == s.place_span[2 * span + 1]
        for k in range(place, end, LANES):
            bits = which_of(part.test, u64(k), u64(min(LANES, end - k)), s.rough, masks, n_axes)
            while bits:
                s.kept[n] = k + np.int32(lowest_bit(bits))
                bits &= bits - u64(1)
                n += 1
    return span, n


@kernel
def aim_words(part, s, first, n_words):
    """Ask for the lines of the next words, from first on; returns how many.

    Writes s.aim: of every word three indices into the lines, and the place of its bit 0.
    """
    shift = np.uint32(part.layout[AXIS_BITS])
    mask = np.uint32((1 << part.layout[AXIS_BITS]) - 1)
    n = min(np.int64(CHUNK), n_words - first)
    for i in range(n):
        w = 4 * s.word[first + i]
        for x in range(3):
            item = part.word[w + x]
            at = s.line[item & mask] + (item >> shift)
            s.aim[4 * i + x] = at
            prefetch_at(part.lines, u64(at))
        s.aim[4 * i + 3] = part.word[w + 3]
    return n


@kernel
def take_words(part, s, n):
    """AND the lines of the n words aimed at; list the places of the bits left in s.candidate.

    Returns how many. Asks for their tests.
    """
    left = 0
    for i in range(0, 4 * n, 4):
        bits = part.lines[s.aim[i]] & part.lines[s.aim[i + 1]] & part.lines[s.aim[i + 2]]
        s.bits[left] = bits
        s.base[left] = s.aim[i + 3]
        left += bits != u64(0)
    m = u64(0)
    for i in range(left):
        word, place = s.bits[i], s.base[i]
        end = m + popcount(word)
        for k in range(4):  # blindly, for most words have no more
            s.candidate[m + u64(k)] = place + np.int32(lowest_bit(word))
            word &= word - u64(1)
        m += u64(4)
        while word:
            s.candidate[m] = place + np.int32(lowest_bit(word))
            word &= word - u64(1)
            m += u64(1)
        m = end
    n_found = np.int64(m)
    for i in range(n_found):
        prefetch_at(part.test, u64(s.candidate[i]))
    return n_found


@kernel
def test_candidates(part, s, n, n_kept):
    """Append those of the n candidates whose test holds to s.kept; returns the new length."""
    masks, n_axes = test_masks(part.layout), part.layout[N_AXES]
    for i in range(n):
        s.test[i] = part.test[s.candidate[i]]
    for k in range(0, n, LANES):
        bits = which_of(s.test, u64(k), u64(min(LANES, n - k)), s.rough, masks, n_axes)
        while bits:
            s.kept[n_kept] = s.candidate[k + np.int64(lowest_bit(bits))]
            bits &= bits - u64(1)
            n_kept += 1
    return n_kept


@kernel
def take_spans(part, constraints, s, event, n_places, out, n_out):
    """Test the places of all spans; returns what is kept in s.kept, and the length of out."""
    n_kept = place_span = np.int64(0)
    while place_span < n_places:
        place_span, n_kept = test_places(part, s, place_span, n_places)
        ask_for_records(part, s, np.int64(0), n_kept)
        if place_span < n_places or n_kept > ROOM - 64 * CHUNK:
            n_out = check_records(part, constraints, s, event, np.int64(0), n_kept, out, n_out)
            n_kept = np.int64(0)
    return n_kept, n_out


@kernel
def take_all_words(part, constraints, s, event, n_words, n_kept, out, n_out):
    """Test what is left of all words; returns what is kept in s.kept, and the length of out."""
    n_taken = np.int64(0)
    n_aimed = aim_words(part, s, n_taken, n_words)
    while n_aimed:
        n = take_words(part, s, n_aimed)
        n_taken += n_aimed
        n_aimed = aim_words(part, s, n_taken, n_words)
        n_before = n_kept
        n_kept = test_candidates(part, s, n, n_before)
        ask_for_records(part, s, n_before, n_kept)
        if n_kept > ROOM - 64 * CHUNK:
            n_out = check_records(part, constraints, s, event, np.int64(0), n_kept, out, n_out)
            n_kept = np.int64(0)
    return n_kept, n_out


@kernel
def take_blocks(part, constraints, s, event, n_blocks, n_kept, out, n_out):
    """Append the slots that match of all blocks and of what is kept; returns the length of out.

    Records are looked at while those of the next blocks are on their way, and not much later:
    what the tests of blocks push out of the cache would have to be fetched again.
    """
    base, n_checked = part.layout[FREE_END], np.int64(0)
    for i in range(0, n_blocks, BLOCKS):
        n_before = n_kept
        n_kept = test_blocks(
            s.block, np.int64(i), min(i + BLOCKS, n_blocks), base, part.strip_test, s.table,
            s.kept, n_before,
        )  # fmt: skip
        ask_for_records(part, s, n_before, n_kept)
        n_out = check_records(part, constraints, s, event, n_checked, n_before, out, n_out)
        n_checked = n_before
        if n_kept > ROOM - 64 * CHUNK:
            n_out = check_records(part, constraints, s, event, n_checked, n_kept, out, n_out)
            n_checked = n_kept = np.int64(0)
    return check_records(part, constraints, s, event, n_checked, n_kept, out, n_out)


@inlined
def take_groups(part, constraints, s, event, n_present, out):
    """Test all that groups lead to; returns what is kept in s.kept, and the length of out."""
    n_spans, n_words = find_groups(part, s, n_present)
    n_kept, n_out = take_spans(part, constraints, s, event, n_spans, out, np.int64(0))
    return take_all_words(part, constraints, s, event, n_words, n_kept, out, n_out)


@inlined
def match(part, constraints, s, event, out):
    """Write the slots that match event: f8[C] (NaN = missing) to out: i4[P + 1]; returns how many.

    Requires a value for every column in use. O(kinds + words + strips + matches).
    """
    n_present = encode_event(part, s, event)
    n_kept, n_out = take_groups(part, constraints, s, event, n_present, out)
    n_blocks = find_blocks(part, s, n_present)
    n_out = take_blocks(part, constraints, s, event, n_blocks, n_kept, out, n_out)
    clear_event(part, s, n_present)
    return n_out


@kernel
def match_one(handle, event, out):
    """match() through a handle."""
    part, constraints, scratch = open_handle(handle)
    return match(part, constraints, scratch, event, out)


@kernel
def match_some(handle, events, first, out, offsets):
    """Match events: f8[E, C] from ``first`` on while out: i4[cap] has room for P + 1 slots.

    Writes out[offsets[first]:] and offsets[first + 1:], offsets: i8[E + 1]; returns the next event.
    """
    e = first
    while e < events.shape[0] and offsets[e] + handle[0] + 1 <= out.size:
        offsets[e + 1] = offsets[e] + match_one(handle, events[e], out[offsets[e] :])
        e += 1
    return e
