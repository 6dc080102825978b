"""Bits: a set of slots as words of 64 bits."""

from __future__ import annotations

import numpy as np
from numba import uint64 as u64

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


@inlined
def popcount(x):
    """Bits set in a u8 (LLVM makes it one instruction)."""
    x = x - ((x >> u64(1)) & u64(0x5555555555555555))
    x = (x & u64(0x3333333333333333)) + ((x >> u64(2)) & u64(0x3333333333333333))
    x = (x + (x >> u64(4))) & u64(0x0F0F0F0F0F0F0F0F)
    return (x * u64(0x0101010101010101)) >> u64(56)


@inlined
def lowest_bit(x):
    """Number of the lowest bit set in a u8, 64 if none (LLVM makes it one instruction)."""
    return popcount(~x & (x - u64(1)))


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
