"""Columns: bounds as one byte each, an attribute beside the other, to select among candidates.

A byte is the number of one of 253 cells of the domain, from 1 on; 0 and 254 stand for no bound.
A value in a cell between those of the bounds lies inside, one in the cell of a bound is
uncertain, and the candidate is marked by the sign of its number until ``settle`` compares exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.bits import has_bit, popcount, set_bit
from tamis.kernels.cells import cell_of
from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.constraints import accepts

N_CODES = 253
NO_LOW, NO_HIGH = 0, N_CODES + 1
BLOCK = 64  # words that are narrowed together
_AT_ONCE = 4  # slots of a word that are listed without asking whether there are so many
_SLOT = 0x7FFF_FFFF


class Columns(NamedTuple):
    """The constraints of P slots over M attributes, in W = P / 64 words and in bytes."""

    code: Array  # u1[M, P, 2], low and high; an excluded value has no bounds
    asked: Array  # u8[M, W], bits of the slots that constrain an attribute
    odd: Array  # u8[W], bits of the slots that exclude a value somewhere
    absent: Array  # u8[W], bits of the slots that hold no subscription
    n_asking: Array  # i8[M], how many subscriptions constrain an attribute


@inlined
def clear_bit(words, slot):
    """Clear the bit of a slot in words (u8[P / 64])."""
    at = np.uint64(slot)
    words[at >> np.uint64(6)] &= ~(np.uint64(1) << (at & np.uint64(63)))


@kernel
def put_columns(columns, stored, slots, domains):
    """Write what new slots (i4[n]) ask. O(n M)."""
    for i in range(slots.size):
        slot = slots[i]
        clear_bit(columns.absent, slot)
        clear_bit(columns.odd, slot)
        word, bit = slot >> 6, np.uint64(1) << np.uint64(slot & 63)
        for m in range(columns.n_asking.size):
            columns.code[m, slot, 0], columns.code[m, slot, 1] = NO_LOW, NO_HIGH
            columns.asked[m, word] &= ~bit
        for k in range(stored.start[slot], stored.end[slot]):
            m, low, high = np.int64(stored.attribute[k]), stored.low[k], stored.high[k]
            columns.asked[m, word] |= bit
            columns.n_asking[m] += 1
            if stored.negated[k]:
                set_bit(columns.odd, slot)
                continue
            if low > -np.inf:
                columns.code[m, slot, 0] = 1 + cell_of(domains, m, low, N_CODES)
            if high < np.inf:
                columns.code[m, slot, 1] = 1 + cell_of(domains, m, high, N_CODES)


@kernel
def drop_columns(columns, stored, slots):
    """Say that slots (i4[n]) hold nothing any more. O(constraints)."""
    for i in range(slots.size):
        set_bit(columns.absent, slots[i])
        for k in range(stored.start[slots[i]], stored.end[slots[i]]):
            columns.n_asking[stored.attribute[k]] -= 1


@kernel
def select(columns, stored, domains, event, order, first, words, out):
    """Write the slots with no bit in words that match on the attributes from order[first] on.

    event: f8[M], has these attributes; order: i4[M]; words: u8[W]; out: i4[P], written, ascending.
    Returns how many. A block of slots goes through all attributes before the next one. O(W +
    sum of the sizes of the candidate set before each attribute).
    """
    codes = np.empty(order.size, np.uint8)
    for k in range(first, order.size):
        codes[k] = 1 + cell_of(domains, np.int64(order[k]), event[order[k]], N_CODES)
    listed = np.empty(64 * BLOCK + _AT_ONCE, np.int32)
    n_out = 0
    for start in range(0, words.size, BLOCK):
        n_left = list_unset(words, start, min(words.size, start + BLOCK), listed)
        for k in range(first, order.size):
            if n_left == 0:
                break
            n_left = narrow(columns.code, order[k], codes[k], listed, n_left)
        n_out = settle(columns.odd, stored, event, listed, n_left, out, n_out)
    return n_out


@kernel
def list_unset(words, start, end, listed):
    """Write the slots with no bit in words[start:end], ascending; return how many.

    listed: i4, room for four more than there can be, so that few branches are guessed wrong.
    """
    n_listed = np.uint64(0)
    for word in range(start, end):
        at = np.uint64(word)
        left, i = ~words[at], n_listed
        n_listed += np.uint64(popcount(left))
        while left:
            for j in range(_AT_ONCE):
                below = ~left & (left - np.uint64(1))  # as many bits as zeros end the word
                listed[i + np.uint64(j)] = (at << np.uint64(6)) + np.uint64(popcount(below))
                left &= left - np.uint64(1)
            i += np.uint64(_AT_ONCE)
    return np.int64(n_listed)


@kernel
def narrow(code, m, wanted, listed, n_listed):
    """Keep of listed[:n_listed] who may match on attribute m; return how many. O(n_listed).

    wanted: the byte of the event's value. What is uncertain gets the sign bit.
    """
    n_kept = np.uint64(0)
    for at in range(np.uint64(n_listed)):
        entry = listed[at]
        slot = np.uint64(entry & _SLOT)
        low, high = code[m, slot, 0], code[m, slot, 1]
        is_uncertain = np.int64(low == wanted) | np.int64(high == wanted)
        listed[n_kept] = entry | -(is_uncertain << 31)
        n_kept += np.uint64((low <= wanted) & (wanted <= high))
    return np.int64(n_kept)


@kernel
def settle(odd, stored, event, listed, n_listed, out, n_out):
    """Append who matches of listed[:n_listed] to out[:n_out], uncertain ones compared; the end."""
    for at in range(n_listed):
        slot = listed[at] & _SLOT
        if (listed[at] < 0 or has_bit(odd, slot)) and not accepts(stored, slot, event):
            continue
        out[n_out] = slot
        n_out += 1
    return n_out


@kernel
def mark_unmet(stored, m, value, words):
    """Set the bits of the slots whose constraint on attribute m a value does not meet.

    Looks at every slot with no bit in words (u8[W]); returns how many are left. O(constraints).
    """
    n_left = 0
    for slot in range(min(stored.start.size, words.size * 64)):
        if has_bit(words, slot):
            continue
        is_met = True
        for k in range(stored.start[slot], stored.end[slot]):
            if stored.attribute[k] == m:
                is_outside = not (stored.low[k] <= value and value <= stored.high[k])
                is_met = is_outside == (stored.negated[k] == 1) and not np.isnan(value)
        if is_met:
            n_left += 1
        else:
            set_bit(words, slot)
    return n_left
