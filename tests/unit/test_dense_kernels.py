"""Dense blocks find exactly what plain NumPy finds, one event at a time and in batches."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.bench import workloads
from tamis.index.blocks import MORE_ROOM
from tamis.index.dense_block import DenseBlock
from tamis.kernels.compiled import IS_COMPILED
from tamis.kernels.dense_build import LINE, N_RANKS
from tamis.kernels.dense_scratch import CHUNK
from tamis.kernels.kd_order import kd_order
from tamis.kernels.scan import Boxes

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="dense blocks need compiled kernels")

inf, nan = np.inf, np.nan
BORDERS = np.array([-inf, -1.7e308, -5, -0.0, 0, 5e-324, 1, 1.5, 2**53, 2.0**53 + 2, 1.7e308, inf])


def block_of(low, high):
    columns = np.arange(low.shape[1], dtype=np.int32)
    return DenseBlock.build(Boxes(columns, np.ascontiguousarray(np.stack([low, high], axis=2))))


def expected(low, high, event):
    """The boxes that hold an event, the slow way."""
    is_free = np.isnan(low) & np.isnan(high)
    return np.nonzero((is_free | ((low <= event) & (event <= high))).all(axis=1))[0]


def check(low, high, events):
    """Compare singly and in batches; returns the number of matches."""
    block = block_of(low, high)
    wanted = [expected(low, high, event) for event in events]
    for event, slots in zip(events, wanted, strict=True):
        out = np.full(block.n_slots + MORE_ROOM + 1, -7, np.int32)
        n_found = block.candidates(event, out)
        assert np.array_equal(np.sort(out[:n_found]), slots)
        assert out[-1] == -7
    for repeats in (1, 3):
        found, offsets = block.slots_of(np.tile(events, (repeats, 1)))
        counts = np.tile(list(map(len, wanted)), repeats)
        assert np.array_equal(np.diff(offsets), counts)
        order = np.lexsort((found, np.repeat(np.arange(len(counts)), counts)))
        assert np.array_equal(found[order], np.concatenate(wanted * repeats))
    return sum(map(len, wanted))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 511, 512, 513, 1000, 9000])
@pytest.mark.parametrize("make", [workloads.make_w1, workloads.make_w2])
def test_workloads(make, n):
    workload = make(n, n_events=50)
    check(workload.low, workload.high, workload.values)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 10, 11, 23])
@pytest.mark.parametrize("seed", [0, 1])
def test_borders(m, seed):
    # Few values, so that bounds, events and edges coincide; at m = 11 and 23 a row has more words.
    random = np.random.default_rng([m, seed])
    n = int(random.integers(1, 2500))
    ends = np.sort(random.choice(BORDERS, (n, m, 2)), axis=2)
    low, high = ends[..., 0].copy(), ends[..., 1].copy()
    is_free = random.random((n, m)) < 0.8
    low[is_free] = high[is_free] = nan
    low[random.random((n, m)) < 0.1] = -inf
    high[np.isnan(high) & ~np.isnan(low)] = inf
    events = random.choice(BORDERS, (40, m))
    events[random.random(events.shape) < 0.1] = nan
    assert check(low, high, events)


def test_ties_are_settled_by_exact_bounds():
    # Bounds one float64 beside the event's value share its code.
    random = np.random.default_rng(5)
    values = random.random(3000)
    events = np.stack([values[:60]] * 4, axis=1)
    near = np.stack([values] * 4, axis=1)
    low = np.where(random.random(near.shape) < 0.1, np.nextafter(near, inf), near)
    high = np.where(random.random(near.shape) < 0.1, np.nextafter(near, -inf), near)
    low[:, 1:], high[:, 1:] = low[:, 1:] - 0.5, high[:, 1:] + 0.5
    assert 20 < check(low, high, events) < 60


def test_every_event_matches_every_box():
    low, high = np.zeros((3 * LINE, 4)), np.ones((3 * LINE, 4))
    assert check(low, high, np.full((20, 4), 0.5)) == 20 * 3 * LINE


@pytest.mark.parametrize("m", [1, 2, 12])
def test_more_candidates_and_ties_than_are_looked_at_at_once(m):
    # All lows are at 0.5 or next to it, as every event is: most boxes tie, in all lines.
    n = (2 * CHUNK // (LINE // 64) + 1) * LINE + 3
    random = np.random.default_rng(m)
    low = random.choice([0.25, 0.5, np.nextafter(0.5, 1)], (n, m), p=[0.5, 0.45, 0.05])
    events = np.full((3, m), 0.5)
    events[1, -1] = np.nextafter(0.5, 1)
    assert check(low, low + 1, events) > n


def test_the_order_prefers_the_attribute_with_the_least_left():
    # The first attribute is met by half of the values only; the gap on the second is wider.
    random = np.random.default_rng(3)
    ranks = np.empty((2 * LINE, 4), np.uint16)
    ranks[:, 0], ranks[:, 2] = 1024, 1
    ranks[:, 1] = random.integers(1, 800, len(ranks))
    ranks[:, 3] = random.integers(1, 1000, len(ranks))
    order = np.arange(len(ranks), dtype=np.int32)
    kd_order(ranks, N_RANKS, LINE, order)
    first, second = ranks[order[:LINE]], ranks[order[LINE:]]
    assert first[:, 1].max() // 8 <= second[:, 1].min() // 8
    assert first[:, 3].max() > second[:, 3].min()


def test_the_order_puts_a_few_narrow_boxes_apart():
    # Halves of all boxes reach as far as all of them; the narrow eighth alone reaches little.
    random = np.random.default_rng(4)
    ranks = random.integers(1, 100, (8 * LINE, 4)).astype(np.uint16)
    narrow = random.permutation(len(ranks))[:LINE]
    ranks[narrow, 2], ranks[narrow, 3] = 1000, 1000
    order = np.arange(len(ranks), dtype=np.int32)
    kd_order(ranks, N_RANKS, LINE, order)
    assert {*order[-LINE:]} == {*narrow}


@pytest.mark.parametrize("n", [1, 16, 17, LINE - 1, LINE, LINE + 1, 5 * LINE + 3, 40 * LINE])
@pytest.mark.parametrize("n_values", [1, 2, 2000])
def test_every_box_has_one_place_in_the_order(n, n_values):
    ranks = np.random.default_rng(n).integers(0, n_values, (n, 6)).astype(np.uint16)
    order = np.arange(n, dtype=np.int32)
    kd_order(ranks, N_RANKS, LINE, order)
    assert np.array_equal(np.sort(order), np.arange(n))


def test_a_batch_with_more_matches_than_room(monkeypatch):
    monkeypatch.setattr("tamis.index.blocks._MIN_ROOM", 1)
    low, high = np.zeros((300, 3)), np.ones((300, 3))
    low[::3, 1] = 0.5
    events = np.random.default_rng(0).random((40, 3))
    assert check(low, high, events) > 40 * 200
