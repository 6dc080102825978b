"""Cell of memory: as many subscriptions as events, in a process of its own."""

from __future__ import annotations

from typing import Any

from tamis.bench.events.kept import Kept, fill, make_boxes, make_near_me
from tamis.bench.events.moving import index_of
from tamis.bench.events.nearby import make_nearby
from tamis.bench.machine import forget_peak, rss_bytes, trimmed_rss
from tamis.bench.memory import counted_bytes
from tamis.bench.probe import ask
from tamis.bench.reproduce.places import placed_boxes
from tamis.events import EventStore
from tamis.index import Index

KINDS = ("boxes", "near_me")
_FEW = 2_000


def measure_memory(n: int, has_near_me: bool) -> dict[str, Any]:
    """Boxes with events, and near-me subscriptions with events."""
    found: dict[str, Any] = {"n_subscriptions": n, "n_events": n}
    for kind in KINDS if has_near_me else KINDS[:1]:
        found[kind] = ask("events", kind, str(n))
    return found


def grow(kind: str, n: int) -> dict[str, Any]:
    """What the process grows by, and what the index and the store count."""
    make_both(kind, _FEW)  # so that code and compiled kernels are there already
    before = trimmed_rss()
    forget_peak()
    index, store = make_both(kind, n)
    peak = rss_bytes("VmHWM")
    after = trimmed_rss()
    counted = {"index": counted_bytes(index) or 0, "events": int(store.stats()["memory"])}
    return {
        "rss_mb": round((after - before) / 1e6, 1),
        "peak_mb": round((peak - before) / 1e6, 1),
        "counted_mb": round(sum(counted.values()) / 1e6, 1),
        "index_mb": round(counted["index"] / 1e6, 1),
        "events_mb": round(counted["events"] / 1e6, 1),
    }


def make_both(kind: str, n: int) -> tuple[Index, EventStore]:
    """An index of n subscriptions, and a store of n events."""
    kept: Kept
    if kind == "boxes":
        index = Index.from_boxes(**placed_boxes(n, n_events=1).boxes())
        kept = make_boxes(n, n_questions=100)
    else:
        # Not of Movers, which keep what they are made of.
        index = index_of(make_nearby(n, n_events=10))
        kept = make_near_me(n, n_questions=100)
    return index, fill(kept, n)[0]
