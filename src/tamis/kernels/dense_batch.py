"""Dense boxes, matched: many events, line after line.

Event after event, each reads the lines it needs from memory. Here a few lines are read with all
their bitmaps and rows, once, as fast as memory gives them, and stay in the cache while all events
look at them. So

1. each event is encoded, and it is written down which events each line is alive for;
2. of each line, the bits of each such event are ANDed over all attributes, in two steps: in the
   cache one more costs less than asking whether it pays;
3. what is left is verified as in ``dense_match``, and found line by line: a run of slots for
   each event;
4. the runs are put in the order of events.

Slots of the same event come in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64
from numba.cpython.unsafe.numbers import trailing_zeros

from tamis.kernels.bit_lines import MANY, list_bits, list_words
from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.dense_batch_vectors import (
    LANES,
    and_many,
    and_more,
    keep_certain,
    keep_tied,
    misfits_of,
    move_run,
    touch,
)
from tamis.kernels.dense_build import (
    FIELD_BITS,
    FIELDS,
    GROUP,
    GUARD,
    LINE,
    n_group_words,
    n_map_words,
    place_of_line,
)
from tamis.kernels.dense_lines import slot_in
from tamis.kernels.dense_match import and_first, and_next, collect, list_lines, prepare
from tamis.kernels.dense_scratch import AT_ONCE, PLAN_OFFSET, open_part, open_work
from tamis.kernels.memory import aligned_zeros, prefetch

AHEAD = 64  # how far ahead to prefetch, in cache lines
PIECE = 256  # events whose bits of a line are kept at once
AT_FIRST = 6  # attributes that are ANDed before it is asked whether a bit is left; even
MAX_ANDED = 32  # attributes that are ANDed; the others are left to the rows
MAX_MAPS = 1 << 16  # bitmaps that can be told apart by number
MANY_TIES = 1024  # so many are settled at once
MORE_ROOM = 1 << 20  # slots
LOW = 0xFFFFFFFF  # the lower half of a word


class Batch(NamedTuple):
    """E events: what is known of each, and scratch. A bitmaps of each are ANDed, A is even.

    LW = ceil(L / 64), EW = ceil(E / 64); W words a row.
    """

    maps: Array  # u2[E*A] numbers of bitmaps: attribute * (B + 1) + bucket; may repeat
    keys: Array  # u8[E*2*W] as in dense_scratch: four "possible", four "certain", then the rest
    alive: Array  # u8[LW*64, EW] bit e of line l: the line may hold a match of event e
    listed: Array  # u4[E] the events that a line is alive for
    words: Array  # u8[PIECE*8] the bits of the i-th event of a piece
    done: Array  # u4[PIECE + 1] which of them have bits left
    full: Array  # u8[PIECE*8 + 8] words with bits left
    places: Array  # u8[PIECE*8 + 8] their event << 9 | position of the first bit in the line
    candidates: Array  # u4[PIECE*LINE + MANY] event << 9 | position in the line
    misfits: Array  # u1[PIECE*LINE + MANY] of each candidate, as ``misfits_of`` tells them
    kept: Array  # u4[PIECE*LINE + MANY] some of the candidates
    ties: Array  # u8[PIECE*LINE + MANY_TIES + 1] event << 32 | position


class Found(NamedTuple):
    """Slots by line: run i is of one event, and ends where run i + 1 starts."""

    slots: Array  # i4[room + LANES]
    runs: Array  # u8[room] event << 32 | end of the run; the first says 0


def new_batch(n: int, m: int, n_words: int, n_events: int) -> Batch:
    """Room for events that are matched against n boxes of m attributes."""
    n_lines = -(-n // LINE)
    return Batch(
        np.zeros(n_events * n_anded(m), np.uint16),
        aligned_zeros(n_events * 2 * n_words, np.uint64),
        np.zeros((-(-n_lines // 64) * 64, -(-n_events // 64)), np.uint64),
        np.zeros(n_events, np.uint32),
        aligned_zeros(8 * PIECE, np.uint64),
        np.zeros(PIECE + 1, np.uint32),
        np.zeros(8 * PIECE + 8, np.uint64),
        np.zeros(8 * PIECE + 8, np.uint64),
        np.empty(PIECE * LINE + MANY, np.uint32),
        np.empty(PIECE * LINE + MANY, np.uint8),
        np.empty(PIECE * LINE + MANY, np.uint32),
        np.empty(PIECE * LINE + MANY_TIES + 1, np.uint64),
    )


def new_found(n_events: int) -> Found:
    """Room for more than a line can find; only what is written to takes memory.

    A line finds a run for each event, and for each candidate a slot or, being a tie, both.
    """
    room = 1 + n_events * (LINE + 1) + MORE_ROOM
    return Found(np.empty(room + LANES, np.int32), np.empty(room, np.uint64))


def n_anded(m):
    """How many bitmaps of an event are ANDed, of m attributes."""
    return min(m + m % 2, MAX_ANDED)


@kernel
def count_looks(handle, events, step):
    """What every step-th of the events: f8[E, M] looks at, in all, if matched by itself.

    Returns how many lines of bits, and how many rows.
    """
    n_bits = n_rows = u64(0)
    for e in range(0, len(events), step):
        n_used = prepare(handle, events[e])
        n_left = u64(list_lines(handle))
        n_bits += u64(AT_ONCE) * n_left
        n_left, n_done = and_first(handle, np.int64(n_left))
        for j in range(AT_ONCE, n_used):
            n_bits += n_left
            n_left, n_done = and_next(handle, j, n_left, n_done)
        t = u64(0)
        while t < n_done:
            t, n_candidates = collect(handle, t, n_done)
            n_rows += n_candidates
    return np.int64(n_bits), np.int64(n_rows)


@kernel
def prepare_many(handle, events, batch):
    """Fill maps, keys and alive for events: f8[E, M]. O(E x (M + L / 64))."""
    part, work = open_part(handle), open_work(handle)
    n_events, n_words, n_lines_words = len(events), handle[2], len(work.alive)
    n_maps, n_map = len(batch.maps) // n_events, n_map_words(part.n)
    block = np.zeros((n_lines_words, 64), np.uint64)
    for e in range(n_events):
        prepare(handle, events[e])
        for j in range(n_maps):
            batch.maps[e * n_maps + j] = work.plan[PLAN_OFFSET, j] // n_map
        at = 2 * n_words * e
        for w in range(n_words):
            batch.keys[at + (w if w < 4 else w + 4)] = work.keys[w]
            batch.keys[at + (w + 4 if w < 4 else w + n_words)] = work.keys[n_words + w]
        for w in range(n_lines_words):
            block[w, e & 63] = work.alive[w]
        if e & 63 == 63 or e == n_events - 1:
            for w in range(n_lines_words):
                block[w, (e & 63) + 1 :] = u64(0)
                transpose(block, w)
                for i in range(64):
                    batch.alive[64 * w + i, e >> 6] = block[w, i]


@inlined
def transpose(block, row):
    """Let bit j of word i of a row of block: u8[..., 64] become bit i of word j."""
    j, mask = u64(32), u64(LOW)
    while j:
        k = u64(0)
        while k < u64(64):
            swapped = ((block[row, k] >> j) ^ block[row, k + j]) & mask
            block[row, k] ^= swapped << j
            block[row, k + j] ^= swapped
            k = (k + j + u64(1)) & ~j
        j >>= u64(1)
        mask ^= mask << j


@kernel
def match_lines(handle, events, batch, first, found):
    """Match the prepared events: f8[E, M] against the lines from ``first`` on.

    Stops at a line when ``found`` might not have room for it. Returns the line to go on with and
    how many runs there are, the first, empty one included. O(lines x (bitmaps + LINE) + lines
    alive x M + matches).
    """
    part = open_part(handle)
    n_lines = (part.n + LINE - 1) // LINE
    n_slots, n_runs = u64(0), u64(1)
    found.runs[0] = u64(0)
    line = first
    while line < n_lines:
        n_listed = list_events(batch, line)
        if max(n_slots, n_runs) + n_listed * u64(LINE + 1) > u64(len(found.runs)):
            break
        if line == first or line % GROUP == 0:
            read_group(part, handle[2], line)
        n_ties = u64(0)
        for start in range(u64(0), n_listed, u64(PIECE)):
            n_done = and_piece(part, batch, line, start, min(u64(PIECE), n_listed - start))
            n_candidates = collect_piece(batch, start, n_done)
            told = verify_piece(
                part.rows, batch, (u64(line), n_candidates, u64(handle[2])), found,
                (n_slots, n_runs, n_ties),
            )  # fmt: skip
            touch_ties(part, batch, n_ties, told[2])
            n_slots, n_runs, n_ties = told
            if n_ties >= u64(MANY_TIES) or start + u64(PIECE) >= n_listed:
                n_slots, n_runs = settle_ties(part, batch, events, n_ties, found, n_slots, n_runs)
                n_ties = u64(0)
        line += 1
    return line, np.int64(n_runs)


@kernel
def list_events(batch, line):
    """Numbers of the events that a line is alive for, into ``listed``; returns how many."""
    alive, listed = batch.alive, batch.listed
    k = u64(0)
    for w in range(u64(alive.shape[1])):
        word = alive[line, w]
        while word:
            listed[k] = u64(64) * w + u64(trailing_zeros(word))
            k += u64(1)
            word &= word - u64(1)
    return k


@kernel
def read_group(part, n_words, line):
    """Bring the bitmaps and rows of a group of lines, rows from ``line`` on, into the cache.

    Prefetching alone would be dropped, loading alone wait: together they get all that memory gives.
    """
    pool, rows = part.pool, part.rows
    n_pool, n_rows = u64(n_group_words(part.n, part.edges.shape[0])), u64(LINE * n_words)
    group = u64(line) // u64(GROUP)
    read_all(pool, group * n_pool, (group + u64(1)) * n_pool)
    read_all(rows, u64(line) * n_rows, min((group + u64(1)) * u64(GROUP) * n_rows, u64(len(rows))))


@kernel
def read_all(words, start, stop):
    """Bring words[start:stop] into the cache; both begin a cache line."""
    for p in range(start, stop, u64(8)):
        prefetch(words, p + u64(8 * AHEAD))
        touch(words, p)


@kernel
def and_piece(part, batch, line, start, n):
    """AND the bitmaps of n listed events from ``start`` on, in a line; returns how many are left.

    Writes the bits of the i-th of them to ``words``, and i to ``done`` unless no bit is left.
    """
    pool, maps, words, done, listed = part.pool, batch.maps, batch.words, batch.done, batch.listed
    n_map, n_maps = u64(n_map_words(part.n)), u64(len(maps) // len(listed))
    at = place_of_line(line, u64(n_group_words(part.n, part.edges.shape[0])))
    n_first = min(n_maps, u64(AT_FIRST))
    n_left = k = u64(0)
    for i in range(n):
        e = u64(listed[start + i])
        done[n_left] = i
        n_left += and_many(pool, n_map, at, maps, e * n_maps, n_first, words, u64(8) * i)
    n_more = n_maps - n_first
    for t in range(n_left):
        i = u64(done[t])
        e = u64(listed[start + i])
        done[k] = i
        k += and_more(pool, n_map, at, maps, e * n_maps + n_first, n_more, words, u64(8) * i)
    return k


@kernel
def collect_piece(batch, start, n_done):
    """List the bits of the events done into ``candidates``; returns how many. O(events + bits)."""
    words, done, listed, full, places = (
        batch.words, batch.done, batch.listed, batch.full, batch.places,
    )  # fmt: skip
    n_full = k = u64(0)
    for t in range(n_done):
        i = u64(done[t])
        base = u64(listed[start + i]) * u64(LINE)
        n_full = list_words(words, u64(8) * i, base, full, places, n_full)
    for t in range(n_full):
        k = list_bits(full[t], places[t], batch.candidates, k)
    return k


@kernel
def judge_piece(rows, batch, line, n, n_words):
    """Write the misfits of n candidates of a line, and some after them. O(n x W)."""
    candidates, misfits, keys = batch.candidates, batch.misfits, batch.keys
    first = line * u64(LINE)
    for i in range(n):
        e, p = u64(candidates[i]) // u64(LINE), first + u64(candidates[i]) % u64(LINE)
        misfits[i] = misfits_of(rows, p * n_words, keys, e * u64(2) * n_words)
    if n_words > u64(4):
        for i in range(n):
            e, p = u64(candidates[i]) // u64(LINE), first + u64(candidates[i]) % u64(LINE)
            misfits[i] |= misfits_beyond(rows, p * n_words, keys, e, n_words)
    for i in range(n, n + u64(LANES)):
        misfits[i] = 255


@kernel
def verify_piece(rows, batch, asked, found, told):
    """Append the slots of the candidates that match for certain to ``found``, a run per event.

    ``asked``: the line, how many candidates there are, W; ``told``: how many slots, runs and ties
    there were. Writes to ``ties`` the candidates that only exact bounds decide. Returns the new
    ``told``. O(candidates x M).
    """
    candidates, misfits, kept, ties = batch.candidates, batch.misfits, batch.kept, batch.ties
    slots, runs = found.slots, found.runs
    line, n, n_words = asked
    n_slots, last, n_ties = told[0], told[1] - u64(1), told[2]
    first = line * u64(LINE)
    judge_piece(rows, batch, line, n, n_words)
    n_kept = u64(0)
    for i in range(u64(0), n, u64(LANES)):
        n_kept = keep_certain(candidates, misfits, i, kept, n_kept)
    before = u64(LOW)
    for i in range(n_kept):
        e, p = u64(kept[i]) // u64(LINE), first + u64(kept[i]) % u64(LINE)
        slots[n_slots] = slot_in(rows, p * n_words)
        n_slots += u64(1)
        last += u64(e != before)
        before = e
        runs[last] = (e << u64(32)) | n_slots
    n_kept = u64(0)
    for i in range(u64(0), n, u64(LANES)):
        n_kept = keep_tied(candidates, misfits, i, kept, n_kept)
    for i in range(n_kept):
        e, p = u64(kept[i]) // u64(LINE), first + u64(kept[i]) % u64(LINE)
        ties[n_ties] = (e << u64(32)) | p
        n_ties += u64(1)
    return n_slots, last + u64(1), n_ties


@kernel
def misfits_beyond(rows, p, keys, e, n_words):
    """``misfits_of`` the words of a row after the fourth: bit 0 "possible", bit 4 "certain"."""
    k = e * u64(2) * n_words
    possible = certain = u64(0)
    for w in range(u64(4), n_words):
        possible |= rows[p + w] + keys[k + u64(4) + w]
        certain |= rows[p + w] + keys[k + n_words + w]
    return np.int64(possible & u64(GUARD) != u64(0)) | np.int64(certain & u64(GUARD) != u64(0)) << 4


@inlined
def tied_fields(rows, p, keys, e, n_words, w):
    """The fields of word w of a row whose codes tie with event e's, as guard bits."""
    certain = e * u64(2) * n_words + w + (u64(4) if w < u64(4) else n_words)
    return (rows[p + w] + keys[certain]) & u64(GUARD)


