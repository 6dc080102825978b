"""R*-Tree: what stands between libspatialindex and the interface."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tamis.algorithms import load, make
from tamis.errors import MissingExtra
from tamis.matching import Table
from tamis.values import Range


def test_without_rtree_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rtree.index", None)
    assert load("r_star_tree").capabilities.matches_subscriptions
    with pytest.raises(MissingExtra, match=r"pip install 'tamis\[bench\]'"):
        make("r_star_tree", ["x"])


def test_packed_and_inserted_boxes_are_found_and_deleted() -> None:
    pytest.importorskip("rtree")
    random = np.random.default_rng(0)
    low = random.random((600, 3)) * 0.8
    high = low + 0.2
    tree = make("r_star_tree", ["x", "y", "z"])
    tree.add_many(Table.from_boxes(low[:300], high[:300]))
    tree.add_many(Table.from_boxes(low[300:], high[300:]))
    tree.remove_many(list(range(100, 500)))
    left = np.r_[0:100, 500:600]
    for event in random.random((30, 3)):
        is_inside = ((low[left] <= event) & (event <= high[left])).all(axis=1)
        assert tree.match(event).tolist() == left[is_inside].tolist()
    assert len(tree._tree._tree) == 200


def test_an_event_spans_the_domain_where_it_lacks_a_value() -> None:
    pytest.importorskip("rtree")
    tree = make("r_star_tree", ["x", "y"])
    tree.add_events([[0.5, np.nan], [np.nan, np.nan], [0.5, 0.5], [7.0, -np.inf]])
    assert tree._event_tree._tree.bounds == [0.0, 0.0, 1.0, 1.0]
    assert tree.match_subscription({"x": Range(0.4, 0.6)}).tolist() == [0, 2]
    assert tree.match_subscription({"y": Range(high=0.6)}).tolist() == [2, 3]
    assert tree.match_subscription({"x": Range(low=1)}).tolist() == [3]
    assert tree.match_subscription({}).tolist() == [0, 1, 2, 3]


def test_expired_events_leave_the_tree_when_they_are_met() -> None:
    pytest.importorskip("rtree")
    tree = make("r_star_tree", ["x", "y"])
    tree.add_events([[0.1, 0.5], [0.1, 0.6], [0.9, 0.5]], until=[1, 5, 1])
    assert tree.match_subscription({"x": Range(0, 0.2)}, now=3).tolist() == [1]
    assert (tree.n_events, len(tree._event_tree._tree)) == (2, 2)
