"""Cell of subscription matching: one subscription finds the events that are valid."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tamis.bench.events.kept import START, Kept, check, fill, make_boxes, make_near_me
from tamis.bench.events.others import keepers
from tamis.bench.measure import middle_of, spread, time_each
from tamis.events import EventStore

ROUNDS = 3
LIMIT = 10
N_OTHER = 200  # questions that the others are asked


def measure_subscriptions(n: int) -> dict[str, Any]:
    """Boxes beside the others, then near me; all answers, newest first, and the first ten."""
    kept = make_boxes(n)
    store, _ = fill(kept, n)
    found: dict[str, Any] = {"n_events": n, "n_questions": len(kept.questions)}
    found["n_checked_events"] = check(kept, store, n)
    others = keepers(kept, n)
    rounds: dict[str, list[dict[str, float]]] = {}
    for _ in range(ROUNDS):
        _ask(store, kept, "boxes", rounds)
        for name, keeper in others.items():
            some = range(min(N_OTHER, len(kept.questions)))
            time_each(keeper.match, some[:20])
            rounds.setdefault(name, []).append(spread(time_each(keeper.match, some)))
    found["matches_mean"] = _matches(store, kept)
    found["n_segments"] = store.stats()["n_segments"]
    del kept, store, others
    kept = make_near_me(n)
    store, _ = fill(kept, n)
    found["near_me_n_checked_events"] = check(kept, store, n)
    for _ in range(ROUNDS):
        _ask(store, kept, "near_me", rounds)
    found["near_me_matches_mean"] = _matches(store, kept)
    return {**found, **{name: middle_of(several) for name, several in rounds.items()}}


def _ask(
    store: EventStore, kept: Kept, name: str, rounds: dict[str, list[dict[str, float]]]
) -> None:
    for label, limit in ((name, None), (f"{name}_limited", LIMIT)):
        store.match_batch(kept.questions[:50], now=START)
        ask = partial(store.match, now=START, limit=limit)
        times = time_each(ask, kept.questions)
        rounds.setdefault(label, []).append(spread(times))


def _matches(store: EventStore, kept: Kept) -> float:
    answers = store.match_batch(kept.questions, now=START)
    return round(float(np.mean([len(one) for one in answers])), 2)
