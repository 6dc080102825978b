"""Directory: groups by kind and cell, in one table of open addressing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64 as u64

from tamis.kernels.compiled import Array, inlined, kernel


class Directory(NamedTuple):
    """D entries, a power of two, at most half of them in use."""

    kind: Array  # i4[D], -1 = free
    key: Array  # u8[D], cell numbers or the bits of a value
    group: Array  # i4[D]


@inlined
def mix(x):
    """Spread the bits of a u8 (the finaliser of splitmix64)."""
    x = (x ^ (x >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> u64(27))) * u64(0x94D049BB133111EB)
    return x ^ (x >> u64(31))


@inlined
def find(kinds, keys, mask, kind, key):
    """Index of the entry (kind, key), or of the free one where it belongs; mask: u8(D - 1)."""
    h = mix(key ^ (u64(kind) << u64(40))) & mask
    while kinds[h] >= 0 and (kinds[h] != kind or keys[h] != key):
        h = (h + u64(1)) & mask
    return h


@kernel
def copy_entries(source, kind_of, target):
    """Enter all entries into another directory, kinds renumbered by kind_of: i4. O(D)."""
    kinds, keys, groups = target.kind, target.key, target.group
    mask = u64(kinds.size - 1)
    for i in range(source.kind.size):
        if source.kind[i] >= 0:
            kind = kind_of[source.kind[i]]
            h = find(kinds, keys, mask, kind, source.key[i])
            kinds[h], keys[h], groups[h] = kind, source.key[i], source.group[i]


def new_directory(n):
    """An empty directory with room for n entries."""
    size = table_size(n)
    return Directory(
        np.full(size, -1, np.int32), np.zeros(size, np.uint64), np.zeros(size, np.int32)
    )


def table_size(n):
    """A power of two, at least twice n."""
    return 1 << max(4, int(2 * n).bit_length())
