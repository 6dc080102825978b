"""Dense boxes, matched: one event, or a few one after another.

An event

1. keeps the lines that some box of theirs could match (coarse bitmaps over lines, in cache);
2. ANDs the bitmaps of those lines, rarest attribute first, each line until verifying what is
   left of it costs less;
3. verifies candidates on one row of packed codes each, all attributes in an addition or a few;
4. settles the few whose code ties with the event's on the exact bound.

No step branches on data in memory, and each prefetches: what counts is that cache misses overlap.
The loops over lines and candidates are kernels of their own, which open the handle themselves:
inlined into one another they kept counters and addresses on the stack, a tenth of the time.
"""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

from tamis.kernels.bit_lines import list_bits, list_words
from tamis.kernels.compiled import inlined, kernel
from tamis.kernels.dense_build import (
    FIELD_BITS,
    FIELDS,
    GUARD,
    LINE,
    N_BUCKETS,
    N_COARSE,
    N_RANKS,
    bucket_of,
    n_map_words,
    place_of_line,
)
from tamis.kernels.dense_fit import (
    WORDS_OF_BITS,
    certain_key,
    field_of,
    misfits_beyond,
    misfits_of,
    possible_key,
    slot_in,
    tied_bits,
)
from tamis.kernels.dense_lines import and_three, and_two
from tamis.kernels.dense_scratch import (
    AT_ONCE,
    CHUNK,
    PLAN_BUCKET,
    PLAN_COARSE,
    PLAN_MORE,
    PLAN_NEED,
    PLAN_OFFSET,
    PLAN_ORDER,
    TOP_STEP,
    open_lines,
    open_part,
    open_rows,
    open_work,
)
from tamis.kernels.keeping import LANES, keep_certain, keep_tied
from tamis.kernels.memory import prefetch

ALL_CODES = GUARD - (GUARD >> (FIELD_BITS - 1))  # the highest code in every field
LOADS_PER_ROW = 1.25  # verifying a candidate costs as much as ANDing so many lines
LINES_AHEAD, ROWS_AHEAD = 96, 256  # how far ahead to prefetch


@kernel
def prepare(handle, event):
    """Fill the plan, the keys and the bitmap of lines (``alive``) for event: f8[M].

    Returns how many attributes exclude anything, at least 1.
    """
    part, work = open_part(handle), open_work(handle)
    encode_event(part, event, work)
    n_used = order_attributes(part, work)
    and_coarse(part, work)
    return n_used


