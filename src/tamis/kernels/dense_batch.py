"""Dense boxes, matched by many events at once: line by line instead of event by event.

All the bits and rows of a line fit the first caches. So for each line in turn, every event that
may match there is taken through the steps of ``dense_match``, and what one event fetched serves
the others. Results come as pairs, in the order of lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64
from numba.cpython.unsafe.numbers import trailing_zeros

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.dense_build import LINE, DensePart, row_words
from tamis.kernels.dense_lines import and_one, and_three, set_words, slot_in
from tamis.kernels.dense_match import (
    AT_ONCE,
    CHUNK,
    PLAN_NEED,
    PLAN_OFFSET,
    compare,
    open_part,
    open_work,
    prepare,
    settle_tie,
    touch_ties,
)
from tamis.kernels.memory import aligned_zeros, prefetch

AHEAD = 8  # lines whose bits are fetched together


class Batch(NamedTuple):
    """What is known of E events before any line is looked at."""

    offsets: Array  # u4[E, M + AT_ONCE] where their bitmaps begin in the pool, rarest first
    needs: Array  # i4[E, M + AT_ONCE] bits a line must have left for the bitmap to pay
    keys: Array  # u8[E, 2, W] as Work.keys
    alive: Array  # u8[LW, E] bit l % 64 of [l // 64, e]: line l may hold a match of event e
    used: Array  # u4[U], ascending: every offset that there is


class Lane(NamedTuple):
    """Scratch for one line: the events that are ANDed still, and those ready to be verified."""

    events: Array  # i4[E + 1]
    words: Array  # u8[E*8 + 8] their bits
    done_events: Array  # i4[E + 1]
    done_words: Array  # u8[E*8 + 8]
    candidates: Array  # u4[CHUNK + LINE] positions
    owners: Array  # i4[CHUNK + LINE] the events of candidates, then of ties


class Pairs(NamedTuple):
    """Slots, and the events that match them."""

    slots: Array  # i4[>= E*LINE]
    events: Array  # i4[>= E*LINE]


def new_batch(handle: Array, part: DensePart, events: Array) -> Batch:
    """What is known of events: f8[E, M]."""
    m, n_events = part.edges.shape[0], len(events)
    batch = Batch(
        np.empty((n_events, m + AT_ONCE), np.uint32),
        np.empty((n_events, m + AT_ONCE), np.int32),
        np.empty((n_events, 2, row_words(m)), np.uint64),
        np.empty((part.coarse.shape[2], n_events), np.uint64),
        np.empty(0, np.uint32),
    )
    plan_batch(handle, events, batch)
    return batch._replace(used=np.unique(batch.offsets))


def new_lane(n_events: int) -> Lane:
    """Scratch for so many events."""
    return Lane(
        np.empty(n_events + 1, np.int32),
        aligned_zeros(8 * n_events + 8, np.uint64),
        np.empty(n_events + 1, np.int32),
        aligned_zeros(8 * n_events + 8, np.uint64),
        np.empty(CHUNK + LINE, np.uint32),
        np.empty(CHUNK + LINE, np.int32),
    )


@kernel
def plan_batch(handle, events, batch):
    """Fill ``batch``, but for ``used``, for events: f8[E, M]. O(E x (M + lines / 64))."""
    work = open_work(handle)
    plan, keys, alive = work.plan, work.keys, work.done_words
    for e in range(len(events)):
        prepare(handle, events[e])
        for j in range(plan.shape[1]):
            batch.offsets[e, j] = plan[PLAN_OFFSET, j]
            batch.needs[e, j] = plan[PLAN_NEED, j]
        for w in range(keys.shape[1]):
            batch.keys[e, 0, w] = keys[0, w]
            batch.keys[e, 1, w] = keys[1, w]
        for w in range(batch.alive.shape[0]):
            batch.alive[w, e] = alive[w]


@inlined
def list_events(alive, line, listed):
    """Numbers of the events that may match in a line, into listed; returns how many."""
    w, shift = line >> 6, u64(line & 63)
    k = 0
    for e in range(alive.shape[1]):
        listed[k] = e
        k += np.int64((alive[w, e] >> shift) & u64(1))
    return k


@inlined
def fetch_next(part, batch, line, start, stop):
    """Ask for a share of what the next lines need: steps ``start`` to ``stop``.

    The bits of the next AHEAD lines lie side by side in every bitmap: each line asks for those of
    a part of the bitmaps. Rows are asked for a line ahead.
    """
    n_used = len(batch.used)
    at = u64(8) * u64(line // AHEAD * AHEAD + AHEAD)
    first = (line % AHEAD) * n_used  # of AHEAD * n_used steps
    row = u64(line + 1) * u64(LINE * batch.keys.shape[2])
    for step in range(start, stop):
        if step < n_used:
            t = u64(first + step)
            where = u64(batch.used[t // u64(AHEAD)]) + at + u64(8) * (t % u64(AHEAD))
            prefetch(part.pool, where)
        else:
            prefetch(part.rows, row + u64(8) * u64(step - n_used))


@inlined
def and_first(part, batch, lane, line, n_events):
    """AND the AT_ONCE rarest attributes of each listed event; returns events left, events done."""
    pool, offsets, needs = part.pool, batch.offsets, batch.needs
    events, done_events = lane.events, lane.done_events
    at = u64(8) * u64(line)
    n_steps = len(batch.used) + LINE * batch.keys.shape[2] // 8
    share = n_steps // max(1, n_events) + 1
    k = d = step = 0
    for i in range(n_events):
        fetch_next(part, batch, line, step, min(n_steps, step + share))
        step = min(n_steps, step + share)
        e = events[i]
        p = at + u64(offsets[e, 0])
        q = at + u64(offsets[e, 1])
        r = at + u64(offsets[e, 2])
        bits = and_three(pool, p, q, r, lane.words, u64(8 * k), lane.done_words, u64(8 * d))
        events[k] = done_events[d] = e
        is_left = np.int64(bits >= needs[e, AT_ONCE])
        k += is_left
        d += np.int64(bits > 0) - is_left
    return k, d


@inlined
def and_next(pool, batch, lane, line, j, n_events, d):
    """AND the j-th attribute of each event left; returns events left, events done."""
    offsets, needs = batch.offsets, batch.needs
    events, done_events, words = lane.events, lane.done_events, lane.words
    at = u64(8) * u64(line)
    k = 0
    for i in range(n_events):
        e = events[i]
        p = at + u64(offsets[e, j])
        bits = and_one(pool, p, words, u64(8 * i), u64(8 * k), lane.done_words, u64(8 * d))
        events[k] = done_events[d] = e
        is_left = np.int64(bits >= needs[e, j + 1])
        k += is_left
        d += np.int64(bits > 0) - is_left
    return k, d


@inlined
def collect(lane, line, i, n_done):
    """List the bits of the events done from the i-th on, until CHUNK; returns next i, how many."""
    words, candidates, owners = lane.done_words, lane.candidates, lane.owners
    k = 0
    while i < n_done and k < CHUNK:
        e = lane.done_events[i]
        at = u64(8) * u64(i)
        is_set = set_words(words, at)
        while is_set:
            w = u64(trailing_zeros(is_set))
            place = u64(line) * u64(LINE) + w * u64(64)
            word = words[at + w]
            while word:
                candidates[k] = place + u64(trailing_zeros(word))
                owners[k] = e
                k += 1
                word &= word - u64(1)
            is_set &= is_set - u64(1)
        i += 1
    return i, k


@inlined
def verify(part, events, batch, lane, n_candidates, pairs, n_pairs):
    """Append the candidates that match to pairs; returns how many there are."""
    rows, keys, candidates, owners = part.rows, batch.keys.reshape(-1), lane.candidates, lane.owners
    n_words = u64(batch.keys.shape[2])
    n_ties = 0
    for i in range(n_candidates):
        e, position = owners[i], candidates[i]
        p, k = u64(position) * n_words, u64(e) * u64(2) * n_words
        fits = compare(rows, p, keys, k, n_words)
        pairs.slots[n_pairs] = slot_in(rows, p)
        pairs.events[n_pairs] = owners[n_ties] = e
        candidates[n_ties] = position
        n_pairs += np.int64(fits == 3)
        n_ties += np.int64(fits == 1)
    for i in range(n_ties):
        k = u64(owners[i]) * u64(2) * n_words
        touch_ties(part, keys, k, n_words, u64(candidates[i]) * n_words)
    for i in range(n_ties):
        e, p = owners[i], u64(candidates[i]) * n_words
        k = u64(e) * u64(2) * n_words
        pairs.slots[n_pairs], pairs.events[n_pairs] = slot_in(rows, p), e
        n_pairs += np.int64(settle_tie(part, events[e], keys, k, n_words, p))
    return n_pairs


@kernel
def match_lines(handle, events, batch, lane, line, pairs):
    """Write the matches of events: f8[E, M] in lines from ``line`` on, while there is room.

    Returns the next line and the number of pairs.
    O(lines x E / 8 + pairs of line and event alive x attributes + matches).
    """
    part = open_part(handle)
    n_lines = (part.n + LINE - 1) // LINE
    n_pairs = 0
    while line < n_lines:
        n_events = list_events(batch.alive, line, lane.events)
        if n_pairs + n_events * LINE > len(pairs.slots):
            break
        n_events, n_done = and_first(part, batch, lane, line, n_events)
        j = AT_ONCE
        while n_events:
            n_events, n_done = and_next(part.pool, batch, lane, line, j, n_events, n_done)
            j += 1
        i = 0
        while i < n_done:
            i, n_candidates = collect(lane, line, i, n_done)
            n_pairs = verify(part, events, batch, lane, n_candidates, pairs, n_pairs)
        line += 1
    return line, n_pairs
