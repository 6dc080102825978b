"""Dense boxes, matched: one event, or many one after another.

An event

1. keeps the lines that some box of theirs could match (coarse bitmaps over lines, in cache);
2. ANDs the bitmaps of those lines, rarest attribute first, while that costs less than verifying
   what is left;
3. verifies candidates on one row of packed codes each, all attributes in a few subtractions;
4. settles the few whose code ties with the event's on the exact bound.

No step branches on data in memory, and each prefetches: what counts is that cache misses overlap.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numba import uint64 as u64
from numba.cpython.unsafe.numbers import trailing_zeros

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.dense_build import (
    CHUNK,
    FIELD_BITS,
    FIELDS,
    GUARD,
    LINE,
    LINES_AHEAD,
    LOAD_NS,
    N_COARSE,
    N_RANKS,
    ROW_NS,
    ROWS_AHEAD,
    DensePart,
    Work,
    bucket_of,
    popcount,
)
from tamis.kernels.memory import f8_at, i4_at, i8_at, prefetch, u1_at, u2_at, u4_at, u8_at


@inlined
def encode_event(part, event, work):
    """Fill work.plan[0], [1] (bucket, coarse bucket) and work.keys for one event."""
    plan, keys, edges, coarse = work.plan, work.keys, part.edges, part.coarse
    n_buckets = part.counts.shape[1] - 1
    for w in range(keys.shape[1]):  # a missing value: only code 0 passes
        keys[0, w] = keys[1, w] = keys[2, w] = u64(GUARD)
    plan[0, :] = 0
    step = N_RANKS >> 1
    while step:  # rank_of for all attributes at once: their misses overlap
        for a in range(len(event)):
            k = plan[0, a]
            plan[0, a] = k + (step if edges[a, k + step - 1] <= event[a] else 0)
        step >>= 1
    block = coarse.shape[2] * coarse.shape[3]
    for a in range(len(event)):
        if np.isnan(event[a]):
            plan[0, a], plan[1, a] = n_buckets, N_COARSE
            continue
        rank = 1 + plan[0, a]
        plan[0, a], plan[1, a] = bucket_of(rank, n_buckets), bucket_of(rank, N_COARSE)
        at = (a * (N_COARSE + 1) + plan[1, a]) * block
        for w in range(0, block, 8):
            prefetch(coarse, u64(at + w))
        for side in range(2):
            f = 2 * a + side
            code = part.codes[a, side, rank]
            shift = u64(f % FIELDS * FIELD_BITS)
            keys[0, f // FIELDS] |= u64(code) << shift
            keys[1, f // FIELDS] |= u64(code - part.slack[a]) << shift


@inlined
def order_attributes(part, work):
    """The attributes that exclude anything, rarest bucket first, into plan[2] and plan[3].

    Returns how many, at least 1.
    """
    plan, counts = work.plan, part.counts
    stride = (part.n + LINE - 1) // LINE * part.coarse.shape[2] * 8
    m = counts.shape[0]
    k = 0
    for a in range(m):
        count = counts[a, plan[0, a]]
        if count == part.n and (k > 0 or a < m - 1):
            continue
        j = k
        while j > 0 and counts[plan[2, j - 1], plan[0, plan[2, j - 1]]] > count:
            plan[2, j] = plan[2, j - 1]
            j -= 1
        plan[2, j] = a
        k += 1
    for j in range(k):
        a = plan[2, j]
        plan[3, j] = (a * counts.shape[1] + plan[0, a]) * stride
    return k


@inlined
def choose_lines(part, work, alive):
    """Write ``alive``: u8[R*KW], bit l of word block r: line l of replica r may hold a match.

    Returns the replica with the fewest such lines.
    """
    coarse, plan = part.coarse, work.plan
    n_words = coarse.shape[3]
    stride = u64(coarse.shape[2] * n_words)
    flat = coarse.reshape(-1)
    for w in range(len(alive)):
        alive[w] = ~u64(0)
    for a in range(coarse.shape[0]):
        at = u64(a * (N_COARSE + 1) + plan[1, a]) * stride
        for w in range(len(alive)):
            alive[w] &= flat[at + u64(w)]
    best, fewest = 0, part.n + 1
    for r in range(coarse.shape[2]):
        count = 0
        for w in range(r * n_words, (r + 1) * n_words):
            count += popcount(alive[w])
        if count < fewest:
            best, fewest = r, count
    return best


@inlined
def list_lines(alive, n_words, r, first_line, lines):
    """Numbers of the lines set in word block r of alive, into lines; returns how many."""
    k = 0
    for w in range(n_words):
        word = alive[r * n_words + w]
        while word:
            lines[k] = first_line + 64 * w + np.int64(trailing_zeros(word))
            k += 1
            word &= word - u64(1)
    return k


@inlined
def and_phase(pool, offsets, first, last, work, n_lines):
    """AND bitmaps first..last of the listed lines into work.words; keep the lines with a bit left.

    Free of branches on data, and prefetched, so that misses overlap. Returns the lines and the
    bits that are left.
    """
    lines, words = work.lines, work.words
    fresh = first == 0
    k = bits = 0
    for i in range(min(LINES_AHEAD, n_lines)):
        for j in range(first, last):
            prefetch(pool, u64(offsets[j]) + u64(lines[i]) * u64(8))
    for i in range(n_lines):
        ahead = u64(lines[min(i + LINES_AHEAD, n_lines - 1)]) * u64(8)
        for j in range(first, last):
            prefetch(pool, u64(offsets[j]) + ahead)
        line = lines[i]
        base = u64(line) * u64(8)
        if fresh:
            a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = ~u64(0)
        else:
            q = u64(i) * u64(8)
            a0, a1, a2, a3 = words[q], words[q + u64(1)], words[q + u64(2)], words[q + u64(3)]
            a4, a5, a6, a7 = (
                words[q + u64(4)],
                words[q + u64(5)],
                words[q + u64(6)],
                words[q + u64(7)],
            )
        for j in range(first, last):
            p = u64(offsets[j]) + base
            a0 &= pool[p]
            a1 &= pool[p + u64(1)]
            a2 &= pool[p + u64(2)]
            a3 &= pool[p + u64(3)]
            a4 &= pool[p + u64(4)]
            a5 &= pool[p + u64(5)]
            a6 &= pool[p + u64(6)]
            a7 &= pool[p + u64(7)]
        q = u64(k) * u64(8)
        words[q], words[q + u64(1)], words[q + u64(2)], words[q + u64(3)] = a0, a1, a2, a3
        words[q + u64(4)], words[q + u64(5)], words[q + u64(6)], words[q + u64(7)] = a4, a5, a6, a7
        lines[k] = line
        k += np.int64((a0 | a1 | a2 | a3 | a4 | a5 | a6 | a7) != u64(0))
        bits += popcount(a0) + popcount(a1) + popcount(a2) + popcount(a3)
        bits += popcount(a4) + popcount(a5) + popcount(a6) + popcount(a7)
    return k, bits


@inlined
def and_lines(part, work, n_used, n_lines):
    """AND attributes while that is cheaper than verifying what is left; returns what is left."""
    plan, counts = work.plan, part.counts
    share = 1.0 / part.n
    done, bits = 0, 0
    step = min(3, n_used)
    while step:
        n_lines, bits = and_phase(part.pool, plan[3], done, done + step, work, n_lines)
        done += step
        step = 0
        left = float(bits)
        while done + step < n_used:
            a = plan[2, done + step]
            rate = counts[a, plan[0, a]] * share
            if left * (1.0 - rate) * ROW_NS < n_lines * LOAD_NS:
                break
            left *= rate
            step += 1
    return n_lines, bits


@inlined
def collect(work, line, n_lines):
    """List the bits of work.words from ``line`` on, until CHUNK; returns next line, how many."""
    lines, words, candidates = work.lines, work.words, work.candidates
    k = 0
    while line < n_lines and k < CHUNK:
        place = u64(lines[line]) * u64(LINE)
        for w in range(u64(8) * u64(line), u64(8) * u64(line) + u64(8)):
            word = words[w]
            while word:
                candidates[k] = place + u64(trailing_zeros(word))
                k += 1
                word &= word - u64(1)
            place += u64(64)
        line += 1
    return line, k


@inlined
def verify(part, event, work, n_candidates, out, n_out):
    """Append the slots of the candidates that match to out; returns the new length."""
    rows, keys, candidates = part.rows, work.keys, work.candidates
    verdicts, slots = work.verdicts, work.slots
    n_words = u64(keys.shape[1])
    for i in range(min(ROWS_AHEAD, n_candidates)):
        prefetch(rows, u64(candidates[i]) * n_words)
    for i in range(n_candidates):
        prefetch(rows, u64(candidates[i + ROWS_AHEAD]) * n_words)
        p = u64(candidates[i]) * n_words
        w0, w1, w2, w3 = rows[p], rows[p + u64(1)], rows[p + u64(2)], rows[p + u64(3)]
        # guard bit of key - row: set where the row's code <= the event's
        possible = (keys[0, 0] - w0) & (keys[0, 1] - w1) & (keys[0, 2] - w2) & (keys[0, 3] - w3)
        certain = (keys[1, 0] - w0) & (keys[1, 1] - w1) & (keys[1, 2] - w2) & (keys[1, 3] - w3)
        for w in range(u64(4), n_words):
            row = rows[p + w]
            possible &= keys[0, w] - row
            certain &= keys[1, w] - row
        verdicts[i] = np.uint8((possible & u64(GUARD)) == u64(GUARD)) + np.uint8(
            (certain & u64(GUARD)) == u64(GUARD)
        )
        slots[i] = np.int32(
            (w0 >> u64(56))
            | ((w1 >> u64(56)) << u64(8))
            | ((w2 >> u64(56)) << u64(16))
            | ((w3 >> u64(56)) << u64(24))
        )
    n_ties = 0
    for i in range(n_candidates):
        v, slot = verdicts[i], slots[i]
        out[n_out] = slot
        n_out += np.int64(v == 2)
        candidates[n_ties] = candidates[i]
        slots[n_ties] = slot
        n_ties += np.int64(v == 1)
    work.stats[3] += n_ties
    return settle_ties(part, event, work, n_ties, out, n_out)


@inlined
def settle_ties(part, event, work, n_ties, out, n_out):
    """Decide the first n_ties candidates by the exact bounds whose codes tie with the event's."""
    rows, keys, candidates, bounds = part.rows, work.keys, work.candidates, part.bounds
    n_words, stride = u64(keys.shape[1]), u64(2 * len(event))
    for compare in range(2):  # first ask for the cache lines, then compare
        for i in range(n_ties):
            p, at = u64(candidates[i]) * n_words, u64(work.slots[i]) * stride
            ok = True
            for w in range(n_words):
                tied = ~(keys[1, w] - rows[p + w]) & u64(GUARD)
                while tied:
                    f = w * u64(FIELDS) + u64(trailing_zeros(tied)) // u64(FIELD_BITS)
                    tied &= tied - u64(1)
                    if compare:
                        x, bound = event[f >> u64(1)], bounds[at + f]
                        ok &= (x <= bound) if f & u64(1) else (bound <= x)
                    else:
                        prefetch(bounds, at + f)
            if compare:
                out[n_out] = work.slots[i]
                n_out += np.int64(ok)
    return n_out


