"""Equal boxes share a slot, and every subscription stays its own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamis import Index, Subscription, evaluate

NAN = float("nan")
ENDS = [(-np.inf, 1.0), (0.0, 1.0), (0.0, np.inf), (1.0, 1.0), (-0.0, 2.0), (NAN, 1.0), (NAN, NAN)]


def boxes(rnd: random.Random, n: int) -> dict[str, Any]:
    """Few different boxes, some differing only in an open end or in what is unconstrained."""
    chosen = [[rnd.choice(ENDS) for _ in range(2)] for _ in range(n)]
    bounds = np.array(chosen)
    opened = np.array([[rnd.random() < 0.3 for _ in range(4)] for _ in range(n)])
    low_open = opened[:, :2] & (bounds[:, :, 0] < 1)
    high_open = opened[:, 2:] & (bounds[:, :, 1] > 1)
    return {
        "attributes": ["x", "y"], "low": bounds[:, :, 0], "high": bounds[:, :, 1],
        "ids": [f"s{i}" for i in range(n)], "low_open": low_open, "high_open": high_open,
        "priority": np.array([rnd.randrange(10) for _ in range(n)]),
    }  # fmt: skip


def check(index: Index, saved: dict[str, Subscription]) -> None:
    values = [NAN, -np.inf, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, np.inf]
    events: list[dict[str, Any]] = [{"x": x, "y": y} for x in values for y in values]
    events += [{"x": [0.0, 1.0], "y": 1}, {"y": 2**53 + 1}, {}]
    for event in events:
        wanted = {id for id, one in saved.items() if evaluate(one.condition, event)}
        for told in (index.match(event), list(index.match_iter(event))):
            assert len(told) == len(set(told))
            assert set(told) == wanted
            levels = [saved[id].priority for id in told]
            assert levels == sorted(levels)


@pytest.mark.parametrize("seed", range(4))
def test_shared_boxes_are_changed_saved_and_opened(seed: int, tmp_path: Path) -> None:
    rnd = random.Random(seed)
    index = Index.from_boxes(**boxes(rnd, 400))
    saved = {id: index[id] for id in (f"s{i}" for i in range(400))}
    n_different = len({(repr(one.filter)) for one in saved.values()})
    assert index.stats()["n_slots"] <= n_different + 40  # 0.0 and -0.0 are two boxes
    assert index.stats()["n_shared"] == 400 - index.stats()["n_slots"]
    check(index, saved)
    for round in range(3):
        for id in rnd.sample(sorted(saved), 90):
            if rnd.random() < 0.6:
                index.remove(id)
                del saved[id]
            else:
                saved[id] = Subscription(id, saved[rnd.choice(sorted(saved))].filter, round)
                index.update(saved[id])
        check(index, saved)
        index.save(tmp_path / str(round))
        index = Index.open(tmp_path / str(round))
        check(index, saved)
        assert {id: index[id] for id in saved} == saved


def test_a_million_equal_boxes_cost_one_slot(tmp_path: Path) -> None:
    n = 1_000_000
    index = Index.from_boxes(["x"], np.zeros((n, 1)), np.ones((n, 1)))
    stats = index.stats()
    assert (stats["n_slots"], stats["n_shared"]) == (1, n - 1)
    assert stats["shared_bytes"] > 16 * (n - 1)
    assert len(index.match_batch({"x": np.array([0.5, 2.0])}).rows) == n
    for row in range(1_000):
        index.remove(str(row))
    index.save(tmp_path / "one")
    opened = Index.open(tmp_path / "one")
    assert opened.stats()["n_slots"] == 1
    assert opened.stats()["n_shared"] == len(opened) - 1 == n - 1_001
    assert len(opened.match({"x": 0.5})) == n - 1_000
    assert "999" not in opened
    assert opened["1000"] == Subscription("1000", "x BETWEEN 0.0 AND 1.0")
