"""Sparse boxes, matched: many events, root by root.

Most of what an event of broad slots touches are root words, and nearly all of it comes from
memory. Where the roots have most words, a *tile* of events takes them a few hundred words at a
time, one event after another, so that lines, tests and records are fetched once a tile and found
in the cache by all but the first. What was found is sorted by event in the end. Elsewhere events
are matched one after another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.memory import i4_at, u4_at
from tamis.kernels.sparse_build import N_AXES, SparsePart
from tamis.kernels.sparse_match import (
    clear_event,
    encode_event,
    find_groups,
    find_rows,
    match_one,
    take_spans,
)
from tamis.kernels.sparse_scratch import Scratch, open_handle
from tamis.kernels.sparse_vectors import TABLE

MAX_EVENTS = 256  # of a tile
MIN_EVENTS = 16  # fewer are matched one after another
N_STATE = 1 << 18  # numbers that the states of a tile may take
N_HITS = 1 << 19  # found by a tile, more or less
NEAR = 512  # words whose lines, tests and records are in the cache at once
N_ARRAYS = 5  # of a state


class Tile(NamedTuple):
    """Of one thread."""

    state: Array  # i4[T, 5, M + 2], and TABLE more: least, most, mass, rough, line of each event
    slot: Array  # i4[H], slots that match
    event: Array  # i4[H], the event of each
    end: Array  # i8[T + 1], where the slots of an event end


def new_tile(part: SparsePart, n_slots: int) -> Tile:
    """A tile for one thread; of one event where the roots have few words."""
    length = N_ARRAYS * (len(part.columns) + 2)
    n_events, n_hits = max(1, min(MAX_EVENTS, N_STATE // length)), N_HITS + n_slots + 1
    n_root_words = int((part.root[1::4] - part.root[::4]).sum())
    if 2 * n_root_words < len(part.reach):
        n_events = n_hits = 1
    return Tile(
        np.empty(n_events * length + TABLE, np.int32),
        np.empty(n_hits, np.int32),
        np.empty(n_hits, np.int32),
        np.empty(n_events + 1, np.int64),
    )


@inlined
def keep_state(s, state, at, n):
    """Copy what there is of an event to state[at:], five arrays of n."""
    for a in range(n):
        state[at + a] = s.least[a]
        state[at + n + a] = s.most[a]
        state[at + 3 * n + a] = s.rough[a]
    for a in range(n - 2):
        state[at + 2 * n + a] = s.mass[a]
        state[at + 4 * n + a] = s.line[a]
    state[at + 5 * n - 2] = s.line[n - 2]


@inlined
def scratch_of(s, address, n):
    """The scratch with the state of another event, which is at an address."""
    return Scratch(
        s.present, i4_at(address), i4_at(address + 4 * n), i4_at(address + 8 * n),
        u4_at(address + 12 * n), u4_at(address + 16 * n), s.cell, s.value, s.value_bits,
        s.place_span, s.word, s.aim, s.bits, s.base, s.candidate, s.test, s.kept,
    )  # fmt: skip


@inlined
def note_event(events, first, end, e):
    """Write the event of the hits from first to end; returns end."""
    for i in range(first, end):
        events[i] = e
    return end


@kernel
def match_groups(handle, events, first, tile, n_events):
    """Match the groups of a tile, all but the roots; returns the number of hits, -1 = no room.

    Writes the states of events: f8[E, C] from ``first`` on, and hits. O(events).
    """
    part, constraints, s = open_handle(handle)
    n = part.layout[N_AXES] + 2
    n_hits = np.int64(0)
    for e in range(n_events):
        if n_hits + handle[0] >= tile.slot.size:
            return np.int64(-1)
        event = events[first + e]
        n_present = encode_event(part, s, event)
        n_places, n_words = find_groups(part, s, n_present)
        end = take_spans(part, constraints, s, event, n_places, n_words, tile.slot, n_hits)
        n_hits = note_event(tile.event, n_hits, end, e)
        keep_state(s, tile.state, N_ARRAYS * n * e, n)
        clear_event(part, s, n_present)
    return n_hits


@kernel
def match_roots(handle, events, first, tile, n_events, n_hits):
    """Match the root words of a tile; returns the new number of hits, -1 = no room.

    Requires the states of the events. O(root rows x events + words).
    """
    part, constraints, s = open_handle(handle)
    n_axes = part.layout[N_AXES]
    length = N_ARRAYS * (n_axes + 2)
    for a in range(n_axes):
        row, last = part.root_start[a], part.root_start[a + 1]
        while row < last:
            end = row + 1
            while end < last and part.root[4 * end + 1] - part.root[4 * row] <= NEAR:
                end += 1
            for e in range(n_events):
                if n_hits + handle[0] >= tile.slot.size:
                    return np.int64(-1)
                own = scratch_of(s, tile.state.ctypes.data + 4 * length * e, n_axes + 2)
                n_words = find_rows(part, own, a, row, end, np.int64(0))
                if n_words:
                    found = take_spans(
                        part, constraints, own, events[first + e], np.int64(0), n_words,
                        tile.slot, n_hits,
                    )  # fmt: skip
                    n_hits = note_event(tile.event, n_hits, found, e)
            row = end
    return n_hits


@kernel
def sort_hits(tile, n_events, n_hits, first, out, offsets):
    """Write the hits by event to out: i4[cap], and offsets from first + 1 on. O(hits).

    Returns the event after the last whose slots have room.
    """
    end = tile.end
    end[: n_events + 1] = 0
    for i in range(n_hits):
        end[tile.event[i] + 1] += 1
    n_done = 0
    while n_done < n_events and offsets[first + n_done] + end[n_done + 1] <= out.size:
        offsets[first + n_done + 1] = offsets[first + n_done] + end[n_done + 1]
        end[n_done] = offsets[first + n_done]
        n_done += 1
    for i in range(n_hits):
        e = tile.event[i]
        if e < n_done:
            out[end[e]] = tile.slot[i]
            end[e] += 1
    return first + n_done


@kernel
def match_some(handle, events, first, tile, out, offsets):
    """Match events: f8[E, C] from ``first`` on while out: i4[cap] has room for P + 1 slots.

    Writes out[offsets[first]:] and offsets[first + 1:], offsets: i8[E + 1]; returns the next event.
    """
    e, n_tile = first, tile.end.size - 1
    while e < events.shape[0] and offsets[e] + handle[0] + 1 <= out.size:
        n_events = min(n_tile, events.shape[0] - e)
        n_hits = np.int64(-1)
        if n_events >= MIN_EVENTS:
            n_hits = match_groups(handle, events, e, tile, n_events)
            if n_hits >= 0:
                n_hits = match_roots(handle, events, e, tile, n_events, n_hits)
        if n_hits >= 0:
            e = sort_hits(tile, n_events, n_hits, e, out, offsets)
        elif n_events >= MIN_EVENTS:
            n_tile = n_events // 4  # many match: a smaller tile finds less
        else:
            offsets[e + 1] = offsets[e] + match_one(handle, events[e], out[offsets[e] :])
            e += 1
    return e
