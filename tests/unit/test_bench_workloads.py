"""The workloads have the distributions that DESIGN.md promises."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tamis.bench.events.moving import Movers
from tamis.bench.events.nearby import make_nearby
from tamis.bench.mixed import ATTRIBUTES, generate_events, generate_subscriptions
from tamis.bench.workloads import FULL_SIZES, LEVELS, UnknownWorkload, make, make_w1, make_w2
from tamis.language import Filter
from tamis.language.tree import Near, Not, Or, Within
from tamis.values import Point, distance_m

SCALE = 0.01


@pytest.mark.parametrize("name", FULL_SIZES)
def test_shapes_and_seed(name: str) -> None:
    one, again = make(name, SCALE), make(name, SCALE)
    n, m = round(FULL_SIZES[name] * SCALE), len(one.attributes)
    assert one.low.shape == one.high.shape == one.low_open.shape == one.high_open.shape == (n, m)
    assert one.n_events == 1_000
    assert len(one.events) == m
    assert np.array_equal(one.low, again.low, equal_nan=True)
    assert np.array_equal(one.values, again.values, equal_nan=True)
    assert not np.array_equal(one.low, make(name, SCALE, seed=7).low, equal_nan=True)
    bounded = ~np.isnan(one.low)
    assert np.array_equal(bounded, ~np.isnan(one.high))
    assert (one.low[bounded] <= one.high[bounded]).all()


def test_unknown_workload() -> None:
    with pytest.raises(UnknownWorkload, match="expected one of W1, W2, W3, W4"):
        make("W9")


def test_w1_is_that_of_gem() -> None:
    w = make("W1", SCALE)
    assert w.low.min() >= 0
    assert w.low.max() <= 0.5 <= w.high.min()
    assert w.low.mean() == pytest.approx(0.25, abs=0.01)
    assert w.high.mean() == pytest.approx(0.75, abs=0.01)
    assert w.low_open.mean() == pytest.approx(0.5, abs=0.02)
    assert w.high_open.mean() == pytest.approx(0.5, abs=0.02)
    assert w.values.mean() == pytest.approx(0.5, abs=0.02)


def test_narrow_theta_keeps_low_below_high() -> None:
    w = make_w1(1_000, theta=0.1)
    assert (w.low <= w.high).all()
    assert (w.high - w.low).mean() < 0.5


def test_w2_is_that_of_dexin() -> None:
    w = make("W2", SCALE)
    assert (w.low == w.high).mean() == pytest.approx(0.1, abs=0.01)
    for held in (w.low, w.high, w.values):
        assert np.array_equal(np.round(held * LEVELS) / LEVELS, held)
    assert not w.low_open.any()
    assert not w.high_open.any()


def test_w2_can_be_skewed() -> None:
    even, skewed = make_w2(2_000), make_w2(2_000, zipf=1.0)
    assert np.median(skewed.values) < np.median(even.values) / 10
    assert (skewed.low <= skewed.high).all()


def test_w3_is_that_of_pri_rein() -> None:
    w = make("W3", SCALE)
    assert (np.isfinite(w.low).sum(axis=1) == 5).all()
    assert np.nanmean(w.high - w.low) == pytest.approx(0.25)
    counts = np.isfinite(w.low).mean(axis=0)
    assert counts.min() > 0.08
    assert counts.max() < 0.12
    assert sorted(set(w.priority.tolist())) == list(range(10))
    assert not np.isnan(w.values).any()


def test_w4_is_that_of_mo_tree() -> None:
    w = make("W4", SCALE)
    assert w.attributes[:2] == ("lon", "lat")
    assert (np.isfinite(w.low).sum(axis=1) == 6).all()
    places = (w.high - w.low)[:, :2]
    assert np.nanmin(places) >= 0.005 - 1e-9
    assert np.nanmax(places) <= 0.02 + 1e-9
    assert np.nanmean((w.high - w.low)[:, 2:]) == pytest.approx(1 / 3, abs=0.02)
    shares = np.isfinite(w.low).mean(axis=0)
    assert (np.diff(shares) < 0.01).all()  # ever less popular
    assert shares[0] > 5 * shares[-1]
    present = np.isfinite(w.values).sum(axis=1)
    assert set(present.tolist()) == set(range(15, 21))


def test_dicts_leave_out_what_is_missing() -> None:
    w = make("W4", 0.001, n_events=50)
    for row, event in zip(w.values, w.dicts(w.values), strict=True):
        assert len(event) == np.isfinite(row).sum()


# -- W5


def nodes(node: Filter) -> Iterator[Filter]:
    yield node
    for part in getattr(node, "parts", ()):
        yield from nodes(part)
    if isinstance(node, Not):
        yield from nodes(node.part)


def test_w5_has_its_shares() -> None:
    searches = [list(nodes(one.filter)) for one in generate_subscriptions(5_000)]
    for kinds, share in (((Or,), 0.2), ((Not,), 0.1), ((Near, Within), 0.1)):
        found = sum(any(isinstance(n, kinds) for n in held) for held in searches)
        assert found / len(searches) == pytest.approx(share, abs=0.02)
    names = {n.attribute for held in searches for n in held if hasattr(n, "attribute")}
    assert names == set(ATTRIBUTES)


def test_w5_is_seeded() -> None:
    assert generate_subscriptions(50) == generate_subscriptions(50)
    assert generate_subscriptions(50) != generate_subscriptions(50, seed=7)
    assert generate_events(50) == generate_events(50)


def test_w5_events_have_every_attribute_and_several_tags() -> None:
    events = generate_events(500)
    assert {name for event in events for name in event} == set(ATTRIBUTES)
    assert max(len(event.get("tags", ())) for event in events) > 2
    marks = [event["mark"] for event in events if "mark" in event]
    assert marks.count("LADA") > 2 * marks.count("HYUNDAI")  # Zipf: the first, the third


def test_near_me_is_a_city_of_subscriptions_with_places() -> None:
    nearby, again = make_nearby(500, n_events=20), make_nearby(500, n_events=20)
    assert np.array_equal(nearby.places, again.places)
    assert np.array_equal(nearby.values, again.values, equal_nan=True)
    saved = nearby.subscriptions()
    assert {one.area for one in saved} == {"circle", "square"}
    assert all(one.radius_m is not None and 250 <= one.radius_m <= 1000 for one in saved)
    assert ((~np.isnan(nearby.low)).sum(axis=1) == 4).all()
    corner, other = (Point(*nearby.places[:, :2].min(axis=0)), Point(*nearby.places.max(axis=0)))
    assert distance_m(corner, other) < 150_000
    assert {len(event) for event in nearby.events()} <= set(range(14, 20))


def test_movers_are_checked_against_the_oracle() -> None:
    movers = Movers(make_nearby(300, n_events=10))
    for one in movers.next_moves(100):
        movers.move(one)
    movers.check()
    id, place = movers.next_moves(1)[0]
    movers.move((id, place))
    assert movers.index[id].location == Point(*place)