@inlined
def match_lines(part, event, work, n_used, n_lines, out, n_out):
    """Append the matches among the listed lines to out; returns the new length."""
    n_lines, bits = and_lines(part, work, n_used, n_lines)
    work.stats[1] += n_lines
    work.stats[2] += bits
    line = 0
    while line < n_lines:
        line, n_candidates = collect(work, line, n_lines)
        n_out = verify(part, event, work, n_candidates, out, n_out)
    return n_out


@inlined
def match(part, event, work, out):
    """Write the slots that match event: f8[M] to out: i4[N + 1]; returns how many.

    O(lines + lines alive x attributes + matches).
    """
    if part.n == 0:
        return 0
    work.stats[:] = 0
    encode_event(part, event, work)
    n_used = order_attributes(part, work)
    n_coarse = part.coarse.shape[3]
    alive = work.words[: part.coarse.shape[2] * n_coarse]
    r = choose_lines(part, work, alive)
    n_lines = list_lines(alive, n_coarse, r, r * ((part.n + LINE - 1) // LINE), work.lines)
    work.stats[0] = n_lines
    return match_lines(part, event, work, n_used, n_lines, out, 0)


def handle_of(part: DensePart, work: Work) -> Array:
    """i8[22]: sizes and addresses of part and work, which must outlive it.

    Handing over 16 arrays costs 5 us a call, one handle 0.4.
    """
    m, n_buckets = part.counts.shape
    sizes = [part.n, m, n_buckets, *part.coarse.shape[2:], work.keys.shape[1]]
    return np.array(sizes + [x.ctypes.data for x in [*part[1:], *work]], np.int64)


@inlined
def open_handle(h):
    """The part and work behind a handle."""
    n, m, n_buckets, n_replicas, n_coarse, w = h[0], h[1], h[2], h[3], h[4], h[5]
    n_lines, size = (n + LINE - 1) // LINE * n_replicas, CHUNK + LINE
    part = DensePart(
        n,
        carray(f8_at(h[6]), (n * m * 2,)),
        carray(f8_at(h[7]), (m, N_RANKS)),
        carray(u2_at(h[8]), (m, 2, N_RANKS)),
        carray(u1_at(h[9]), (m,)),
        carray(u8_at(h[10]), (n_lines * LINE * w,)),
        carray(u8_at(h[11]), (m * n_buckets * n_lines * 8,)),
        carray(u8_at(h[12]), (m, N_COARSE + 1, n_replicas, n_coarse)),
        carray(i4_at(h[13]), (m, n_buckets)),
    )
    work = Work(
        carray(i8_at(h[14]), (n_lines + 1,)),
        carray(u8_at(h[15]), (8 * n_lines + 8,)),
        carray(u4_at(h[16]), (size + ROWS_AHEAD,)),
        carray(u1_at(h[17]), (size,)),
        carray(i4_at(h[18]), (size,)),
        carray(i8_at(h[19]), (4, m)),
        carray(u8_at(h[20]), (3, w)),
        carray(i8_at(h[21]), (4,)),
    )
    return part, work


@kernel
def match_one(handle, event, out):
    """match() through a handle."""
    part, work = open_handle(handle)
    return match(part, event, work, out)


@kernel
def match_some(handle, events, first, out, offsets):
    """Match events: f8[E, M] from ``first`` on while out: i4[cap] has room for all boxes.

    Writes out[offsets[first]:] and offsets[first + 1:], offsets: i8[E + 1]; returns the next event.
    """
    part, work = open_handle(handle)
    e = first
    while e < len(events) and offsets[e] + part.n + 1 <= len(out):
        offsets[e + 1] = offsets[e] + match(part, events[e], work, out[offsets[e] :])
        e += 1
    return e
