"""Loading: kernels that were compiled before, taken from the disk ahead of their first call.

Numba looks for compiled code when a kernel is first called with arguments of some types. A process
that others are forked from calls none; here it loads what this machine has called so far.
"""

from __future__ import annotations

import sys
from typing import Any

from numba.extending import is_jitted

import tamis.kernels as package


def load_kernels() -> int:
    """Load what is on the disk for the kernels that are imported; how many they are.

    A kernel counts once for each combination of argument types. Nothing is compiled.
    """
    begins = package.__name__ + "."
    modules = [module for name, module in sys.modules.items() if name.startswith(begins)]
    kernels = {id(held): held for module in modules for held in vars(module).values()}
    return sum(_load(held) for held in kernels.values() if is_jitted(held))


def _load(kernel: Any) -> int:
    # Numba has no public way to ask what it has on the disk.
    cache, codegen = kernel._cache, kernel.targetctx.codegen()
    signatures = [
        key[0]
        for key in cache._cache_file._load_index()
        if key == cache._index_key(key[0], codegen)  # not for another processor
    ]
    for signature in signatures:
        kernel.compile(signature)
    return len(signatures)
