"""Texts: a hash table from texts to their positions, over Arrow's buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.memory import i4_at, u1_at

_OFFSET = np.uint64(14695981039346656037)  # FNV-1a
_PRIME = np.uint64(1099511628211)


@kernel
def hash_text(letters, start, stop):
    """FNV-1a of ``letters[start:stop]``, u1. O(length)."""
    made = _OFFSET
    for i in range(start, stop):
        made = (made ^ np.uint64(letters[i])) * _PRIME
    return made ^ (made >> np.uint64(29))


@kernel
def fill_table(letters, offsets, table):
    """Enter every text; return the position of one that is there twice, or -1.

    ``letters``: u1[...]; ``offsets``: i4[N + 1]; ``table``: i4[2^k > N], zeros, becomes the
    position plus one of each text at the first free place after its hash. O(N).
    """
    mask = np.uint64(table.size - 1)
    for position in range(offsets.size - 1):
        start, stop = offsets[position], offsets[position + 1]
        place = hash_text(letters, start, stop) & mask
        while table[place]:
            if _is_same(letters, offsets, table[place] - 1, letters, start, stop):
                return position
            place = (place + np.uint64(1)) & mask
        table[place] = position + 1
    return -1


@kernel
def enter_texts(letters, offsets, first, table):
    """Enter the texts from position ``first`` on, each in the place of an older one like it.

    The arrays as in ``fill_table``; the table has the texts before. O(new texts).
    """
    mask = np.uint64(table.size - 1)
    for position in range(first, offsets.size - 1):
        start, stop = offsets[position], offsets[position + 1]
        place = hash_text(letters, start, stop) & mask
        while table[place]:
            if _is_same(letters, offsets, table[place] - 1, letters, start, stop):
                break
            place = (place + np.uint64(1)) & mask
        table[place] = position + 1


@kernel
def find_text(letters, offsets, table, wanted):
    """The position of a text (``wanted``: u1[...]), or -1. O(length).

    The table may have texts of later positions, which are not found.
    """
    mask = np.uint64(table.size - 1)
    place = hash_text(wanted, 0, wanted.size) & mask
    while table[place]:
        position = table[place] - 1
        is_there = position < offsets.size - 1
        if is_there and _is_same(letters, offsets, position, wanted, 0, wanted.size):
            return position
        place = (place + np.uint64(1)) & mask
    return -1


@kernel
def find_texts(letters, offsets, table, wanted, wanted_offsets, out):
    """``find_text`` for each of many, in the same layout; writes positions to out (i4[n])."""
    mask = np.uint64(table.size - 1)
    for i in range(out.size):
        start, stop = wanted_offsets[i], wanted_offsets[i + 1]
        place = hash_text(wanted, start, stop) & mask
        out[i] = -1
        while table[place]:
            if _is_same(letters, offsets, table[place] - 1, wanted, start, stop):
                out[i] = table[place] - 1
                break
            place = (place + np.uint64(1)) & mask


@kernel
def join_texts(letters, offsets, numbers):
    """The letters of texts one after the other, a zero behind each: u1[...]. O(letters).

    ``numbers``: i4[N]; the others as in ``fill_table``.
    """
    n_letters = np.int64(numbers.size)
    for i in range(numbers.size):
        n_letters += offsets[numbers[i] + 1] - offsets[numbers[i]]
    joined = np.zeros(n_letters, np.uint8)
    at = np.int64(0)
    for i in range(numbers.size):
        for k in range(offsets[numbers[i]], offsets[numbers[i] + 1]):
            joined[at] = letters[k]
            at += 1
        at += 1
    return joined


@kernel
def join_digits(numbers):
    """Numbers: i4[N], none negative, in decimal, a zero behind each: u1[...]. O(digits)."""
    n_letters = np.int64(0)
    for i in range(numbers.size):
        n_letters += _n_digits(numbers[i]) + 1
    joined = np.zeros(n_letters, np.uint8)
    end = np.int64(0)
    for i in range(numbers.size):
        left = np.uint32(numbers[i])
        n_digits = _n_digits(numbers[i])
        for k in range(n_digits):
            joined[end + n_digits - 1 - k] = np.uint8(48) + left % np.uint32(10)
            left //= np.uint32(10)
        end += n_digits + 1
    return joined


@inlined
def _n_digits(number):
    """The digits of a number, 0 to 2**31 - 1, in decimal."""
    n, limit = 1, np.int64(10)
    while number >= limit:
        n += 1
        limit *= 10
    return n


def directory_of(parts: Sequence[Any]) -> Array:
    """Where the letters, offsets and tables of parts are: i8[4 x parts], for ``find_in_parts``.

    Whoever has it keeps the parts.
    """
    held = [
        [_address(one.letters), _address(one.offsets), _address(one.table), one.table.size]
        for one in parts
    ]
    return np.array(held, np.int64).reshape(-1)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


@kernel
def find_in_parts(directory, n_parts, wanted):
    """The last of the first parts that has a text (u1[...]), and its position there, or -1.

    O(parts x length).
    """
    made = hash_text(wanted, 0, wanted.size)
    for part in range(n_parts - 1, -1, -1):
        letters, offsets = u1_at(directory[4 * part]), i4_at(directory[4 * part + 1])
        table, mask = i4_at(directory[4 * part + 2]), np.uint64(directory[4 * part + 3] - 1)
        place = made & mask
        while table[place]:
            if _is_same(letters, offsets, table[place] - 1, wanted, 0, wanted.size):
                return part, np.int64(table[place] - 1)
            place = (place + np.uint64(1)) & mask
    return -1, np.int64(-1)


@kernel
def _is_same(letters, offsets, position, wanted, start, stop):
    first = offsets[position]
    if offsets[position + 1] - first != stop - start:
        return False
    for i in range(stop - start):
        if letters[first + i] != wanted[start + i]:
            return False
    return True
