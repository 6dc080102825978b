"""What Pri-REIN says beyond the contract: the order within and between priorities."""

from __future__ import annotations

import numpy as np

from tamis.algorithms import make
from tamis.matching import Table
from tamis.values import Range


def test_the_example_of_the_paper_finds_the_higher_priority_first() -> None:
    matcher = make("pri_rein", ["a1", "a2"])
    s1 = matcher.add({"a1": Range(2, 8), "a2": Range(6, 12)}, priority=1)
    matcher.add({"a1": Range(7, 9), "a2": Range(1, 5)}, priority=0)
    s3 = matcher.add({"a1": Range(5, 7), "a2": Range(9, 11)}, priority=0)
    assert matcher.match({"a1": 6, "a2": 10}).tolist() == [s3, s1]


def test_within_a_priority_first_come_first_served_also_after_removals() -> None:
    matcher = make("pri_rein", ["x"])
    for _ in range(5):
        matcher.add({"x": Range(0, 1)}, priority=3)
    matcher.remove(1)
    assert matcher.match([0.5]).tolist() == [0, 2, 3, 4]
    assert matcher.add({"x": Range(0, 1)}, priority=3) == 1
    assert matcher.match([0.5]).tolist() == [0, 2, 3, 4, 1]


def test_a_part_is_a_priority() -> None:
    matcher = make("pri_rein", ["x"])
    matcher.add_many(Table.from_boxes([[0.0]] * 4, [[1.0]] * 4), [9, 0, 4, 0])
    parts = [part.tolist() for part in matcher.match_parts([0.5])]
    assert parts == [[1, 3], [], [], [], [2], [], [], [], [], [0]]


def test_s_puts_the_less_selective_first_whether_added_at_once_or_one_by_one() -> None:
    random = np.random.default_rng(0)
    width = random.random((200, 2))
    low = random.random((200, 2)) * 0.1 + 0.45 - width / 2
    priority = random.integers(0, 3, 200)
    table = Table.from_boxes(low, low + width)
    at_once, one_by_one = make("pri_rein_s", ["x", "y"]), make("pri_rein_s", ["x", "y"])
    at_once.add_many(table, priority)
    for row in range(200):
        one_by_one.add_many(
            Table.from_boxes(low[[row]], low[[row]] + width[[row]]), priority[[row]]
        )
    found = at_once.match([0.5, 0.5]).tolist()
    assert found == one_by_one.match([0.5, 0.5]).tolist()
    clipped = np.prod(np.minimum(low + width, 1) - np.maximum(low, 0), axis=1)
    assert len(found) > 20
    assert found == sorted(found, key=lambda id: (priority[id], -clipped[id]))
