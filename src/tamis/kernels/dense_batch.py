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

import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numba import uint64 as u64

from tamis.kernels.bit_lines import MANY, list_bits, list_words
from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.dense_batch_scratch import (
    ALIVE,
    FULL,
    LISTED,
    MANY_TIES,
    MAPS,
    PIECE,
    PLACES,
    open_bits,
    open_candidates,
    open_keys,
    open_left,
    open_numbers,
    open_ties,
)
from tamis.kernels.dense_batch_vectors import (
    and_many,
    and_more,
    end_runs,
    move_run,
    touch,
)
from tamis.kernels.dense_build import (
    GROUP,
    LINE,
    n_group_words,
    n_map_words,
    place_of_line,
)
from tamis.kernels.dense_fit import (
    WORDS_OF_BITS,
    field_of,
    misfits_beyond,
    misfits_of,
    slot_in,
    tied_bits,
)
from tamis.kernels.dense_match import and_first, and_next, collect, list_lines, prepare
from tamis.kernels.dense_scratch import (
    AT_ONCE,
    PLAN_OFFSET,
    open_lines,
    open_part,
    open_rows,
    open_work,
)
from tamis.kernels.keeping import LANES, keep_certain, keep_tied
from tamis.kernels.memory import prefetch, u2_at, u4_at, u8_at

