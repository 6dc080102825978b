"""The memory of the processes of a Spark session on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_MB = 1e6


class Memory(NamedTuple):
    """Megabytes: of Java and this process all that is resident, of Python workers what is theirs.

    What a worker maps from index files is clean, shared with the page cache, and not counted.
    """

    java: float
    driver: float
    workers: tuple[float, ...]


def memory_now() -> Memory:
    """The memory of this process and of all that it started."""
    java, workers = 0.0, []
    for process in _descendants(os.getpid()):
        try:
            command = (process / "cmdline").read_bytes()
            if b"java" in command.split(b"\0")[0]:
                java += _kilobytes(process / "status", "VmRSS:") * 1024 / _MB
            elif b"pyspark" in command:
                workers.append(_kilobytes(process / "smaps_rollup", "Private_Dirty:") * 1024 / _MB)
        except OSError:
            continue  # it ended meanwhile
    own = _kilobytes(Path("/proc/self/status"), "VmRSS:") * 1024 / _MB
    return Memory(java, own, tuple(workers))


def _descendants(pid: int) -> list[Path]:
    parents: dict[int, list[int]] = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(process.name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += [Path(f"/proc/{child}") for child in children]
        waiting += children
    return found


def _kilobytes(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0
