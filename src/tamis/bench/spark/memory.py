"""The memory of the processes of a Spark session on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_MB = 1e6


class Memory(NamedTuple):
    """Megabytes: of Java and this process all that is resident, of Python workers what is theirs.

    ``daemon`` is what the processes have that workers are forked from, and mostly share with them.
    What a worker maps from index files is clean, shared with the page cache, and not counted.
    """

    java: float
    driver: float
    daemon: float
    workers: tuple[float, ...]


def memory_now() -> Memory:
    """The memory of this process and of all that it started."""
    java, daemon, workers = 0.0, 0.0, []
    forking: set[int] = set()
    for parent, process in descendants(os.getpid()):
        try:
            command = (process / "cmdline").read_bytes()
            if b"java" in command.split(b"\0")[0]:
                java += megabytes(process / "status", "VmRSS:")
            elif b"pyspark" not in command:
                continue
            elif parent in forking:
                workers.append(megabytes(process / "smaps_rollup", "Private_Dirty:"))
            else:
                forking.add(int(process.name))
                held = ("Private_Dirty:", "Shared_Dirty:")
                daemon += sum(megabytes(process / "smaps_rollup", name) for name in held)
        except OSError:
            continue  # it ended meanwhile
    own = megabytes(Path("/proc/self/status"), "VmRSS:")
    return Memory(java, own, daemon, tuple(workers))


def descendants(pid: int) -> list[tuple[int, Path]]:
    """The processes below one, each with its parent and after it."""
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
        parent = waiting.pop()
        children = parents.get(parent, [])
        found += [(parent, Path(f"/proc/{child}")) for child in children]
        waiting += children
    return found


def megabytes(file: Path, name: str) -> float:
    """A field of a file of ``/proc``."""
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / _MB
    return 0.0
