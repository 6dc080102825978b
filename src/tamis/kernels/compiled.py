"""``kernel``: the one place that says how kernels are compiled and where they are cached.

Numba's disk cache notices a change in the file of a function, but not in the file of another
function that was inlined into it, and would then run stale code. So the cache directory
carries a hash of every source here: any change starts from an empty one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import numba
from numba.core import config

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a function over arrays: no GIL, no bounds checks, IEEE arithmetic, cached on disk."""
    return _compile(function, inline="never")


def inlined(function: Function) -> Function:
    """Like ``kernel``, for small functions that only other kernels call."""
    return _compile(function, inline="always")


def _compile(function: Function, inline: str) -> Function:
    # The directory is read when the decorator runs; the caller's own setting is put back.
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_directory())
    try:
        compiled: Function = numba.njit(
            cache=True, nogil=True, boundscheck=False, error_model="numpy", inline=inline
        )(function)
    finally:
        config.CACHE_DIR = before
    return compiled


@cache
def cache_directory() -> Path:
    """Where compiled kernels are kept; ``TAMIS_CACHE_DIR`` moves it."""
    root = os.environ.get("TAMIS_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root else Path.home() / ".cache"
    return base / "tamis" / f"kernels-{_hash_of_sources()}"


def _hash_of_sources() -> str:
    digest = hashlib.blake2b(f"{numba.__version__}".encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()
