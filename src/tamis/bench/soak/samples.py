"""Samples: memory, open files and disk, by program, every few seconds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tamis.bench.spark.memory import megabytes

_MB = 1e6


def sample(pids: Mapping[str, Sequence[int]], folders: Mapping[str, Path]) -> dict[str, Any]:
    """Megabytes and open files by role, and of folders megabytes and files."""
    found: dict[str, Any] = {"memory_mb": {}, "open_files": {}, "disk_mb": {}, "files": {}}
    for role, numbers in pids.items():
        if numbers:
            found["memory_mb"][role] = round(sum(map(_memory, numbers)), 1)
            found["open_files"][role] = sum(map(_open_files, numbers))
    for name, folder in folders.items():
        sizes = [_size(Path(at, name)) for at, _, names in os.walk(folder) for name in names]
        found["disk_mb"][name] = round(sum(sizes) / _MB, 2)
        found["files"][name] = len(sizes)
    return found


def growth(samples: Sequence[Mapping[str, Any]], kind: str, name: str) -> dict[str, float] | None:
    """The first and the last third of some samples: medians, and the one as a share of the other.

    >>> rows = [{"t": n, "memory_mb": {"java": 100 + n}} for n in range(9)]
    >>> growth(rows, "memory_mb", "java")
    {'first': 101, 'last': 107, 'ratio': 1.06}
    """
    values = [one[kind][name] for one in samples if name in one[kind]]
    third = len(values) // 3
    if not third:
        return None
    first, last = median(values[:third]), median(values[-third:])
    return {"first": first, "last": last, "ratio": round(last / first, 2) if first else 1.0}


def _memory(pid: int) -> float:
    """What a process has for itself, and its share of what it has with others."""
    try:
        return megabytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")
    except OSError:
        return 0.0  # it ended meanwhile


def _open_files(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0
