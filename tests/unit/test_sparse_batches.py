"""Sparse blocks record by record: what plain NumPy finds, for many events at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tamis.bench import workloads
from tamis.index.sparse_block import SparseBlock
from tamis.kernels.compiled import IS_COMPILED
from tamis.kernels.scan import Constraints
from tamis.kernels.sparse_batch import GROUP, MAX_AXES, PIECE, n_places
from tamis.kernels.sparse_records import MAX_RECORD
from tamis.kernels.sparse_vectors import TABLE

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="rows of bits need compiled kernels")

inf, nan = np.inf, np.nan
BORDERS = np.array([-inf, -1.7e308, -5, -0.0, 0, 5e-324, 1, 1.5, 2**53, 2.0**53 + 2, 1.7e308, inf])


def block_of(low, high):
    """The block of boxes f8[P, C], NaN = unconstrained; its arrays as those of a snapshot."""
    is_bound = ~np.isnan(low)
    start = np.concatenate([[0], np.cumsum(is_bound.sum(axis=1))]).astype(np.int64)
    column = np.nonzero(is_bound)[1].astype(np.int32)
    block = SparseBlock.build(Constraints(start, column, low[is_bound], high[is_bound]))
    for array in (*block.bounds, *block.arrays().values()):
        array.flags.writeable = False
    return block


def expected(low, high, events):
    is_free = np.isnan(low)
    found = [(is_free | ((low <= x) & (x <= high))).all(axis=1).nonzero()[0] for x in events]
    return np.concatenate(found), np.array([len(slots) for slots in found])


def check_found(found, low, high, events):
    """Compare with the slow way; returns the number of matches."""
    slots, offsets = found
    wanted, counts = expected(low, high, events)
    assert np.array_equal(np.diff(offsets), counts)
    assert np.array_equal(
        slots[np.lexsort((slots, np.repeat(np.arange(len(counts)), counts)))], wanted
    )
    return len(wanted)


def check(low, high, events):
    return check_found(block_of(low, high)._slots_by_record(events), low, high, events)


def wide_boxes(random, n, m, n_used):
    """Boxes that nothing selective leads to: some columns of each have a wide interval."""
    low = random.random((n, m)) * 0.5
    high = low + 0.3 + 0.2 * random.random((n, m))
    is_free = np.argsort(random.random((n, m)), axis=1) >= n_used
    low[is_free] = high[is_free] = nan
    return low, high


@pytest.mark.parametrize("n", [1, 15, 17, 200, PIECE, PIECE + 1, 6000])
@pytest.mark.parametrize("n_events", [1, 63, 512, 513, GROUP])
def test_strips(n, n_events):
    workload = workloads.make_w3(n, n_events=n_events)
    block = block_of(workload.low, workload.high)
    assert n < 200 or n_places(block._part) >= n
    found = block._slots_by_record(workload.values)
    check_found(found, workload.low, workload.high, workload.values)


@pytest.mark.parametrize("m", [1, 2, 7, TABLE - 3, TABLE - 1, TABLE, MAX_AXES])
@pytest.mark.parametrize("n_used", [1, 3, MAX_RECORD, MAX_RECORD + 3])
def test_axes_and_constraints(m, n_used):
    # Beyond MAX_RECORD a record has no room for all; with one axis the cells are far from full.
    random = np.random.default_rng([m, n_used])
    low, high = wide_boxes(random, 1500, m, n_used)
    events = random.random((150, m))
    events[random.random(events.shape) < 0.05] = nan
    check(low, high, events)


@pytest.mark.parametrize("m", [2, 5, 20])
def test_borders(m):
    # Few values, so that bounds, events and edges coincide.
    random = np.random.default_rng(m)
    ends = np.sort(random.choice(BORDERS, (2000, m, 2)), axis=2)
    low, high = ends[..., 0].copy(), ends[..., 1].copy()
    is_free = random.random(low.shape) < 1 - 3 / (m + 3)
    low[is_free] = high[is_free] = nan
    is_point = random.random(low.shape) < 0.2
    high[is_point] = low[is_point]
    events = random.choice(BORDERS, (300, m))
    events[random.random(events.shape) < 0.1] = nan
    assert check(low, high, events) > 100


def test_ties_are_settled_by_exact_bounds():
    # Bounds of the first attribute are an event's value, or one float64 beside it.
    random = np.random.default_rng(5)
    low, high = wide_boxes(random, 40_000, 4, 3)
    values = random.random(200)
    at = random.choice(values, len(low))
    low[:, 0] = np.where(random.random(len(low)) < 0.5, np.nextafter(at, inf), at)
    high[:, 0] = inf
    events = random.random((200, 4))
    events[:, 0] = values
    assert check(low, high, events) > 200


def test_events_that_nothing_matches():
    random = np.random.default_rng(6)
    low, high = wide_boxes(random, 2000, 10, 4)
    assert check(low, high, np.full((70, 10), 7.0)) == 0
    assert check(low, high, np.full((70, 10), nan)) == 0


def test_it_pays_for_many_events_and_groups_are_put_together():
    workload = workloads.make_w3(20_000, n_events=2 * GROUP + 1)
    block = block_of(workload.low, workload.high)
    events = workload.values
    assert block._pays_by_record(events)
    assert not block._pays_by_record(events[:10])
    assert not block._pays_by_record(np.full((GROUP, 50), nan))
    check_found(block.slots_of(events), workload.low, workload.high, events)
    assert block.memory_bytes() > block_of(workload.low, workload.high).memory_bytes()


@pytest.mark.parametrize("n_rooms", [1, 2])
def test_where_everything_matches_it_is_left_to_one_event_after_another(monkeypatch, n_rooms):
    monkeypatch.setattr("tamis.index.sparse_block._MAX_ROOMS", n_rooms)
    monkeypatch.setattr("tamis.index.sparse_block._MORE_ROOM", 0)
    low = np.full((5 * PIECE, 8), nan)
    random = np.random.default_rng(8)
    low[random.random(low.shape) < 0.5] = 0.0
    low[:, 0] = 0.0
    events = np.full((500, 8), 0.5)
    block = block_of(low, low + 1)
    assert block._slots_by_record(events) is None
    monkeypatch.setattr(SparseBlock, "_pays_by_record", lambda block, events: True)
    assert check_found(block.slots_of(events), low, low + 1, events) == 500 * 5 * PIECE


def test_rooms_and_parts_are_put_together(monkeypatch):
    # A room is full after a piece or two, and the slots outside of strips after some events.
    monkeypatch.setattr("tamis.index.sparse_block._MORE_ROOM", 0)
    monkeypatch.setattr("tamis.index.sparse_block._MAX_ROOMS", 30)
    random = np.random.default_rng(9)
    low, high = wide_boxes(random, 5000, 12, 2)
    low[:500, 0], high[:500, 0] = 0.5, 0.5  # a point leads to these
    events = random.random((GROUP, 12))
    events[:, 0] = np.where(random.random(GROUP) < 0.7, 0.5, events[:, 0])
    assert check(low, high, events) > 3 * PIECE * GROUP


def test_several_threads_at_once():
    workload = workloads.make_w3(20_000, n_events=2400)
    block = block_of(workload.low, workload.high)
    groups = np.split(workload.values, 4)
    with ThreadPoolExecutor(4) as pool:
        for found, events in zip(pool.map(block._slots_by_record, groups), groups, strict=True):
            check_found(found, workload.low, workload.high, events)


def test_a_group_is_matched_after_one_for_which_there_was_no_memory(monkeypatch):
    workload = workloads.make_w3(3000, n_events=300)
    block = block_of(workload.low, workload.high)
    with monkeypatch.context() as patch:
        patch.setattr("tamis.index.sparse_block._MORE_ROOM", 1 << 56)
        with pytest.raises((MemoryError, ValueError)):
            block._slots_by_record(workload.values)
    found = block._slots_by_record(workload.values)
    assert check_found(found, workload.low, workload.high, workload.values) > 0
