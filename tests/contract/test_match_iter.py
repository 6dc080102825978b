"""match_iter tells what match tells, as early as it can, for every kind of event."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tamis import Event, Index, Point, Range, Subscription, col, evaluate
from tamis.index import express

N_SUBSCRIPTIONS = 1_500
EVENTS: dict[str, Any] = {
    "plain": {"x": 0.4, "y": 0.6, "brand": "b1"},
    "an attribute missing": {"y": 0.5},
    "unknown attributes": {"z": 1, "x": 0.2},
    "an Event": Event("e", {"x": 0.5, "y": 0.1}),
    "several texts": {"brand": ["b1", "b2"], "x": 0.3},
    "several numbers": {"x": [0.1, 0.9], "y": 0.5},
    "a Range": {"x": Range(0.2, 0.4), "y": 0.5},
    "beyond 2^53": {"x": 2**53 + 1, "y": 0.5},
    "a point": {"where": Point(1.0, 1.0), "y": 0.5},
    "nothing": {},
}


def filter_of(rnd: random.Random) -> Any:
    low, high = sorted((rnd.random(), rnd.random()))
    x, y = col("x").between(low, high), col("y") < rnd.random()
    brand = col("brand") == f"b{rnd.randrange(4)}"
    return rnd.choice([
        x, x & y, x | brand, x & ~brand, brand, y & ~(col("x") < low),
        col("where").distance(1.0, 1.0) < 1000 * rnd.random(), col("x") > 2.0**53,
        col("x").between(0.25, 0.75),
    ])  # fmt: skip


@pytest.fixture(scope="module")
def saved() -> dict[str, Subscription]:
    rnd = random.Random(11)
    made = [
        Subscription(f"s{n}", filter_of(rnd), priority=min(9, int(rnd.expovariate(0.3))))
        for n in range(N_SUBSCRIPTIONS)
    ]
    return {one.id: one for one in made}


@pytest.fixture(params=["express", "no express"])
def index(
    request: pytest.FixtureRequest, saved: dict[str, Subscription], monkeypatch: pytest.MonkeyPatch
) -> Index:
    if request.param == "express":
        monkeypatch.setattr(express, "MIN_SLOTS", 256)
        monkeypatch.setattr(express, "SMALL_SHARE", 0.4)
    index = Index()
    index.add_many(saved.values())
    index._engine.wait_for_merging()  # an express goes with its block
    return index


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_it_tells_what_match_tells(
    index: Index, saved: dict[str, Subscription], event: Any
) -> None:
    told = list(index.match_iter(event))
    assert len(told) == len(set(told))
    assert set(told) == {id for id, one in saved.items() if evaluate(one.condition, event)}
    levels = [saved[id].priority for id in told]
    assert levels == sorted(levels)
    assert sorted(told) == sorted(index.match(event))


def test_the_express_is_made_when_first_asked_for(index: Index) -> None:
    index.match(EVENTS["plain"])
    assert index.stats()["memory"]["express"] == 0
    list(index.match_iter(EVENTS["plain"]))
    made = index.stats()["memory"]["express"]
    assert (made > 0) == (express.MIN_SLOTS == 256)


def test_who_joins_a_filter_with_a_higher_priority_comes_early(index: Index) -> None:
    event = EVENTS["plain"]
    list(index.match_iter(event))
    for priority in (5, 0, 3, 0):
        index.add(Subscription(f"late{priority}{len(index)}", "x BETWEEN 0.25 AND 0.75", priority))
    told = [index[id].priority for id in index.match_iter(event)]
    assert told == sorted(told)
    assert sum(id.startswith("late") for id in index.match_iter(event)) == 4


def test_changes_after_the_call_are_not_seen(index: Index) -> None:
    event = EVENTS["plain"]
    before = sorted(index.match(event))
    told = index.match_iter(event)
    index.remove(before[0])
    index.add(Subscription("new", "x < 1", priority=0))
    index.update(Subscription(before[1], "FALSE"))
    assert sorted(told) == before


def test_a_bad_event_is_refused_at_once(index: Index) -> None:
    with pytest.raises(ValueError, match="bytes"):
        index.match_iter({"a": b"bytes"})
