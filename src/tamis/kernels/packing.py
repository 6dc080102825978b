"""Packing: numbers as Parquet packs them, in runs of equal ones and in as few bits as they need."""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import inlined, kernel

MIN_RUN = 16  # equal numbers that are written as a run
MAX_PACKED = 1 << 14  # numbers that are packed behind one header


@inlined
def _put_varint(number, out, n_out):
    """Write a number, seven bits a byte; the new length of out."""
    while number >= 128:
        out[n_out] = (number & 127) | 128
        number >>= 7
        n_out += 1
    out[n_out] = number
    return n_out + 1


@inlined
def _put_run(code, n, width, out, n_out):
    """Write a run of n equal codes; the new length of out."""
    n_out = _put_varint(2 * n, out, n_out)
    for shift in range(0, width, 8):
        out[n_out] = (code >> shift) & 255
        n_out += 1
    return n_out


@kernel
def _end_of_run(codes, first, last):
    """The end of the equal numbers that begin at first."""
    for i in range(first + 1, last):
        if codes[i] != codes[first]:
            return i
    return last


@kernel
def _next_run(codes, first, last):
    """Where, some eights after first, MIN_RUN equal numbers begin; or last."""
    for i in range(first, last - MIN_RUN + 1, 8):
        if codes[i] == codes[i + 1] and _end_of_run(codes, i, i + MIN_RUN) == i + MIN_RUN:
            return i
    return last


@kernel
def _pack(codes, first, last, width, words):
    """Write codes[first:last] to words: u8[...], ``width`` bits each, and zeros behind them."""
    held, filled, n_words, width = u64(0), u64(0), 0, u64(width)
    for i in range(first, last):
        code = u64(codes[i])
        held |= code << filled
        filled += width
        if filled >= u64(64):
            words[n_words] = held
            n_words += 1
            filled -= u64(64)
            held = code >> (width - filled)
    for k in range(n_words, (8 * ((last - first + 7) // 8) * np.int64(width) + 63) // 64):
        words[k] = held
        held = u64(0)


@kernel
def _copy(source, n, out):
    """Copy the first n; an assignment of slices takes as long as packing them."""
    for i in range(n):
        out[i] = source[i]


@kernel
def pack(codes, first, last, width, words, out):
    """Write codes[first:last] as Parquet's hybrid of runs and packed numbers; how many bytes.

    ``codes``: i4, from 0 and below 2**width, ``width`` from 1 to 31. ``words``: u8[MAX_PACKED / 2],
    scratch. ``out``: u1[...], with room for ``room_for`` so many. Packed numbers come in eights;
    the last may be filled up with zeros. O(last - first).
    """
    packed, n_out, i = words.view(np.uint8), 0, first
    while i < last:
        run = _next_run(codes, i, last)
        while i < run:
            n_eights = (min(run - i, MAX_PACKED) + 7) // 8
            n_out = _put_varint(2 * n_eights + 1, out, n_out)
            _pack(codes, i, min(run, i + MAX_PACKED), width, words)
            n_bytes = n_eights * width
            _copy(packed, n_bytes, out[n_out:])
            n_out += n_bytes
            i = min(run, i + MAX_PACKED)
        if run < last:
            i = _end_of_run(codes, run, last)
            n_out = _put_run(codes[run], i - run, width, out, n_out)
    return n_out


@kernel
def pack_runs(codes, ends, width, out):
    """Write runs as Parquet does; how many bytes.

    ``codes``: i4[N], from 0 and below 2**width. ``ends``: i8[N], where each run ends, the first
    beginning at 0; runs may be empty. ``out``: u1[...], with room for ten bytes a run. O(N).
    """
    n_out, start = 0, 0
    for i in range(codes.size):
        if ends[i] > start:
            n_out = _put_run(codes[i], ends[i] - start, width, out, n_out)
        start = ends[i]
    return n_out


def room_for(n_codes: int, width: int) -> int:
    """How many bytes ``pack`` may write at most."""
    # A run takes less than its numbers packed; each header comes with at least eight numbers.
    n_eights = n_codes // 8 + 2
    return n_eights * (width + 10)


@kernel
def put_lengths(offsets, letters, out):
    """Write each text with its length before it. O(letters).

    ``offsets``: i4[N + 1], ``letters``: u1[...], ``out``: u1[4 N + letters].
    """
    n_out = 0
    for i in range(offsets.size - 1):
        length = offsets[i + 1] - offsets[i]
        for shift in range(0, 32, 8):
            out[n_out] = (length >> shift) & 255
            n_out += 1
        for k in range(offsets[i], offsets[i + 1]):
            out[n_out] = letters[k]
            n_out += 1
