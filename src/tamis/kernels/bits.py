"""Bits: a set of slots as words of 64 bits."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import inlined, kernel


@inlined
def set_bit(words, slot):
    """Set the bit of a slot in words (u8[P / 64])."""
    at = np.uint64(slot)
    words[at >> np.uint64(6)] |= np.uint64(1) << (at & np.uint64(63))


@inlined
def has_bit(words, slot):
    """The bit of a slot, 0 or 1."""
    at = np.uint64(slot)
    return (words[at >> np.uint64(6)] >> (at & np.uint64(63))) & np.uint64(1)


@kernel
def write_unset(words, start, end, out, n_out):
    """Append the slots whose bit is 0 in words[start:end] to out[:n_out], ascending; the length.

    O(words + slots found).
    """
    for at in range(start, end):
        left = ~words[at]
        if left:
            for bit in range(64):
                if (left >> np.uint64(bit)) & np.uint64(1):
                    out[n_out] = (at << 6) + bit
                    n_out += 1
    return n_out
