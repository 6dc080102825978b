"""Cell of the first use: what compiling the kernels costs, and loading them from the disk."""

from __future__ import annotations

import tempfile
from typing import Any

from tamis.bench.ads import generate_ads, generate_searches
from tamis.bench.probe import ask
from tamis.bench.workloads import make
from tamis.index import Index


def measure_first_use() -> dict[str, Any]:
    """In processes of their own: with an empty cache, then twice with the one just filled."""
    with tempfile.TemporaryDirectory(prefix="tamis-bench-") as directory:
        environment = {"TAMIS_CACHE_DIR": directory}
        cold = ask("first-use", environment=environment)
        ask("first-use", environment=environment)
        warm = ask("first-use", environment=environment)
    return {"cold": cold, "warm": warm}


def use_everything() -> None:
    """Small indexes of every kind of subscription, matched and changed: all kernels run."""
    for name in ("W1", "W3"):
        workload = make(name, 0.001, n_events=20)
        index = Index.from_boxes(**workload.boxes())
        index.match_batch(workload.events)
        index.match(workload.dicts(workload.values)[0])
    index = Index()
    index.add_many(generate_searches(300))
    ads = generate_ads(20)
    index.match_batch(ads)
    index.match(ads[0])
    extra = generate_searches(301)[-1]
    index.add(extra)
    index.match(ads[0])
    index.remove(extra.id)