AHEAD = 64  # how far ahead to prefetch, in cache lines
FEW = 64  # events that a line is alive for: for fewer it is not read whole
AT_FIRST = 6  # attributes that are ANDed before it is asked whether a bit is left; even
MAX_MAPS = 1 << 16  # bitmaps that can be told apart by number
LOW = 0xFFFFFFFF  # the lower half of a word


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
        for w in range(2 * n_words):
            batch.keys[2 * n_words * e + w] = work.keys[w]
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

    ``batch`` is the handle of theirs. Stops at a line when ``found`` might not have room for it.
    Returns the line to go on with and how many runs there are, the first, empty one included.
    O(lines x (bitmaps + LINE) + lines alive x M + matches).
    """
    slots, runs = found.slots, found.runs
    n_lines = (handle[0] + LINE - 1) // LINE
    n_slots, n_runs = u64(0), u64(1)
    runs[0] = u64(0)
    line, is_read = first, False
    while line < n_lines:
        n_listed = list_events(batch, line)
        if max(n_slots, n_runs) + n_listed * u64(LINE + 1) > u64(len(runs)):
            break
        if n_listed < u64(FEW):
            is_read = False
            ask_for_maps(handle, batch, line, n_listed)
        elif not is_read or line % GROUP == 0:  # unless it was read with the line before
            is_read = True
            read_group(handle, line)
        n_ties = u64(0)
        for start in range(u64(0), n_listed, u64(PIECE)):
            n_done = and_piece(handle, batch, line, start, min(u64(PIECE), n_listed - start))
            n_candidates = collect_piece(batch, start, n_done)
            if not is_read:
                ask_for_rows(handle, batch, u64(line), n_candidates)
            judge_piece(handle, batch, u64(line), n_candidates)
            n_slots, n_runs = keep_piece(batch, n_candidates, slots, runs, (n_slots, n_runs))
            before = n_ties
            n_ties = tie_piece(batch, u64(line), n_candidates, n_ties)
            touch_ties(handle, batch, before, n_ties)
            if n_ties >= u64(MANY_TIES) or start + u64(PIECE) >= n_listed:
                n_slots, n_runs = settle_ties(
                    handle, batch, events, n_ties, slots, runs, (n_slots, n_runs)
                )
                n_ties = u64(0)
        line += 1
    return line, np.int64(n_runs)


@kernel
def list_events(batch, line):
    """Numbers of the events that a line is alive for, into ``listed``; returns how many."""
    n_words = u64(batch[2])
    alive = carray(u8_at(batch[ALIVE]), ((line + 1) * batch[2],))
    listed = carray(u4_at(batch[LISTED]), (batch[0] + MANY,))
    k, first = u64(0), u64(line) * n_words
    for w in range(n_words):
        k = list_bits(alive[first + w], u64(64) * w, listed, k)
    return k


@kernel
def ask_for_maps(handle, batch, line, n):
    """Ask for what n listed events look at of the bitmaps of a line. O(n x M)."""
    pool, n_map, n_maps = open_lines(handle).pool, u64(n_map_words(handle[0])), u64(batch[1])
    maps = carray(u2_at(batch[MAPS]), (batch[0] * batch[1],))
    listed, _, _ = open_bits(batch)
    at = place_of_line(line, u64(n_group_words(handle[0], handle[1])))
    for i in range(n):
        e = u64(listed[i])
        for j in range(e * n_maps, (e + u64(1)) * n_maps):
            prefetch(pool, u64(maps[j]) * n_map + at)


@kernel
def ask_for_rows(handle, batch, line, n):
    """Ask for the rows of n candidates of a line. O(n)."""
    rows, n_words = open_rows(handle).rows, u64(handle[2])
    candidates, _, _ = open_candidates(batch)
    first = line * u64(LINE)
    for i in range(n):
        prefetch(rows, (first + u64(candidates[i]) % u64(LINE)) * n_words)


@kernel
def read_group(handle, line):
    """Bring the bitmaps and rows of a group of lines, rows from ``line`` on, into the cache.

    Prefetching alone would be dropped, loading alone wait: together they get all that memory gives.
    """
    pool, rows = open_lines(handle).pool, open_rows(handle).rows
    n_pool, n_rows = u64(n_group_words(handle[0], handle[1])), u64(LINE * handle[2])
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
def and_piece(handle, batch, line, start, n):
    """AND the bitmaps of n listed events from ``start`` on, in a line; returns how many are left.

    Writes the bits of the i-th of them to ``words``, and i to ``done`` unless no bit is left.
    Where to write i is known late, and what is read next would wait for that: so it is only
    noted whether a bit is left, and told later who has one.
    """
    pool, n_map, n_maps = open_lines(handle).pool, u64(n_map_words(handle[0])), u64(batch[1])
    maps = carray(u2_at(batch[MAPS]), (batch[0] * batch[1],))
    listed, words, done = open_bits(batch)
    every, is_out = open_left(batch)
    at = place_of_line(line, u64(n_group_words(handle[0], handle[1])))
    n_first = min(n_maps, u64(AT_FIRST))
    for i in range(n):
        e = u64(listed[start + i])
        is_out[i] = and_many(pool, n_map, at, maps, e * n_maps, n_first, words, u64(8) * i)
    n_left = keep_left(every, is_out, n, done)
    n_more = n_maps - n_first
    for t in range(n_left):
        i = u64(done[t])
        e = u64(listed[start + i])
        is_out[t] = and_more(
            pool, n_map, at, maps, e * n_maps + n_first, n_more, words, u64(8) * i
        )  # fmt: skip
    return keep_left(done, is_out, n_left, done)


@inlined
def keep_left(numbers, is_out, n, out):
    """Write those of n numbers that are not out to ``out``, which may be ``numbers``; how many."""
    for i in range(n, n + u64(LANES)):
        is_out[i] = 1
    k = u64(0)
    for i in range(u64(0), n, u64(LANES)):
        k = keep_certain(numbers, is_out, i, out, k)
    return k


@kernel
def collect_piece(batch, start, n_done):
    """List the bits of the events done into ``candidates``; returns how many. O(events + bits)."""
    listed, words, done = open_bits(batch)
    full = carray(u8_at(batch[FULL]), (8 * PIECE + 8,))
    places = carray(u8_at(batch[PLACES]), (8 * PIECE + 8,))
    candidates, _, _ = open_candidates(batch)
    n_full = k = u64(0)
    for t in range(n_done):
        i = u64(done[t])
        base = u64(listed[start + i]) * u64(LINE)
        n_full = list_words(words, u64(8) * i, base, full, places, n_full)
    for t in range(n_full):
        k = list_bits(full[t], places[t], candidates, k)
    return k


@kernel
def judge_piece(handle, batch, line, n):
    """Write the misfits of n candidates of a line, and some after them, and slots. O(n x W)."""
    rows, n_words = open_rows(handle).rows, u64(handle[2])
    keys, numbers = open_keys(batch, handle[2]), open_numbers(batch)
    candidates, misfits, _ = open_candidates(batch)
    first = line * u64(LINE)
    for i in range(n):
        e, p = u64(candidates[i]) // u64(LINE), first + u64(candidates[i]) % u64(LINE)
        misfits[i] = misfits_of(rows, p * n_words, keys, e * u64(2) * n_words)
        numbers[i] = slot_in(rows, p * n_words)
    if n_words > u64(4):
        for i in range(n):
            e, p = u64(candidates[i]) // u64(LINE), first + u64(candidates[i]) % u64(LINE)
            misfits[i] |= misfits_beyond(rows, p * n_words, keys, e * u64(2) * n_words, n_words)
    for i in range(n, n + u64(LANES)):
        misfits[i] = 255


@kernel
def keep_piece(batch, n, slots, runs, told):
    """Append the slots of those of n candidates that match for certain to what was found.

    ``told``: how many slots and runs there were. Returns how many there are now. O(candidates).
    """
    candidates, misfits, kept = open_candidates(batch)
    numbers = open_numbers(batch)
    n_slots, n_runs = told
    n_kept = u64(0)
    for i in range(u64(0), n, u64(LANES)):
        prefetch(slots, n_slots + n_kept + u64(128))
        keep_certain(numbers, misfits, i, slots, n_slots + n_kept)
        n_kept = keep_certain(candidates, misfits, i, kept, n_kept)
    for i in range(n_kept, n_kept + u64(LANES + 1)):
        kept[i] = LOW  # of no event
    for i in range(u64(0), n_kept, u64(LANES)):
        n_runs = end_runs(kept, i, n_slots, runs, n_runs)
    return n_slots + n_kept, n_runs


@kernel
def tie_piece(batch, line, n, n_ties):
    """Append those of n candidates that only exact bounds decide to ``ties``; returns how many."""
    candidates, misfits, kept = open_candidates(batch)
    ties = open_ties(batch)
    first = line * u64(LINE)
    n_kept = u64(0)
    for i in range(u64(0), n, u64(LANES)):
        n_kept = keep_tied(candidates, misfits, i, kept, n_kept)
    for i in range(n_kept):
        e, p = u64(kept[i]) // u64(LINE), first + u64(kept[i]) % u64(LINE)
        ties[n_ties] = (e << u64(32)) | p
        n_ties += u64(1)
    return n_ties


@kernel
def touch_ties(handle, batch, first, last):
    """Ask for the exact bounds of some of the ``ties``."""
    held, m, n_words = open_rows(handle), u64(handle[1]), u64(handle[2])
    keys, ties = open_keys(batch, handle[2]), open_ties(batch)
    for i in range(first, last):
        e, p = ties[i] >> u64(32), (ties[i] & u64(LOW)) * n_words
        at = u64(slot_in(held.rows, p)) * (u64(2) * m)
        for w in range(u64(0), n_words, u64(WORDS_OF_BITS)):
            bits = tied_bits(held.rows, p, keys, e * u64(2) * n_words, n_words, w)
            while bits:
                prefetch(held.bounds, at + field_of(bits, w))
                bits &= bits - u64(1)


@kernel
def settle_ties(handle, batch, events, n_ties, slots, runs, told):
    """Append the slots of the ties that match, each a run; returns how many slots, runs there are.

    ``told``: how many there were. O(n_ties x M).
    """
    held, m, n_words = open_rows(handle), u64(handle[1]), u64(handle[2])
    keys, ties = open_keys(batch, handle[2]), open_ties(batch)
    n_slots, n_runs = told
    for i in range(n_ties):
        e, p = ties[i] >> u64(32), (ties[i] & u64(LOW)) * n_words
        slot = slot_in(held.rows, p)
        holds = True
        for w in range(u64(0), n_words, u64(WORDS_OF_BITS)):
            bits = tied_bits(held.rows, p, keys, e * u64(2) * n_words, n_words, w)
            while bits:
                f = field_of(bits, w)
                bits &= bits - u64(1)
                x, bound = events[e, f >> u64(1)], held.bounds[u64(slot) * (u64(2) * m) + f]
                holds &= (x <= bound) if f & u64(1) else (bound <= x)
        slots[n_slots] = slot
        n_slots += u64(holds)
        runs[n_runs] = (e << u64(32)) | n_slots
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
        at = u64(ends[e])
        move_run(found.slots, start, n, out, at)
        prefetch(out, at + n + u64(32))
        ends[e] += np.int64(n)
