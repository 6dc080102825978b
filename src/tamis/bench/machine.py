"""What a result was measured on: the machine, the versions, the commit."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_PACKAGES = (
    "tamis", "numpy", "numba", "llvmlite", "pyarrow", "shapely", "rtree", "duckdb", "polars",
    "matplotlib",
)  # fmt: skip


@cache
def machine() -> dict[str, Any]:
    """The processor, its cores and caches, and the memory."""
    return {
        "cpu": _first(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "caches": _caches(),
        "ram_gb": round(_kilobytes(Path("/proc/meminfo"), "MemTotal") / 2**20, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


@cache
def versions() -> dict[str, str]:
    """Python's version and that of every package that is measured or measures."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def commit() -> str:
    """The commit of the sources, with a + if they differ from it; empty outside a repository."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        head = git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if head and git("status", "--porcelain", "--", ".") else "")
    except OSError:  # no git
        return ""


def load() -> float:
    """How many processes wanted to run in the last minute: above 1, somebody else did too."""
    return round(os.getloadavg()[0], 2)


def _caches() -> dict[str, str]:
    found = {}
    for cache_ in sorted(_CACHES.glob("index*")):
        kind = (cache_ / "type").read_text().strip()
        if kind != "Instruction":
            level = (cache_ / "level").read_text().strip()
            found[f"L{level}"] = (cache_ / "size").read_text().strip()
    return found


def _first(path: Path, field: str) -> str:
    if not path.exists():
        return ""
    for line in path.read_text().splitlines():
        name, _, held = line.partition(":")
        if name.strip() == field:
            return held.strip()
    return ""


def _kilobytes(path: Path, field: str) -> int:
    text = _first(path, field).removesuffix("kB").strip()
    return int(text) if text else 0


def rss_bytes(field: str = "VmRSS") -> int:
    """The memory this process holds now (``VmRSS``) or held at most (``VmHWM``)."""
    return 1024 * _kilobytes(Path("/proc/self/status"), field)


def trimmed_rss() -> int:
    """The memory the process holds once freed pages went back to the system."""
    gc.collect()
    with suppress(AttributeError, OSError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
    return rss_bytes()


def forget_peak() -> None:
    """Let ``VmHWM`` count from now on, where Linux allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def private_bytes() -> int:
    """The memory that only this process holds, without what it shares through mapped files."""
    rollup = Path("/proc/self/smaps_rollup")
    return 1024 * sum(_kilobytes(rollup, f"Private_{kind}") for kind in ("Clean", "Dirty"))
