"""What the structures of TAMA, OpIndex, H-Tree and BE-Tree promise inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.algorithms import make
from tamis.errors import InvalidSchema
from tamis.matching import Attribute, Table
from tamis.values import Range


def boxes(seed: int, n: int, m: int, width: float) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    low = random.random((n, m)) * (1 - width)
    return low, low + width * random.random((n, m))


# -- TAMA


def test_tama_is_off_by_a_finest_cell_at_most() -> None:
    low, high = boxes(0, 400, 2, 0.5)
    events = np.random.default_rng(1).random((50, 2))
    n_false = {4: 0, 13: 0}
    for n_levels in n_false:
        matcher = make("tama", ["x", "y"], n_levels=n_levels)
        matcher.add_many(Table.from_boxes(low, high))
        cell = 2.0 ** -(n_levels - 1)
        for event, found in zip(events, matcher.match_many(events), strict=True):
            near = ((low - cell <= event) & (event <= high + cell)).all(axis=1)
            exact = ((low <= event) & (event <= high)).all(axis=1)
            assert set(np.flatnonzero(exact)) <= set(found) <= set(np.flatnonzero(near))
            n_false[n_levels] += len(found) - exact.sum()
    assert n_false[4] > 100 * n_false[13] > 0


def test_tama_keeps_a_constraint_in_the_fewest_cells() -> None:
    for constraint, n_cells in (
        (Range(0, 1), 1),
        (Range(0, 0.49), 1),  # the first half, whose last cell it touches
        (0.3, 1),
        (Range(0.0, 0.74), 2),
        (Range(0.26, 0.99), 2),
    ):
        matcher = make("tama", ["x"], n_levels=3)
        matcher.add({"x": constraint})
        assert matcher._lists.n_entries == n_cells, constraint


# -- OpIndex


def test_op_index_chooses_the_rarest_attribute() -> None:
    matcher = make("op_index", ["x", "y", "z"])
    for _ in range(3):
        matcher.add({"x": Range(0, 1)})
    rare = matcher.add({"x": Range(0, 1), "z": Range(0, 1)})
    assert matcher._pivots[rare] == 2
    matcher.add_many(Table.from_boxes([[np.nan, 0, 0]] * 9, [[np.nan, 1, 1]] * 9))
    late = matcher.add({"x": Range(0, 1), "z": Range(0, 1)})
    assert matcher._pivots[late] == 0
    assert {rare, late} <= set(matcher.match([0.5, np.nan, 0.5]).tolist())


# -- H-Tree


def test_h_tree_splits_wide_constraints() -> None:
    for constraint, n_buckets in ((0.3, 1), (Range(0.1, 0.3), 1), (Range(0, 1), 4), (Range(), 4)):
        matcher = make("h_tree", ["x"], n_cells=4)
        matcher.add({"x": constraint})
        assert matcher._lists.n_entries == n_buckets, constraint
    matcher = make("h_tree", ["x", "y"], n_cells=4)
    matcher.add({"x": Range(0, 1), "y": Range(0, 0.4)})
    assert matcher._lists.n_entries == 4 * 2
    matcher.add({"y": 0.5})
    assert matcher._lists.n_entries == 4 * 2 + 1


def test_h_tree_indexes_the_attributes_that_are_named() -> None:
    attributes = ["x", "y", Attribute("price", 0, 100)]
    matcher = make("h_tree", attributes, indexed=["price"])
    matcher.add({"price": Range(0, 20)})
    matcher.add({"x": Range(0, 1)})
    assert len(matcher._lists) == 5
    assert matcher.match({"price": 90}).tolist() == []
    assert matcher.match({"price": 20, "x": 0.5}).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("h_tree", {"n_cells": 0}),
        ("h_tree", {"indexed": ["z"]}),
        ("h_tree", {"n_cells": 100_000}),
        ("tama", {"n_levels": 0}),
        ("tama", {"n_levels": 40}),
        ("rein", {"n_buckets": 0}),
        ("siena", {"n_buckets": 0}),
        ("be_tree", {"max_size": 0}),
    ],
)
def test_parameters_are_checked(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema, match=r"expected|more than"):
        make(name, ["x", "y"], **parameters)


def test_siena_counts_as_many_comparisons_as_a_subscription_may_have() -> None:
    n = 40_000
    matcher = make("siena", [f"a{m}" for m in range(n)], n_buckets=1)
    matcher.add_many(Table.from_boxes(np.full((1, n), 0.2), np.full((1, n), 0.4)))
    event = np.full(n, 0.3)
    assert matcher.match(event).tolist() == [0]
    event[(2 * n - 2**16) // 2 :] = np.nan  # as many comparisons hold, modulo 2^16
    assert matcher.match(event).tolist() == []


# -- BE-Tree


def lists_of(tree: Any) -> dict[int, list[int]]:
    """The slots of every node that can be reached from the root."""
    found, waiting = {}, [0]
    while waiting:
        node = waiting.pop()
        slots, slot = [], int(tree.head[node])
        while slot >= 0:
            slots.append(slot)
            slot = int(tree.after[slot])
        found[node] = slots
        waiting += [int(half) for half in tree.halves[node] if half >= 0]
        part = int(tree.parts[node])
        while part >= 0:
            waiting.append(int(tree.top[part]))
            part = int(tree.sibling[part])
    return found


def test_be_tree_holds_every_subscription_once_in_lists_that_fit() -> None:
    matcher = make("be_tree", ["x", "y", "z"], max_size=5)
    low, high = boxes(3, 2_000, 3, 0.05)
    matcher.add_many(Table.from_boxes(low, high))
    lists = lists_of(matcher._tree)
    held = sorted(slot for slots in lists.values() for slot in slots)
    assert held == list(range(2_000))
    for node, slots in lists.items():
        assert len(slots) == matcher._tree.size[node] <= matcher._tree.capacity[node]
    visited = max(len(slots) for slots in lists.values())
    assert len(lists) > 200
    assert visited < 100


def test_be_tree_lists_grow_where_nothing_tells_subscriptions_apart() -> None:
    matcher = make("be_tree", ["x"], max_size=5)
    matcher.add_many(Table.from_boxes([[0.4]] * 300, [[0.6]] * 300))
    assert len(lists_of(matcher._tree)) == 2
    assert len(matcher.match([0.5])) == 300


def test_be_tree_goes_back_to_one_list_when_few_are_left() -> None:
    matcher = make("be_tree", ["x", "y"], max_size=10)
    low, high = boxes(5, 500, 2, 0.05)
    for _ in range(3):
        matcher.add_many(Table.from_boxes(low, high))
        n_nodes = int(matcher._tree.state[0])
        matcher.remove_many(np.arange(3, 500))
        lists = lists_of(matcher._tree)
        assert list(lists) == [0]
        assert sorted(lists[0]) == [0, 1, 2]
        matcher.remove_many(np.arange(3))
    assert int(matcher._tree.state[0]) == n_nodes  # freed nodes are used again
