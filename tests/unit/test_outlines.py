"""Outlines: a subscription with a place comes back as it was given."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamis import Index, Point, Subscription
from tamis.index.outlines import outline_of
from tamis.index.ranges import ranges_of
from tamis.language.tree import InRange, Not, all_of, any_of
from tamis.values import Range

INF, TINY, MOST = math.inf, 5e-324, 1.7976931348623157e308

RANGES = [
    Range(1.0, 2.0),
    Range(1.0, 2.0, "()"),
    Range(1.0, math.nextafter(1.0, 2.0), "()"),
    Range(-0.0, 1.0),
    Range(0.0, 1.0, "(]"),
    Range(-0.0, 1.0, "(]"),
    Range(-1.0, 0.0, "[)"),
    Range(-1.0, -0.0, "[)"),
    Range(-1.0, -0.0),
    Range(-TINY, TINY, "()"),
    Range(-INF, INF),
    Range(-INF, INF, "()"),
    Range(-MOST, MOST, "()"),
    Range(1, 2.0),
    Range(2**53 + 1, None),
    Range(None, 3.5, "[)"),
    Range(3.0, 3.0),
    Range(5.0, 3.0),
]
FILTERS: list[Any] = [
    *(InRange("a", one) for one in RANGES),
    all_of([InRange(name, one) for name, one in zip("bdac", RANGES, strict=False)]),
    all_of([InRange("a", RANGES[0]), InRange("a", RANGES[2])]),
    any_of([InRange("b", RANGES[0]), Not(InRange("a", RANGES[2]))]),
    True,
    False,
    "kind = 'café ☕' AND price < 20 AND NOT tag IN ('x', 'y')",
    "time > TIMESTAMP '2026-01-01T00:00:00Z' OR name LIKE 'ab%'",
    "distance(location, 1, 1) < 5 AND x = 1.0 AND y = 1",
]


def _subscriptions() -> list[Subscription]:
    made = []
    for n, one in enumerate(FILTERS * 2):
        made.append(
            Subscription(
                f"s{n}", one, n % 10, ("", "zoe")[n % 2],
                {"schedule": "daily", "n": [n]} if n % 3 == 0 else None,
                location=(n / 7, -n / 9), radius_m=(100, 0.1 + n)[n % 2],
                area=("circle", "square")[n // 2 % 2],
            )
        )  # fmt: skip
    return made


def _spelt(one: Subscription) -> str:
    """All of it; equal numbers may still be 1 and 1.0, or 0.0 and -0.0."""
    return repr(one) + repr(one.to_json())


def test_what_was_added_is_what_comes_back(tmp_path: Path) -> None:
    given = _subscriptions()
    index = Index()
    index.add_many(given[:10])
    index.add(Subscription("fixed", "a < 1", owner="max"))
    index.add_many(given[10:])
    _check(index, given)
    index.save(tmp_path / "one")
    opened = Index.open(tmp_path / "one", verify=True)
    _check(opened, given)
    # Some that were there and some that came, under other numbers.
    opened.remove("s3")
    given[4] = Subscription("s4", "a < 7", 1, "eve", location=(1, 1), radius_m=5)
    opened.update(given[4])
    opened.move("s5", 50, 60)
    given[5] = given[5].at((50, 60))
    del given[3]
    _check(opened, given)
    opened.save(tmp_path / "two")
    _check(Index.open(tmp_path / "two"), given)


def _check(index: Index, given: list[Subscription]) -> None:
    assert [_spelt(index[one.id]) for one in given] == [_spelt(one) for one in given]
    assert index["fixed"].owner == "max"
    told = {one.id: (one.owner, dict(one.delivery)) for one in given}
    deliveries = index.deliveries()
    assert len(deliveries) == len(given) + 1
    assert all(one in deliveries for one in told.values())


def test_an_index_of_nothing_else_needs_no_places(tmp_path: Path) -> None:
    given = _subscriptions()
    index = Index()
    index.add_many(given)
    index.save(tmp_path / "saved")
    opened = Index.open(tmp_path / "saved")
    assert [_spelt(opened[one.id]) for one in given] == [_spelt(one) for one in given]
    assert [owner for owner, _ in opened.deliveries()] == [one.owner for one in given]


def test_a_subscription_that_is_handed_out_is_nobody_elses() -> None:
    index = Index()
    index.add(Subscription("a", "x < 1", delivery={"n": 1}, location=(0, 0), radius_m=1))
    first = index["a"]
    index.move("a", 1, 1)
    assert first.location == Point(0, 0)
    first.delivery["n"] = 2  # type: ignore[index]
    assert index["a"].delivery == {"n": 1}


@pytest.mark.parametrize("side", [Range(-0.0, 1.0, "(]"), Range(-1.0, -0.0, "[)")])
def test_what_bounds_do_not_tell_is_spelt(side: Range) -> None:
    one = InRange("a", side)
    assert outline_of(one, ranges_of(one)).spelt
    other = InRange("a", Range(-1.0, 1.0, side.ends))
    assert not outline_of(other, ranges_of(other)).spelt


def test_filters_that_are_the_same_are_kept_once() -> None:
    random = np.random.default_rng(3)
    index = Index()
    for n in range(300):
        low = float(random.uniform(0, 1))
        ranges = all_of([InRange("a", Range(low, 2.0)), InRange("b", Range(low, 3.0, "[)"))])
        both = (ranges, "kind = 'lunch' OR price < 20")[n % 2]
        index.add(Subscription(f"s{n}", both, location=(0, 0), radius_m=10))
    outlines = index._archive.recent
    assert len(set(map(id, outlines))) == 2
    assert index.stats()["memory"]["subscriptions"] < 300 * 20


def test_who_must_be_asked_is_asked_beside_others(tmp_path: Path) -> None:
    index = Index()
    index.add_many(
        Subscription(f"s{n}", f"a BETWEEN {n}.0 AND {n + 2}.5", location=(0, 0), radius_m=1000)
        for n in range(5)
    )
    index.save(tmp_path / "saved")
    for one in (index, Index.open(tmp_path / "saved")):
        # An event with a Range, or with several values, is decided by the filters themselves.
        event = {"a": Range(2.6, 2.9), "location": Point(0, 0.001)}
        assert sorted(one.match(event)) == ["s1", "s2"]
        assert sorted(one.match({**event, "location": [Point(0, 0.001), Point(5, 5)]})) == [
            "s1", "s2",
        ]  # fmt: skip
        assert one.match({**event, "location": Point(0, 0.01)}) == []
