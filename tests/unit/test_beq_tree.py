"""BEQ-Tree: what its quadtree and its orders promise inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.algorithms import make
from tamis.algorithms.kernels.beq_tree import DEPTH, NOWHERE
from tamis.errors import InvalidSchema
from tamis.matching import NotEqual
from tamis.values import Range


def check_leaves(tree: Any) -> None:
    """Every event is in one leaf, and each order is that of the values."""
    quads, seen = tree._quads, []
    for leaf in range(tree.n_leaves):
        slots = quads.slots[leaf, : quads.size[leaf]]
        seen += slots.tolist()
        for m in range(tree.n_attributes):
            values = tree.events[slots, m]
            order = quads.order[leaf, m, : quads.n_ordered[leaf, m]]
            assert sorted(order.tolist()) == np.flatnonzero(~np.isnan(values)).tolist()
            assert (np.diff(values[order]) >= 0).all()
    assert sorted(seen) == np.flatnonzero(tree.has_event).tolist()


@pytest.mark.parametrize("chunk", [1, 7, 400])
def test_leaves_are_split_and_stay_in_order(chunk: int) -> None:
    random = np.random.default_rng(chunk)
    events = random.random((400, 3)) ** 3  # crowded at the origin
    events[random.random(events.shape) < 0.1] = np.nan
    tree = make("beq_tree", ["x", "y", "z"], capacity=8)
    for first in range(0, 400, chunk):
        tree.add_events(events[first : first + chunk])
    assert tree.n_leaves > 60
    check_leaves(tree)
    tree.remove_events(random.permutation(400)[:250])
    check_leaves(tree)
    tree.add_events(events[:100])
    check_leaves(tree)


def test_a_crowd_in_one_place_gets_leaves_behind_each_other() -> None:
    tree = make("beq_tree", ["x", "y"], capacity=4)
    tree.add_events([[0.3, 0.7]] * 30 + [[0.3 + 2.0**-DEPTH / 8, 0.7]])
    check_leaves(tree)
    assert tree.match_subscription({"x": 0.3}).tolist() == list(range(30))
    tree.remove_events(list(range(0, 30, 2)))
    check_leaves(tree)
    assert tree.match_subscription({"x": 0.3}).tolist() == list(range(1, 30, 2))


def test_events_without_a_place_are_apart() -> None:
    nan = np.nan
    tree = make("beq_tree", ["a", "lon", "lat"], space=["lon", "lat"])
    tree.add_events([[0.5, nan, 0.5], [0.5, 0.5, nan], [0.5, 0.5, 0.5], [nan, nan, nan]])
    apart = tree._quads.leaf[NOWHERE]
    assert tree._quads.slots[apart, : tree._quads.size[apart]].tolist() == [0, 1, 3]
    assert tree.match_subscription({}).tolist() == [0, 1, 2, 3]
    assert tree.match_subscription({"lat": 0.5}).tolist() == [0, 2]
    assert tree.match_subscription({"lon": NotEqual(0.1), "a": 0.5}).tolist() == [1, 2]
    assert tree.match_subscription({"lon": 0.5, "lat": NotEqual(0.1)}).tolist() == [2]


def test_a_window_counts_only_what_it_must_and_finds_the_same() -> None:
    random = np.random.default_rng(5)
    events = random.random((2_000, 3))
    tree = make("beq_tree", ["x", "y", "z"], capacity=16)
    tree.add_events(events)
    for low, high in ((0.0, 1.0), (0.25, 0.75), (0.3, 0.31), (-5.0, 0.5), (0.9, 7.0)):
        asked = {"x": Range(low, high), "y": Range(low, high), "z": Range(0.2, 0.6)}
        inside = ((events[:, :2] >= low) & (events[:, :2] <= high)).all(axis=1)
        inside &= (events[:, 2] >= 0.2) & (events[:, 2] <= 0.6)
        assert tree.match_subscription(asked).tolist() == np.flatnonzero(inside).tolist()


def test_leaves_that_events_have_left_are_given_back() -> None:
    random, sizes = np.random.default_rng(8), []
    tree = make("beq_tree", ["x", "y"], capacity=8)
    kept = random.random((20, 2))
    tree.add_events(kept)
    for step in range(40):
        corner = random.random(2) * 0.9
        events = corner + random.random((200, 2)) / 50
        ids = tree.add_events(events)
        window = {"x": Range(corner[0], 1), "y": Range(corner[1], 1)}
        n_kept = (kept >= corner).all(axis=1).sum()
        assert len(tree.match_subscription(window)) == 200 + n_kept, step
        tree.remove_events(ids)
        sizes.append(tree.n_leaves)
        assert tree.match_subscription({}).tolist() == list(range(20))
    assert max(sizes[20:]) <= 2 * max(sizes[:4])


def test_parameters_that_make_no_tree_are_refused() -> None:
    for wrong in (
        {"capacity": 0},
        {"capacity": 65_536},
        {"space": []},
        {"space": ["x", "x"]},
        {"space": ["q"]},
        {"space": ["x", "y", "z"]},
    ):
        with pytest.raises(InvalidSchema, match="expected"):
            make("beq_tree", ["x", "y", "z"], **wrong)
