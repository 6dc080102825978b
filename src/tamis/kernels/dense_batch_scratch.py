"""Dense boxes, matched line after line: what is known of the events of a batch, and scratch.

Kernels get the handle of a batch, one array of addresses, and open what they need of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from tamis.kernels.bit_lines import MANY
from tamis.kernels.compiled import Array, inlined
from tamis.kernels.dense_build import LINE
from tamis.kernels.keeping import LANES
from tamis.kernels.memory import aligned_zeros, i4_at, u1_at, u4_at, u8_at

PIECE = 256  # events whose bits of a line are kept at once
MAX_ANDED = 32  # attributes that are ANDed; the others are left to the rows
MANY_TIES = 1024  # so many are settled at once
MORE_ROOM = 1 << 20  # slots


class Batch(NamedTuple):
    """E events: what is known of each, and scratch. A bitmaps of each are ANDed, A is even.

    LW = ceil(L / 64), EW = ceil(E / 64); W words a row.
    """

    maps: Array  # u2[E*A] numbers of bitmaps: attribute * (B + 1) + bucket; may repeat
    keys: Array  # u8[E*2*W] as dense_fit says
    alive: Array  # u8[LW*64, EW] bit e of line l: the line may hold a match of event e
    listed: Array  # u4[E + MANY] the events that a line is alive for
    words: Array  # u8[PIECE*8] the bits of the i-th event of a piece
    every: Array  # u4[PIECE + LANES] 0, 1, 2, ...
    is_out: Array  # u1[PIECE + LANES] whether none of its bits is left
    done: Array  # u4[PIECE + LANES] which of them have bits left
    full: Array  # u8[PIECE*8 + 8] words with bits left
    places: Array  # u8[PIECE*8 + 8] their event << 9 | position of the first bit in the line
    candidates: Array  # u4[PIECE*LINE + MANY] event << 9 | position in the line
    misfits: Array  # u1[PIECE*LINE + MANY] of each candidate, as ``misfits_of`` tells them
    kept: Array  # u4[PIECE*LINE + MANY] some of the candidates
    numbers: Array  # i4[PIECE*LINE + MANY] the slot of each candidate
    ties: Array  # u8[PIECE*LINE + MANY_TIES + 1] event << 32 | position


# Where the handle of a batch has the address of each of its arrays, after three sizes.
_ADDRESS = {name: 3 + place for place, name in enumerate(Batch._fields)}
(
    MAPS, KEYS, ALIVE, LISTED, WORDS, EVERY, IS_OUT, DONE, FULL, PLACES, CANDIDATES, MISFITS, KEPT,
    NUMBERS, TIES,
) = _ADDRESS.values()  # fmt: skip


class Found(NamedTuple):
    """Slots by line: run i is of one event, and ends where run i + 1 starts."""

    slots: Array  # i4[room + LANES]
    runs: Array  # u8[room + LANES] event << 32 | end of the run; the first says 0


def new_batch(n: int, m: int, n_words: int, n_events: int) -> Batch:
    """Room for events that are matched against n boxes of m attributes."""
    n_lines = -(-n // LINE)
    return Batch(
        np.zeros(n_events * n_anded(m), np.uint16),
        aligned_zeros(n_events * 2 * n_words, np.uint64),
        np.zeros((-(-n_lines // 64) * 64, -(-n_events // 64)), np.uint64),
        np.zeros(n_events + MANY, np.uint32),
        aligned_zeros(8 * PIECE, np.uint64),
        np.arange(PIECE + LANES, dtype=np.uint32),
        np.zeros(PIECE + LANES, np.uint8),
        np.zeros(PIECE + LANES, np.uint32),
        np.zeros(8 * PIECE + 8, np.uint64),
        np.zeros(8 * PIECE + 8, np.uint64),
        np.empty(PIECE * LINE + MANY, np.uint32),
        np.empty(PIECE * LINE + MANY, np.uint8),
        np.empty(PIECE * LINE + MANY, np.uint32),
        np.empty(PIECE * LINE + MANY, np.int32),
        np.empty(PIECE * LINE + MANY_TIES + 1, np.uint64),
    )


def handle_of_batch(batch: Batch) -> Array:
    """i8[18]: sizes and addresses of a batch, which must outlive it.

    Kernels that hand arrays to each other in tuples copy and count them at each call, which took
    a twentieth of a batch.
    """
    n_events = len(batch.listed) - MANY
    sizes = [n_events, len(batch.maps) // n_events, batch.alive.shape[1]]
    return np.array(sizes + [x.ctypes.data for x in batch], np.int64)


def new_found(n_events: int) -> Found:
    """Room for more than a line can find; only what is written to takes memory.

    A line finds a run for each event, and for each candidate a slot or, being a tie, both.
    """
    room = 1 + n_events * (LINE + 1) + MORE_ROOM
    return Found(np.empty(room + LANES, np.int32), np.empty(room + LANES, np.uint64))


def n_anded(m):
    """How many bitmaps of an event are ANDed, of m attributes."""
    return min(m + m % 2, MAX_ANDED)


@inlined
def open_bits(batch):
    """``listed``, ``words`` and ``done`` behind the handle of a batch."""
    return (
        carray(u4_at(batch[LISTED]), (batch[0] + MANY,)),
        carray(u8_at(batch[WORDS]), (8 * PIECE,)),
        carray(u4_at(batch[DONE]), (PIECE + LANES,)),
    )


@inlined
def open_left(batch):
    """``every`` and ``is_out`` behind the handle of a batch."""
    return (
        carray(u4_at(batch[EVERY]), (PIECE + LANES,)),
        carray(u1_at(batch[IS_OUT]), (PIECE + LANES,)),
    )


@inlined
def open_candidates(batch):
    """``candidates``, ``misfits`` and ``kept`` behind the handle of a batch."""
    room = (PIECE * LINE + MANY,)
    return (
        carray(u4_at(batch[CANDIDATES]), room),
        carray(u1_at(batch[MISFITS]), room),
        carray(u4_at(batch[KEPT]), room),
    )


@inlined
def open_numbers(batch):
    """``numbers`` behind the handle of a batch."""
    return carray(i4_at(batch[NUMBERS]), (PIECE * LINE + MANY,))


@inlined
def open_keys(batch, n_words):
    """``keys`` behind the handle of a batch, of rows of n_words."""
    return carray(u8_at(batch[KEYS]), (batch[0] * 2 * n_words,))


@inlined
def open_ties(batch):
    """``ties`` behind the handle of a batch."""
    return carray(u8_at(batch[TIES]), (PIECE * LINE + MANY_TIES + 1,))
