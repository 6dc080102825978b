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
from typing import Any, Literal

import numba
import numpy.typing as npt
from llvmlite import binding
from numba.core import config as untyped_config

config: Any = untyped_config
# With the compiler off (NUMBA_DISABLE_JIT) kernels run as Python, but for those that use addresses.
IS_COMPILED = not config.DISABLE_JIT
Array = npt.NDArray[Any]  # a comment says of what

_OPTIONS: Any = {
    "cache": True,
    "nogil": True,
    "boundscheck": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # nobody hands kernels to C; 8 % of the time to compile
}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function over arrays: no GIL, no bounds checks, IEEE arithmetic, cached on disk."""
    return _compile(function, inline="never")


def inlined(function: Callable[..., Any]) -> Any:
    """Like ``kernel``, for small functions that only other kernels call."""
    return _compile(function, inline="always")


def _compile(function: Callable[..., Any], inline: Literal["never", "always"]) -> Any:
    # The directory is read when the decorator runs; the caller's own setting is put back.
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_directory())
    try:
        return numba.njit(inline=inline, **_OPTIONS)(function)
    finally:
        config.CACHE_DIR = before


@cache
def cache_directory() -> Path:
    """Where compiled kernels are kept; ``TAMIS_CACHE_DIR`` moves it."""
    root = os.environ.get("TAMIS_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root else Path.home() / ".cache"
    return base / "tamis" / f"kernels-{_hash_of_sources()}"


@cache
def name_of_processor() -> str:
    """What compiled kernels depend on beside their sources, short enough for the name of a file."""
    features = binding.get_host_cpu_features().flatten()
    held = f"{binding.get_host_cpu_name()} {features} {config.CPU_NAME} {config.CPU_FEATURES}"
    return hashlib.blake2b(held.encode(), digest_size=8).hexdigest()


def is_first_use() -> bool:
    """Whether no kernel was compiled yet, so that the first calls take a while."""
    return not any(cache_directory().glob("**/*.nbi"))


def _hash_of_sources() -> str:
    digest = hashlib.blake2b(f"{numba.__version__}".encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()
