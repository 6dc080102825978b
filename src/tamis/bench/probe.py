"""What only a fresh process can tell: ``python -m tamis.bench.probe``, asked through ``ask``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from tamis.bench.machine import forget_peak, private_bytes, rss_bytes, trimmed_rss
from tamis.errors import TamisError


class ProbeFailed(TamisError):
    """The other process ended with an error."""


def ask(question: str, *words: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a probe in a process of its own and read its answer."""
    package_root = str(Path(__file__).parents[2])
    path = os.pathsep.join(p for p in (package_root, os.environ.get("PYTHONPATH", "")) if p)
    done = subprocess.run(
        [sys.executable, "-m", "tamis.bench.probe", question, *words],
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise ProbeFailed(f"the {question} probe failed: {last}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def probe_memory(name: str, scale: str) -> dict[str, Any]:
    """How much the process grows by an index, and what the index itself counts."""
    from tamis.bench.memory import counted_bytes, counted_parts
    from tamis.bench.suite import make_case

    make_case(name, 0.001).build()  # so that code and compiled kernels are there already
    case = make_case(name, float(scale))
    before = trimmed_rss()
    forget_peak()
    index = case.build()
    peak = rss_bytes("VmHWM")
    return {
        "n_subscriptions": case.n_subscriptions,
        "counted_bytes": counted_bytes(index),
        "counted_parts": counted_parts(index),
        "rss_growth_bytes": trimmed_rss() - before,
        "peak_growth_bytes": max(0, peak - before),
    }


def probe_open(path: str, events: str) -> dict[str, Any]:
    """How long a saved index takes to open, and to match its first event."""
    from tamis.index import Index

    first, *others = json.loads(Path(events).read_text())
    before = private_bytes()
    start = perf_counter()
    index = Index.open(path)
    opened = perf_counter()
    index.match(first)
    matched = perf_counter()
    for event in others:
        index.match(event)
    return {
        "open_seconds": round(opened - start, 5),
        "first_match_seconds": round(matched - opened, 5),
        "private_growth_bytes": private_bytes() - before,
        "rss_bytes": rss_bytes(),
    }


def probe_first_use() -> dict[str, Any]:
    """How long the first index and match of a process take, and the same again."""
    start = perf_counter()
    from tamis.bench.first_use import use_everything

    imported = perf_counter()
    use_everything()
    used = perf_counter()
    use_everything()
    again = perf_counter()
    return {
        "import_seconds": round(imported - start, 4),
        "first_seconds": round(used - imported, 4),
        "again_seconds": round(again - used, 4),
        "kernel_seconds": round(max(0.0, (used - imported) - (again - used)), 4),
    }


def probe_events(kind: str, n: str) -> dict[str, Any]:
    """How much the process grows by subscriptions and events of space and time."""
    from tamis.bench.events.memory import grow

    return grow(kind, int(n))


_PROBES: dict[str, Callable[..., dict[str, Any]]] = {
    "memory": probe_memory,
    "open": probe_open,
    "first-use": probe_first_use,
    "events": probe_events,
}


if __name__ == "__main__":
    print(json.dumps(_PROBES[sys.argv[1]](*sys.argv[2:])))
