"""Cells of size: how long an index takes to build, and what it weighs."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from tamis.bench.cases import Case
from tamis.bench.measure import time_once
from tamis.bench.probe import ask
from tamis.index import Index

BUILDS = 3


def measure_build(case: Case) -> dict[str, Any]:
    """Build it anew; the kernels are compiled and the subscriptions are there already."""
    _ = case.index
    seconds = [time_once(case.build)[1] for _ in range(BUILDS)]
    found = {
        "n_subscriptions": case.n_subscriptions,
        "seconds": round(median(seconds), 4),
        "seconds_of_builds": [round(one, 4) for one in seconds],
        "us_per_subscription": round(median(seconds) * 1e6 / case.n_subscriptions, 4),
    }
    generated = getattr(case, "generation_seconds", None)
    return found if generated is None else {**found, "generation_seconds": round(generated, 2)}


def measure_memory(case: Case) -> dict[str, Any]:
    """In a process of its own."""
    found = ask("memory", case.name, repr(case.scale))
    n_subscriptions = found["n_subscriptions"]
    for name in ("counted", "rss_growth", "peak_growth"):
        held = found[f"{name}_bytes"]
        found[f"{name}_per_subscription"] = (
            None if held is None else round(held / n_subscriptions, 1)
        )
    return found


def counted_bytes(index: Index) -> int | None:
    """What the index says its arrays hold; None if it does not say."""
    parts = counted_parts(index)
    return parts.get("total", sum(parts.values())) if parts else None


def counted_parts(index: Index) -> dict[str, int]:
    """The same part by part; empty if it does not say."""
    held: Mapping[str, int] = index.stats().get("memory", {}) if hasattr(index, "stats") else {}
    return {name: int(size) for name, size in held.items()}