@inlined
def rank_event(part, event, work):
    """Write to ``PLAN_BUCKET`` how many edges of each attribute are at most the event's value.

    ``rank_of`` for all attributes at once: their misses overlap. What the last steps look at is
    asked for when the first ones, in ``tops``, have told where it is.
    """
    plan, edges, tops = work.plan, part.edges, work.tops
    m = len(event)
    plan[PLAN_BUCKET, :] = 0
    step = N_RANKS >> 1
    while step >= TOP_STEP:
        for a in range(m):
            k = plan[PLAN_BUCKET, a]
            is_above = tops[a, (k + step - 1) // TOP_STEP] <= event[a]
            plan[PLAN_BUCKET, a] = k + (step if is_above else 0)
        step >>= 1
    for a in range(m):
        k = plan[PLAN_BUCKET, a]
        for i in range(0, TOP_STEP, 8):
            prefetch(edges, u64(a * N_RANKS + k + i))
        for side in range(2):
            prefetch(part.codes, u64((2 * a + side) * N_RANKS + k + 1))
    while step:
        for a in range(m):
            k = plan[PLAN_BUCKET, a]
            plan[PLAN_BUCKET, a] = k + (step if edges[a, k + step - 1] <= event[a] else 0)
        step >>= 1


@inlined
def encode_event(part, event, work):
    """Fill the buckets of the plan, and the keys."""
    plan, keys, coarse = work.plan, work.keys, part.coarse
    n_words_of_row = u64(len(keys) // 2)
    for w in range(len(keys)):  # a missing value: only code 0 passes
        keys[w] = u64(ALL_CODES)
    rank_event(part, event, work)
    n_words = coarse.shape[2]
    for a in range(len(event)):
        if np.isnan(event[a]):
            plan[PLAN_BUCKET, a], plan[PLAN_COARSE, a] = N_BUCKETS, N_COARSE
            continue
        rank = 1 + plan[PLAN_BUCKET, a]
        plan[PLAN_BUCKET, a] = bucket_of(rank, N_BUCKETS)
        plan[PLAN_COARSE, a] = bucket_of(rank, N_COARSE)
        at = (a * (N_COARSE + 1) + plan[PLAN_COARSE, a]) * n_words
        for w in range(0, n_words, 8):
            prefetch(coarse, u64(at + w))
        for side in range(2):
            f = 2 * a + side
            code = part.codes[a, side, rank]
            shift = u64(f % FIELDS * FIELD_BITS)
            w = u64(f // FIELDS)
            keys[possible_key(w, n_words_of_row)] -= u64(code) << shift
            keys[certain_key(w, n_words_of_row)] -= u64(code - part.slack[a]) << shift


@inlined
def and_coarse(part, work):
    """Write to ``alive``, bit l: line l may hold a match."""
    coarse, alive, plan = part.coarse, work.alive, work.plan
    n_words = coarse.shape[2]
    for w in range(n_words):
        alive[w] = coarse[0, plan[PLAN_COARSE, 0], w]
    for a in range(1, coarse.shape[0]):
        c = plan[PLAN_COARSE, a]
        for w in range(n_words):
            alive[w] &= coarse[a, c, w]


@inlined
def order_attributes(part, work):
    """Order the attributes that exclude anything, rarest bucket first; returns how many, >= 1.

    Of the k-th, ``PLAN_OFFSET`` is where its bitmap begins in each group, ``PLAN_NEED`` how many
    bits a line must have left for it to pay. Beyond the last none pays.
    """
    plan, counts = work.plan, part.counts
    n_words = n_map_words(part.n)
    m = counts.shape[0]
    k = 0
    for a in range(m):
        count = counts[a, plan[PLAN_BUCKET, a]]
        if count == part.n and (k > 0 or a < m - 1):
            continue
        j = k
        while (
            j > 0
            and counts[plan[PLAN_ORDER, j - 1], plan[PLAN_BUCKET, plan[PLAN_ORDER, j - 1]]] > count
        ):
            plan[PLAN_ORDER, j] = plan[PLAN_ORDER, j - 1]
            j -= 1
        plan[PLAN_ORDER, j] = a
        k += 1
    for j in range(k):
        a = plan[PLAN_ORDER, j]
        count = counts[a, plan[PLAN_BUCKET, a]]
        plan[PLAN_OFFSET, j] = (a * (N_BUCKETS + 1) + plan[PLAN_BUCKET, a]) * n_words
        spared = LOADS_PER_ROW * (1.0 - count / part.n)  # loads, for each bit
        plan[PLAN_NEED, j] = LINE if spared * LINE < 1.0 else np.int64(np.ceil(1.0 / spared))
    for j in range(k, m + PLAN_MORE):
        plan[PLAN_OFFSET, j] = plan[PLAN_OFFSET, 0]
        plan[PLAN_NEED, j] = LINE + 1
    return k


@kernel
def list_lines(handle):
    """Numbers of the lines that ``prepare`` left, into lines; returns how many.

    Asks for the bits of the first LINES_AHEAD, which ``and_first`` will look at.
    """
    held = open_lines(handle)
    pool, alive, lines, plan = held.pool, held.alive, held.lines, held.plan
    k = u64(0)
    for w in range(u64(len(alive))):
        k = list_bits(alive[w], u64(64) * w, lines, k)
    for i in range(min(k, u64(LINES_AHEAD))):
        at = place_of_line(lines[i], held.n_words)
        for j in range(AT_ONCE):
            prefetch(pool, u64(plan[PLAN_OFFSET, j]) + at)
    return np.int64(k)


@kernel
def and_first(handle, n_lines):
    """AND the AT_ONCE rarest attributes of the listed lines; returns lines left, lines done.

    Writes the bits of the i-th line listed to ``words``, and i to ``left`` or, if the next
    attribute does not pay, to ``done``; nowhere if no bit is left. O(n_lines).
    """
    held = open_lines(handle)
    pool, plan = held.pool, held.plan
    lines, words, left, done = held.lines, held.words, held.left, held.done
    p, q, r = u64(plan[PLAN_OFFSET, 0]), u64(plan[PLAN_OFFSET, 1]), u64(plan[PLAN_OFFSET, 2])
    next_p, next_q = u64(plan[PLAN_OFFSET, AT_ONCE]), u64(plan[PLAN_OFFSET, AT_ONCE + 1])
    need = plan[PLAN_NEED, AT_ONCE]
    k = d = u64(0)
    last = u64(n_lines - 1)
    for i in range(u64(n_lines)):
        ahead = place_of_line(lines[min(i + u64(LINES_AHEAD), last)], held.n_words)
        prefetch(pool, p + ahead)
        prefetch(pool, q + ahead)
        prefetch(pool, r + ahead)
        at = place_of_line(lines[i], held.n_words)
        bits = and_three(pool, p + at, q + at, r + at, words, u64(8) * i)
        left[k] = done[d] = i
        is_left = u64(bits >= need)
        prefetch(pool, at + (next_p if is_left else p))
        prefetch(pool, at + (next_q if is_left else p))
        k += is_left
        d += u64(bits > 0) - is_left
    return k, d


@kernel
def and_next(handle, j, n_left, d):
    """AND the j-th attribute and the next of the lines left; returns lines left, lines done.

    Each line left is asked for in the bitmaps of the two after them, a whole round ahead.
    """
    held = open_lines(handle)
    pool, plan = held.pool, held.plan
    lines, words, left, done = held.lines, held.words, held.left, held.done
    p, q = u64(plan[PLAN_OFFSET, j]), u64(plan[PLAN_OFFSET, j + 1])
    next_p, next_q = u64(plan[PLAN_OFFSET, j + 2]), u64(plan[PLAN_OFFSET, j + 3])
    need = plan[PLAN_NEED, j + 2]
    k = u64(0)
    for t in range(n_left):
        i = u64(left[t])
        at = place_of_line(lines[i], held.n_words)
        bits = and_two(pool, p + at, q + at, words, u64(8) * i)
        left[k] = done[d] = i
        is_left = u64(bits >= need)
        prefetch(pool, at + (next_p if is_left else p))
        prefetch(pool, at + (next_q if is_left else p))
        k += is_left
        d += u64(bits > 0) - is_left
    return k, d


@kernel
def collect(handle, t, n_done):
    """List the bits of the lines done from the t-th on, until CHUNK; returns next t, how many.

    Asks for the rows of the first of these ``candidates``; ``verify`` for those of the others.
    O(lines + candidates).
    """
    held, found = open_lines(handle), open_rows(handle)
    words, candidates, full, places = held.words, found.candidates, found.full, found.places
    n_words = u64(handle[2])
    n_full = k = u64(0)
    while t < n_done and n_full < u64(CHUNK):
        i = u64(held.done[t])
        base = u64(held.lines[i]) * u64(LINE)
        n_full = list_words(words, u64(8) * i, base, full, places, n_full)
        t += u64(1)
    for f in range(n_full):
        k = list_bits(full[f], places[f], candidates, k)
    for i in range(min(k, u64(ROWS_AHEAD))):
        prefetch(found.rows, u64(candidates[i]) * n_words)
    return t, k


@kernel
def verify(handle, n_candidates, n_ties, out, n_out):
    """Append the slots of the candidates that match for certain to out: i4[N + LANES].

    Appends to ``ties`` the candidates that only exact bounds decide. Returns the new length of out,
    and how many ties there are. O(n_candidates x M).
    """
    held = open_rows(handle)
    rows, keys, candidates, ties = held.rows, held.keys, held.candidates, held.ties
    misfits, numbers = held.misfits, held.numbers
    n_words, k = u64(handle[2]), u64(n_out)
    last = n_candidates - u64(1)
    for i in range(n_candidates):
        prefetch(rows, u64(candidates[min(i + u64(ROWS_AHEAD), last)]) * n_words)
        p = u64(candidates[i]) * n_words
        found = misfits_of(rows, p, keys, u64(0))
        if n_words > u64(4):
            found |= misfits_beyond(rows, p, keys, u64(0), n_words)
        misfits[i] = found
        numbers[i] = slot_in(rows, p)
    for i in range(n_candidates, n_candidates + u64(LANES)):
        misfits[i] = 255
    for i in range(u64(0), n_candidates, u64(LANES)):
        k = keep_certain(numbers, misfits, i, out, k)
        n_ties = keep_tied(candidates, misfits, i, ties, n_ties)
    return np.int64(k), n_ties


@kernel
def settle_ties(handle, event, n_ties, out, n_out):
    """Append the slots of the ties that match to out; returns the new length. O(n_ties x M)."""
    held = open_rows(handle)
    m, n_words = u64(handle[1]), u64(handle[2])
    for i in range(n_ties):
        touch_ties(held, m, n_words, u64(held.ties[i]) * n_words)
    for i in range(n_ties):
        p = u64(held.ties[i]) * n_words
        out[n_out] = slot_in(held.rows, p)
        n_out += np.int64(settle_tie(held, event, m, n_words, p))
    return n_out


@inlined
def touch_ties(held, m, n_words, p):
    """Ask for the exact bounds that ``settle_tie`` will look at."""
    at = u64(slot_in(held.rows, p)) * (u64(2) * m)
    for w in range(u64(0), n_words, u64(WORDS_OF_BITS)):
        bits = tied_bits(held.rows, p, held.keys, u64(0), n_words, w)
        while bits:
            prefetch(held.bounds, at + field_of(bits, w))
            bits &= bits - u64(1)


@inlined
def settle_tie(held, event, m, n_words, p):
    """Whether the row from p on matches, by the exact bounds whose codes tie with the event's."""
    at = u64(slot_in(held.rows, p)) * (u64(2) * m)
    holds = True
    for w in range(u64(0), n_words, u64(WORDS_OF_BITS)):
        bits = tied_bits(held.rows, p, held.keys, u64(0), n_words, w)
        while bits:
            f = field_of(bits, w)
            bits &= bits - u64(1)
            x, bound = event[f >> u64(1)], held.bounds[at + f]
            holds &= (x <= bound) if f & u64(1) else (bound <= x)
    return holds


@kernel
def match_one(handle, event, out):
    """Write the slots that match event: f8[M] to out: i4[N + LANES]; returns how many.

    O(lines + lines alive x attributes + matches).
    """
    n_used = prepare(handle, event)
    n_lines = list_lines(handle)
    n_lines, n_done = and_first(handle, n_lines)
    for j in range(AT_ONCE, n_used, 2):
        n_lines, n_done = and_next(handle, j, n_lines, n_done)
    t, n_ties, n_out = u64(0), u64(0), 0
    while t < n_done:
        t, n_candidates = collect(handle, t, n_done)
        n_out, n_ties = verify(handle, n_candidates, n_ties, out, n_out)
        if n_ties >= u64(CHUNK) or t >= n_done:
            n_out = settle_ties(handle, event, n_ties, out, n_out)
            n_ties = u64(0)
    return n_out


@kernel
def match_some(handle, events, first, out, offsets):
    """Match events: f8[E, M] from ``first`` on while out: i4[cap] has room for N + LANES boxes.

    Writes out[offsets[first]:] and offsets[first + 1:], offsets: i8[E + 1]; returns the next event.
    """
    e = first
    while e < len(events) and offsets[e] + handle[0] + LANES <= len(out):
        offsets[e + 1] = offsets[e] + match_one(handle, events[e], out[offsets[e] :])
        e += 1
    return e
