"""Sparse boxes, matched: one event, or many one after another.

An event

1. looks up code, mass and line of each of its values;
2. probes the directory once, twice or four times for every kind of group, and takes the root
   words that its masses can touch: spans of places to scan and of words;
3. ANDs three lines a word and lists the places whose bits are left;
4. decides about places by test, record and, on a tie, exact bounds.

Each step is a loop of its own without branches on data in memory, so that cache misses overlap.

Kernels see arrays through pointers, which index like flat arrays, know no size and cost nothing
to hand on; but for the compiler, they work on arrays just as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.memory import f8_at, i4_at, i8_at, u1_at, u4_at, u8_at
from tamis.kernels.scan import Constraints
from tamis.kernels.sparse_axes import locate
from tamis.kernels.sparse_build import (
    AXIS_BITS,
    CODE_BITS,
    FREE_END,
    FREE_FIRST,
    N_AXES,
    N_CELLS,
    N_FIELDS,
    TEST_AXIS_BITS,
    TEST_BITS,
    TEST_SECOND,
    SparsePart,
)
from tamis.kernels.sparse_directory import find
from tamis.kernels.sparse_groups import N_BUCKETS, PAIR, POINT
from tamis.kernels.sparse_words import BUCKET_SHIFT

CHUNK = 1024  # words ANDed before their places are listed
ROOM = 2 * CHUNK * 64  # places decided at once
NO_MASS = 1 << 30  # of a missing value
NOTHING = 1 << 31  # its code and rough mass: more than any width above any low


class Scratch(NamedTuple):
    """Of one thread. Between events, what there is of an event is "missing" everywhere."""

    present: Array  # i4[M + 1], axes on which the event has a value
    code: Array  # u4[M + 2]
    mass: Array  # i4[M]
    rough: Array  # u4[M + 2], mass at the precision of a test
    line: Array  # u4[M + 1], first word of the event's line
    value: Array  # f8[M], only where present
    value_bits: Array  # u8[M], the same
    place_span: Array  # i4[2S], places to scan: first, end
    word_span: Array  # i4[2S], words to AND: first, end
    bits: Array  # u8[CHUNK + 1], words with a bit left
    base: Array  # i4[CHUNK + 1], places of their bits 0
    candidate: Array  # i4[ROOM + 4], places
    tested: Array  # u4[ROOM], their tests
    kept: Array  # i4[ROOM + 1], those that passed


def new_scratch(part: SparsePart) -> Scratch:
    """Scratch for one thread."""
    m, n_spans = len(part.columns), 4 * (len(part.kind) // 5) + len(part.root) // 4 + 2
    code, rough = np.full(m + 2, NOTHING, np.uint32), np.full(m + 2, NOTHING, np.uint32)
    code[m:] = rough[m:] = 0
    line = part.line_start + N_BUCKETS * part.line_length
    line[m] = 0
    value = np.zeros(m)
    return Scratch(
        np.empty(m + 1, np.int32),
        code,
        np.full(m, NO_MASS, np.int32),
        rough,
        line.astype(np.uint32),
        value,
        value.view(np.uint64),
        np.empty(2 * n_spans, np.int32),
        np.empty(2 * n_spans, np.int32),
        np.empty(CHUNK + 1, np.uint64),
        np.empty(CHUNK + 1, np.int32),
        np.empty(ROOM + 4, np.int32),
        np.empty(ROOM, np.uint32),
        np.empty(ROOM + 1, np.int32),
    )


@inlined
def popcount(x):
    """Bits set in a u8 (LLVM makes it one instruction)."""
    x = x - ((x >> u64(1)) & u64(0x5555555555555555))
    x = (x & u64(0x3333333333333333)) + ((x >> u64(2)) & u64(0x3333333333333333))
    x = (x + (x >> u64(4))) & u64(0x0F0F0F0F0F0F0F0F)
    return (x * u64(0x0101010101010101)) >> u64(56)


@inlined
def lowest_bit(x):
    """Number of the lowest bit set in a u8, 64 if none (LLVM makes it one instruction)."""
    return popcount(~x & (x - u64(1)))


@inlined
def encode_event(part, s, event):
    """Look up all values of the event; returns how many axes are present."""
    n = 0
    for a in range(part.layout[N_AXES]):
        x = event[u64(part.columns[a])]
        s.present[n] = a
        n += x == x
    drop = 16 - part.layout[TEST_BITS]
    for i in range(n):
        a = s.present[i]
        x = event[u64(part.columns[a])]
        code, mass = locate(
            part.edge, part.jump, part.jump_map, a, part.edge_start[a], part.edge_start[a + 1],
            part.jump_start[a], part.is_exact[a], x,
        )  # fmt: skip
        s.code[a], s.mass[a], s.rough[a] = code >> part.shift[a], mass, mass >> drop
        s.value[a] = x + 0.0  # -0.0 is 0.0
        s.line[a] = part.line_start[a] + (mass >> BUCKET_SHIFT) * part.line_length[a]
    return n


@inlined
def clear_event(part, s, n_present):
    """Make all values missing again."""
    for i in range(n_present):
        a = s.present[i]
        s.code[a], s.mass[a], s.rough[a] = NOTHING, NO_MASS, NOTHING
        s.line[a] = part.line_start[a] + N_BUCKETS * part.line_length[a]


@inlined
def add_span(spans, n, first, end):
    """Append a span unless it is empty; returns how many there are."""
    spans[2 * n], spans[2 * n + 1] = first, end
    return n + (end > first)


@inlined
def find_spans(part, s, n_present):
    """Collect the spans of all groups the event leads to; returns how many, places and words."""
    mask = u64(part.layout[N_CELLS] - 1)
    n_places = add_span(s.place_span, 0, part.layout[FREE_FIRST], part.layout[FREE_END])
    n_words = 0
    for i in range(n_present):
        a = s.present[i]
        m = s.mass[a]
        for kind in range(part.kind_start[a], part.kind_start[a + 1]):
            kind_type = part.kind[5 * kind]
            x0 = x1 = y0 = y1 = 0
            if kind_type != POINT:
                x1 = m >> (16 - part.kind[5 * kind + 2])
                x0 = max(0, x1 - 1)
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
                        g = 3 * part.cell_group[h]
                        n_places = add_span(
                            s.place_span, n_places, part.group[g], part.group[g + 1]
                        )
                        n_words = add_span(
                            s.word_span, n_words, part.group[g + 2], part.group[g + 5]
                        )
        for r in range(4 * part.root_start[a], 4 * part.root_start[a + 1], 4):
            s.word_span[2 * n_words] = part.root[r]
            s.word_span[2 * n_words + 1] = part.root[r + 1]
            n_words += (part.root[r + 2] <= m) & (m <= part.root[r + 3])
    return n_places, n_words


@inlined
def take_places(s, span, n_spans):
    """Fill s.candidate from the spans of places; returns the next span and how many.

    A span that does not fit whole is left with the rest.
    """
    n = 0
    while span < n_spans and n < ROOM:
        place = s.place_span[2 * span]
        end = min(s.place_span[2 * span + 1], place + ROOM - n)
        s.place_span[2 * span] = end
        span += end == s.place_span[2 * span + 1]
        for k in range(place, end):
            s.candidate[n] = k
            n += 1
    return span, n


@inlined
def list_bits(s, n_words, n):
    """Append the places of all bits of the words left to s.candidate; returns how many.

    Four a word are written blindly, for most words have no more.
    """
    m = u64(n)
    for i in range(n_words):
        word, place = s.bits[i], s.base[i]
        end = m + popcount(word)
        for k in range(4):
            s.candidate[m + u64(k)] = place + np.int32(lowest_bit(word))
            word &= word - u64(1)
        m += u64(4)
        while word:
            s.candidate[m] = place + np.int32(lowest_bit(word))
            word &= word - u64(1)
            m += u64(1)
        m = end
    return np.int64(m)


@inlined
def take_words(part, s, span, n_spans, n):
    """Append to the n candidates from the spans of words; returns the next span and how many."""
    shift = np.uint32(part.layout[AXIS_BITS])
    mask = np.uint32((1 << part.layout[AXIS_BITS]) - 1)
    while span < n_spans and n <= ROOM - 64 * CHUNK:
        left = 0
        while span < n_spans and left < CHUNK:
            word = s.word_span[2 * span]
            end = min(s.word_span[2 * span + 1], word + CHUNK - left)
            s.word_span[2 * span] = end
            span += end == s.word_span[2 * span + 1]
            for w in range(4 * word, 4 * end, 4):
                one, two, three = part.word[w], part.word[w + 1], part.word[w + 2]
                bits = (
                    part.lines[s.line[one & mask] + (one >> shift)]
                    & part.lines[s.line[two & mask] + (two >> shift)]
                    & part.lines[s.line[three & mask] + (three >> shift)]
                )
                s.bits[left] = bits
                s.base[left] = part.word[w + 3]
                left += bits != u64(0)
        n = list_bits(s, left, n)
    return span, n


@inlined
def test_candidates(part, s, n):
    """Write those of the n candidates whose test holds to s.kept; returns how many."""
    for i in range(n):
        s.tested[i] = part.test[s.candidate[i]]
    low_at, second = np.uint32(part.layout[TEST_AXIS_BITS]), np.uint32(part.layout[TEST_SECOND])
    width_at = np.uint32(part.layout[TEST_AXIS_BITS] + part.layout[TEST_BITS])
    axis_mask = np.uint32((1 << part.layout[TEST_AXIS_BITS]) - 1)
    mask = np.uint32((1 << part.layout[TEST_BITS]) - 1)
    m = 0
    for i in range(n):
        one = s.tested[i]
        two = np.uint32(one >> second)
        s.kept[m] = s.candidate[i]
        a = np.uint32(s.rough[one & axis_mask] - ((one >> low_at) & mask))
        b = np.uint32(s.rough[two & axis_mask] - ((two >> low_at) & mask))
        m += (a <= ((one >> width_at) & mask)) & (b <= ((two >> width_at) & mask))
    return m


@inlined
def holds(constraints, event, slot):
    """Whether the event satisfies the exact bounds of a slot."""
    ok = True
    k, end = constraints.start[slot], constraints.start[slot + 1]
    while ok and k < end:
        x = event[u64(constraints.column[k])]
        ok = constraints.low[k] <= x and x <= constraints.high[k]
        k += 1
    return ok


@inlined
def check_records(part, constraints, s, event, n, out, n_out):
    """Append the slots of the n kept places that match to out; returns the new length."""
    n_fields = part.layout[N_FIELDS]
    low_at = np.uint32(part.layout[AXIS_BITS])
    width_at = np.uint32(part.layout[AXIS_BITS] + part.layout[CODE_BITS])
    axis_mask = np.uint32((1 << part.layout[AXIS_BITS]) - 1)
    mask = np.uint32((1 << part.layout[CODE_BITS]) - 1)
    touched = np.uint32(0)
    for i in range(n):  # fetch all records first: these misses overlap, those between branches not
        at = n_fields * s.kept[i]
        touched ^= part.record[at] ^ part.record[at + n_fields - 1]
    s.tested[0] = touched
    for i in range(n):
        at = n_fields * s.kept[i]
        bad, tie = False, False
        for x in range(at + 1, at + n_fields):
            item = part.record[x]
            a, width = item & axis_mask, (item >> width_at) & mask
            inside = np.uint32(s.code[a] - ((item >> low_at) & mask))
            bad |= inside > width
            tie |= ((inside == 0) | (inside == width)) & (part.ties[a] != 0)
        if not bad:
            slot = part.record[at]
            if not tie or holds(constraints, event, slot):
                out[u64(n_out)] = slot
                n_out += 1
    return n_out


@inlined
def match(part, constraints, s, event, out):
    """Write the slots that match event: f8[C] (NaN = missing) to out: i4[P]; returns how many.

    Requires a value for every column in use. O(kinds + words + matches).
    """
    n_present = encode_event(part, s, event)
    n_places, n_words = find_spans(part, s, n_present)
    n_out = place_span = word_span = 0
    while place_span < n_places or word_span < n_words:
        place_span, n = take_places(s, place_span, n_places)
        if place_span == n_places:
            word_span, n = take_words(part, s, word_span, n_words, n)
        n = test_candidates(part, s, n)
        n_out = check_records(part, constraints, s, event, n, out, n_out)
    clear_event(part, s, n_present)
    return n_out


def handle_of(part: SparsePart, constraints: Constraints, scratch: Scratch) -> Array:
    """i8[..]: the number of slots, then the addresses of all arrays, which must outlive it.

    Handing over 42 arrays costs 8 us a call, one handle 0.4; and arrays that are mapped and
    read-only are of no other type.
    """
    arrays = (*part, *constraints, *scratch)
    n_slots = len(constraints.start) - 1
    return np.array([n_slots] + [array.ctypes.data for array in arrays], np.int64)


@inlined
def open_handle(h):
    """The part, constraints and scratch behind a handle, as pointers."""
    part = SparsePart(
        i8_at(h[1]), i4_at(h[2]), i8_at(h[3]), f8_at(h[4]), i4_at(h[5]), f8_at(h[6]),
        i4_at(h[7]), u1_at(h[8]), u1_at(h[9]), u1_at(h[10]), i4_at(h[11]), i4_at(h[12]),
        i4_at(h[13]), u8_at(h[14]), i4_at(h[15]), i4_at(h[16]), i4_at(h[17]), i4_at(h[18]),
        i8_at(h[19]), i8_at(h[20]), u8_at(h[21]), u4_at(h[22]), u4_at(h[23]), u4_at(h[24]),
    )  # fmt: skip
    constraints = Constraints(i8_at(h[25]), i4_at(h[26]), f8_at(h[27]), f8_at(h[28]))
    scratch = Scratch(
        i4_at(h[29]), u4_at(h[30]), i4_at(h[31]), u4_at(h[32]), u4_at(h[33]), f8_at(h[34]),
        u8_at(h[35]), i4_at(h[36]), i4_at(h[37]), u8_at(h[38]), i4_at(h[39]), i4_at(h[40]),
        u4_at(h[41]), i4_at(h[42]),
    )  # fmt: skip
    return part, constraints, scratch


@kernel
def match_one(handle, event, out):
    """match() through a handle."""
    part, constraints, scratch = open_handle(handle)
    return match(part, constraints, scratch, event, out)


@kernel
def match_some(handle, events, first, out, offsets):
    """Match events: f8[E, C] from ``first`` on while out: i4[cap] has room for all slots.

    Writes out[offsets[first]:] and offsets[first + 1:], offsets: i8[E + 1]; returns the next event.
    """
    e = first
    while e < events.shape[0] and offsets[e] + handle[0] <= out.size:
        offsets[e + 1] = offsets[e] + match_one(handle, events[e], out[offsets[e] :])
        e += 1
    return e
