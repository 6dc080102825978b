"""Sparse boxes, matched: many events against what is in strips, record by record.

Event after event, each tests the blocks that it touches, thousands of them. Here a record is asked
about a thousand events at once. The codes of an axis are cut into cells, and of each cell it is
known which events are below it, a bit each; a constraint may hold for the events that are below
the end of its cells and not below their begin. So a record of F constraints takes 2 F rows of
bits, and the rows of all cells stay in the second-level cache. What that leaves is decided by
codes and, on a tie, by exact bounds.

What events find outside of strips is found event by event, as in ``sparse_match``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.bit_lines import MANY, list_bits, list_words
from tamis.kernels.compiled import Array, kernel
from tamis.kernels.memory import aligned_zeros, i4_at
from tamis.kernels.sparse_axes import code_lengths
from tamis.kernels.sparse_batch_vectors import WORDS, and_ranges
from tamis.kernels.sparse_build import (
    AXIS_BITS,
    CODE_BITS,
    FREE_END,
    N_AXES,
    N_FIELDS,
    SparsePart,
)
from tamis.kernels.sparse_fit import FIT, TIE, check_records, fit_of, holds, record_masks
from tamis.kernels.sparse_match import (
    clear_event,
    encode_event,
    find_blocks,
    take_groups,
)
from tamis.kernels.sparse_scratch import NOTHING, open_handle
from tamis.kernels.sparse_strip_tests import ANYTHING, ITEMS, N_ITEMS
from tamis.kernels.sparse_strips import BLOCK
from tamis.kernels.sparse_vectors import TABLE

GROUP = 64 * WORDS  # events at once
PIECE = 256  # places whose bits are kept at once
CELL_BITS = 7
ROWS = (1 << CELL_BITS) + 1  # of an axis: below each of its cells, and below the end
MAX_AXES = 128  # of which the rows are near


class Ranges(NamedTuple):
    """The constraints of the P places of strips, F each, on M axes, as numbers of rows of bits."""

    ends: Array  # u2[P*F*2] the rows below the first cell and below the end of the last
    drop: Array  # u1[M + 2], bits by which the number of a cell is shorter than a code


class Batch(NamedTuple):
    """A group of events, and scratch."""

    codes: Array  # i4[GROUP, max(M + 2, TABLE)], of each event those of sparse_scratch
    below: Array  # u8[(M + 2)*ROWS*WORDS], bit e of row c: event e is below cell c of the axis
    words: Array  # u8[PIECE*WORDS], who may match the i-th place
    done: Array  # u4[PIECE + 1], places with a bit
    full: Array  # u8[PIECE*WORDS + 8], words with a bit
    bases: Array  # u8[PIECE*WORDS + 8], their place * GROUP + event of bit 0
    possible: Array  # u4[PIECE*GROUP + MANY], place * GROUP + event


def n_places(part: SparsePart) -> int:
    """How many places strips have."""
    return BLOCK * int(part.strip[-3])


def build_ranges(part: SparsePart) -> Ranges:
    """The ranges of what is in strips."""
    n_bits = code_lengths(np.diff(part.edge_start), part.is_exact) - part.shift
    n_bits = np.append(n_bits, [part.layout[CODE_BITS]] * 2)
    drop = np.maximum(0, n_bits - CELL_BITS).astype(np.uint8)
    n_fields = int(part.layout[N_FIELDS]) - 1
    ends = np.zeros(n_places(part) * n_fields * 2, np.uint16)
    first = int(part.layout[FREE_END])
    write_ranges(part.record, first, n_fields, part.layout, drop, part.strip_test, ends)
    return Ranges(ends, drop)


def new_batch(part: SparsePart) -> Batch:
    """Room for a group of events."""
    m = int(part.layout[N_AXES])
    rows = aligned_zeros((m + 2, ROWS, WORDS), np.uint64)
    rows[m:, -1] = ~np.uint64(0)  # these two hold, or may hold, for all
    return Batch(
        np.zeros((GROUP, max(m + 2, TABLE)), np.int32),
        rows.reshape(-1),
        aligned_zeros(PIECE * WORDS, np.uint64),
        np.zeros(PIECE + 1, np.uint32),
        np.zeros(PIECE * WORDS + 8, np.uint64),
        np.zeros(PIECE * WORDS + 8, np.uint64),
        np.zeros(PIECE * GROUP + MANY, np.uint32),
    )


@kernel
def write_ranges(record, first, n_fields, layout, drop, strip_test, ends):
    """Write ``ends`` of Ranges, from zeros, for the places from ``first`` on. O(P x F)."""
    axis_bits, bits = u64(layout[AXIS_BITS]), u64(layout[CODE_BITS])
    axis_mask, mask = (u64(1) << axis_bits) - u64(1), (u64(1) << bits) - u64(1)
    for place in range(len(ends) // (2 * n_fields)):
        test = place // BLOCK * 3 * ITEMS + place % BLOCK * N_ITEMS
        if strip_test[test] == ANYTHING and strip_test[test + 2 * ITEMS] == 0:
            continue  # nobody's, and in no cell
        for x in range(n_fields):
            item = u64(record[(first + place) * (n_fields + 1) + 1 + x])
            axis = item & axis_mask
            low = (item >> axis_bits) & mask
            high = low + ((item >> (axis_bits + bits)) & mask)
            at = (place * n_fields + x) * 2
            ends[at] = axis * u64(ROWS) + (low >> u64(drop[axis]))
            ends[at + 1] = axis * u64(ROWS) + (high >> u64(drop[axis])) + u64(1)


@kernel
def count_blocks(handle, events, step):
    """How many blocks of strips every step-th of the events: f8[E, C] looks at, in all."""
    part, _, s = open_handle(handle)
    n = 0
    for e in range(0, len(events), step):
        n_present = encode_event(part, s, events[e])
        n += find_blocks(part, s, n_present)
        clear_event(part, s, n_present)
    return n


@kernel
def match_groups(handle, events, first, codes, out, offsets):
    """Match events: f8[E, C] from ``first`` on while out: i4[cap] has room for all slots.

    Finds all but what is in strips; see ``sparse_match.match_some``. Writes ``codes`` of Batch.
    """
    part, constraints, s = open_handle(handle)
    e = first
    while e < len(events) and offsets[e] + handle[0] + 1 <= len(out):
        event, own = events[e], out[offsets[e] :]
        n_present = encode_event(part, s, event)
        for a in range(codes.shape[1]):
            codes[e, a] = s.codes[a]
        n_kept, n_out = take_groups(part, constraints, s, event, n_present, own)
        n_out = check_records(part, constraints, s, event, np.int64(0), n_kept, own, n_out)
        clear_event(part, s, n_present)
        e += 1
        offsets[e] = offsets[e - 1] + n_out
    return e


@kernel
def fill_below(codes, drop, n_events, n_axes, below):
    """Write ``below`` of Batch for n_events that have codes. O(M x (GROUP + ROWS))."""
    for a in range(u64(n_axes)):
        row = a * u64(ROWS * WORDS)
        for w in range(u64(ROWS * WORDS)):
            below[row + w] = u64(0)
        for e in range(u64(n_events)):
            code = codes[e, a]
            if code < NOTHING:
                cell = u64(code) >> u64(1 + drop[a])
                at = row + (cell + u64(1)) * u64(WORDS) + (e >> u64(6))
                below[at] |= u64(1) << (e & u64(63))
        for w in range(u64(WORDS), u64(ROWS * WORDS)):
            below[row + w] |= below[row + w - u64(WORDS)]


@kernel
def match_strips(handle, events, ranges, batch, place, pairs):
    """Match the places of strips from ``place`` on against a group of events: f8[E, C].

    Writes event << 32 | slot to pairs: u8[...]; stops when it might not have room for a piece.
    Returns the place to go on with, and how many pairs there are. O(places x F + pairs).
    """
    part, constraints, _ = open_handle(handle)
    n_fields = u64(part.layout[N_FIELDS] - 1)
    end, n_pairs = len(ranges.ends) // (2 * n_fields), 0
    while place < end and n_pairs + PIECE * len(events) <= len(pairs):
        n = min(u64(PIECE), u64(end - place))
        n_done = and_piece(ranges.ends, batch, u64(place), n, n_fields)
        n_possible = list_possible(batch, n_done)
        begin = u64(part.layout[FREE_END] + place)
        n_pairs = add_fitting(part, constraints, events, batch, n_possible, begin, pairs, n_pairs)
        place += PIECE
    return place, n_pairs


@kernel
def and_piece(ends, batch, place, n, n_fields):
    """Write to ``words`` who may match each of n places, to ``done`` those with anybody."""
    below, words, done = batch.below, batch.words, batch.done
    at, k = place * n_fields * u64(2), u64(0)
    for i in range(n):
        done[k] = i
        k += and_ranges(ends, at, n_fields, below, words, u64(WORDS) * i)
        at += n_fields * u64(2)
    return k


@kernel
def list_possible(batch, n_done):
    """List who may match the places done in ``possible``; returns how many. O(places + events)."""
    words, done, full, bases = batch.words, batch.done, batch.full, batch.bases
    n_full = k = u64(0)
    for t in range(n_done):
        i = u64(done[t])
        for w in range(u64(0), u64(WORDS), u64(8)):
            n_full = list_words(
                words, i * u64(WORDS) + w, i * u64(GROUP) + u64(64) * w, full, bases, n_full
            )
    for t in range(n_full):
        k = list_bits(full[t], bases[t], batch.possible, k)
    return k


@kernel
def add_fitting(part, constraints, events, batch, n, begin, pairs, n_pairs):
    """Append the pairs of those of n places, from ``begin`` on, and events that fit."""
    masks, n_axes = record_masks(part.layout), part.layout[N_AXES]
    first, step = batch.codes.ctypes.data, 4 * batch.codes.shape[1]
    for i in range(n):
        one = u64(batch.possible[i])
        at, e = (begin + one // u64(GROUP)) * masks[0], one % u64(GROUP)
        codes = i4_at(np.int64(first + step * np.int64(e)))
        fits = fit_of(part.record, at, codes, masks, n_axes)
        slot = u64(part.record[at])
        is_found = fits == FIT
        if fits == TIE:
            is_found = holds(constraints, events[e], np.int64(slot))
        pairs[u64(n_pairs)] = e << u64(32) | slot
        n_pairs += is_found
    return n_pairs


@kernel
def count_pairs(pairs, counts):
    """Add the pairs of each event to counts: i8[E]. O(pairs)."""
    for i in range(u64(len(pairs))):
        counts[pairs[i] >> u64(32)] += 1


@kernel
def place_pairs(pairs, ends, out):
    """Write the slots of event e to out: i4 from ends[e] on: i8[E], which moves on. O(pairs)."""
    for i in range(u64(len(pairs))):
        e = pairs[i] >> u64(32)
        out[u64(ends[e])] = np.int32(pairs[i] & u64(0xFFFFFFFF))
        ends[e] += 1


@kernel
def place_slots(slots, bounds, ends, out):
    """Write slots[bounds[e]:bounds[e + 1]] of every event e as ``place_pairs`` does. O(slots)."""
    for e in range(len(ends)):
        for i in range(bounds[e], bounds[e + 1]):
            out[ends[e]] = slots[i]
            ends[e] += 1
