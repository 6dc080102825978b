"""Matches of a real trace, counted once and pinned: by events and by subscriptions."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from tamis import Event, Index, Subscription
from tamis.events import EventStore
from tamis.language import evaluate
from tests.golden.flights import make_subscriptions, read_flights

NOON = datetime(2013, 1, 10, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def flights() -> list[Event]:
    return read_flights()


@pytest.fixture(scope="module")
def subscriptions(flights: list[Event]) -> list[Subscription]:
    return make_subscriptions(flights)


def test_the_matches_of_january(flights: list[Event], subscriptions: list[Subscription]) -> None:
    index = Index()
    index.add_many(subscriptions)
    matches = index.match_batch(flights)
    counts = Counter(id for found in matches for id in found)
    assert len({event.id for event in flights}) == len(flights) == 27_004
    assert counts.total() == 663_968
    assert len(counts) == 587
    assert max(counts.values()) == counts["p162"] == 14_824
    assert sum(not found for found in matches) == 281


def test_the_oracle_agrees(flights: list[Event], subscriptions: list[Subscription]) -> None:
    index = Index()
    index.add_many(subscriptions)
    some = flights[::150]
    n_matches = 0
    for event, found in zip(some, index.match_batch(some), strict=True):
        expected = {one.id for one in subscriptions if evaluate(one.condition, event.attributes)}
        assert set(found) == expected
        n_matches += len(expected)
    assert n_matches == 4_385


def test_who_asks_during_a_day(flights: list[Event], subscriptions: list[Subscription]) -> None:
    """Flights are inserted as they leave; every hour some people ask what is in the air."""
    store = EventStore()
    left = iter(flights)
    waiting = next(left)
    found_by_hour = []
    for hour in range(24):
        now = NOON + timedelta(hours=hour)
        new = []
        while waiting.time is not None and waiting.time <= now:
            new.append(waiting)
            waiting = next(left)
        store.insert_many(new, now)
        answers = store.match_batch(subscriptions[:200], now)
        in_the_air = [one for one in flights if one.time <= now < one.until]  # type: ignore[operator]
        for one, answer in zip(subscriptions[:200:20], answers[::20], strict=True):
            assert set(answer) == {
                event.id for event in in_the_air if evaluate(one.condition, event.attributes)
            }
        found_by_hour.append(sum(map(len, answers)))
        store.expire(now)
    assert found_by_hour == [
        210, 304, 395, 383, 324, 377, 301, 340, 386, 493, 477, 455,
        485, 451, 363, 252, 144, 61, 41, 26, 22, 0, 1, 50,
    ]  # fmt: skip