@kernel
def touch_ties(part, batch, first, last):
    """Ask for the exact bounds of some of the ``ties``."""
    rows, bounds, keys, ties = part.rows, part.bounds, batch.keys, batch.ties
    m = u64(part.edges.shape[0])
    n_words = u64(len(keys) // (2 * len(batch.listed)))
    for i in range(first, last):
        e, p = ties[i] >> u64(32), (ties[i] & u64(LOW)) * n_words
        at = u64(slot_in(rows, p)) * (u64(2) * m)
        for w in range(n_words):
            tied = tied_fields(rows, p, keys, e, n_words, w)
            while tied:
                f = w * u64(FIELDS) + u64(trailing_zeros(tied)) // u64(FIELD_BITS)
                tied &= tied - u64(1)
                prefetch(bounds, at + f)


@kernel
def settle_ties(part, batch, events, n_ties, found, n_slots, n_runs):
    """Append the slots of the ties that match, each a run; returns how many slots, runs there are.

    O(n_ties x M).
    """
    rows, bounds, keys, ties = part.rows, part.bounds, batch.keys, batch.ties
    m = u64(part.edges.shape[0])
    n_words = u64(len(keys) // (2 * len(batch.listed)))
    for i in range(n_ties):
        e, p = ties[i] >> u64(32), (ties[i] & u64(LOW)) * n_words
        slot = slot_in(rows, p)
        holds = True
        for w in range(n_words):
            tied = tied_fields(rows, p, keys, e, n_words, w)
            while tied:
                f = w * u64(FIELDS) + u64(trailing_zeros(tied)) // u64(FIELD_BITS)
                tied &= tied - u64(1)
                x, bound = events[e, f >> u64(1)], bounds[u64(slot) * (u64(2) * m) + f]
                holds &= (x <= bound) if f & u64(1) else (bound <= x)
        found.slots[n_slots] = slot
        n_slots += u64(holds)
        found.runs[n_runs] = (e << u64(32)) | n_slots
        n_runs += u64(holds)
    return n_slots, n_runs


@kernel
def count_runs(found, n_runs, counts):
    """Add the slots of each event to counts: i8[E]. O(n_runs)."""
    for i in range(u64(1), u64(n_runs)):
        n = (found.runs[i] & u64(LOW)) - (found.runs[i - u64(1)] & u64(LOW))
        counts[found.runs[i] >> u64(32)] += np.int64(n)


@kernel
def place_runs(found, n_runs, ends, out):
    """Write the slots of event e to out: i4 from ends[e] on: i8[E], which moves on. O(slots)."""
    for i in range(u64(1), u64(n_runs)):
        start = found.runs[i - u64(1)] & u64(LOW)
        n = (found.runs[i] & u64(LOW)) - start
        e = found.runs[i] >> u64(32)
        move_run(found.slots, start, n, out, u64(ends[e]))
        ends[e] += np.int64(n)
