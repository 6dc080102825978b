"""Ranges: which filters need no normal form, and what they become."""

from __future__ import annotations

import math

import pytest

from tamis import Index, Subscription
from tamis.index.ranges import ranges_of
from tamis.language.tree import InRange
from tamis.values import Range

INF = math.inf


@pytest.mark.parametrize("x", [-INF, -5e-324, 0.0, 3.0, 2.0**53, INF])
def test_a_point_is_a_range(x: float) -> None:
    ranges = ranges_of(InRange("a", Range(x, x)))
    assert ranges is not None
    assert (ranges.lows, ranges.highs) == ([x], [x])
    index = Index()
    index.add(Subscription("point", InRange("a", Range(x, x))))
    others = (math.nextafter(x, -INF), math.nextafter(x, INF))
    assert index.match({"a": x}) == ["point"]
    assert [index.match({"a": other}) for other in others if other != x] == [[]] * (
        len(set(others) - {x})
    )


@pytest.mark.parametrize(
    "empty", [Range(3.0, 3.0, "(]"), Range(3.0, 3.0, "[)"), Range(3.0, 3.0, "()"), Range(5.0, 3.0)]
)
def test_a_range_without_numbers_is_none(empty: Range) -> None:
    assert ranges_of(InRange("a", empty)) is None
    index = Index()
    index.add(Subscription("nobody", InRange("a", empty)))
    assert [index.match({"a": x}) for x in (3.0, 4.0, 5.0)] == [[], [], []]
