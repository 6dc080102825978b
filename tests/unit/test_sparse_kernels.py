"""Sparse blocks find exactly what plain NumPy finds, whatever the boxes look like."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tamis.index.blocks import NO_ROWS
from tamis.index.sparse_block import SparseBlock
from tamis.kernels.compiled import IS_COMPILED
from tamis.kernels.scan import Constraints
from tamis.kernels.sparse_axes import MAX_EXACT
from tamis.kernels.sparse_batch import MAX_AXES
from tamis.kernels.sparse_build import build
from tamis.kernels.sparse_groups import CELL, MAX_SCAN, PAIR, POINT
from tamis.kernels.sparse_match import match
from tamis.kernels.sparse_reach import ANYWHERE, is_in_reach, reach_on
from tamis.kernels.sparse_scratch import new_scratch
from tamis.kernels.sparse_strips import STRIP
from tamis.kernels.tests import NO_TESTS

inf, nan = np.inf, np.nan


def constraints_of(low, high, columns=None):
    """Constraints of dense bounds f8[P, C], NaN = unconstrained; columns: their numbers."""
    is_bound = ~np.isnan(low)
    start = np.concatenate([[0], np.cumsum(is_bound.sum(axis=1))]).astype(np.int64)
    column = np.nonzero(is_bound)[1]
    if columns is not None:
        column = columns[column]
    return Constraints(start, column.astype(np.int32), low[is_bound], high[is_bound])


def expected(constraints, event):
    """The slots that accept an event, the slow way."""
    x = event[constraints.column]
    is_broken = ~((constraints.low <= x) & (x <= constraints.high))
    n_broken = np.concatenate([[0], np.cumsum(is_broken)])
    return np.nonzero(n_broken[constraints.start[1:]] == n_broken[constraints.start[:-1]])[0]


def found(block, event):
    out = np.full(block.n_slots + 2, -7, np.int32)
    n = block.candidates(event, out)
    assert (out[block.n_slots + 1 :] == -7).all()
    return np.sort(out[:n])


def check(constraints, events):
    """Compare singly, as batch and record by record; returns the block and how many match."""
    block = SparseBlock.build(constraints)
    wanted = [expected(constraints, event) for event in events]
    for event, slots in zip(events, wanted, strict=True):
        assert np.array_equal(found(block, event), slots)
    for event, slots in zip(events, all_found(block, events), strict=True):
        assert np.array_equal(np.sort(slots), expected(constraints, event))
    if IS_COMPILED and len(block.columns_in_use()) <= MAX_AXES:
        slots, offsets = block._slots_by_record(events)
        for e, slots_of_event in enumerate(wanted):
            assert np.array_equal(np.sort(slots[offsets[e] : offsets[e + 1]]), slots_of_event)
    return block, sum(map(len, wanted))


def all_found(block, events):
    """All matches, through buffers that hold one or two events at a time."""
    slots, first = [], 0
    while first < len(events):
        out, offsets = (
            np.empty(2 * block.n_slots + 1, np.int32),
            np.zeros(len(events) + 1, np.int64),
        )
        after = block.candidates_many(events, first, out, offsets)
        assert after > first
        slots += [out[offsets[e] : offsets[e + 1]] for e in range(first, after)]
        first = after
    return slots


def random_boxes(rng, n, n_columns):
    """Bounds and events: few levels, points, infinities, inverted and unconstrained boxes."""
    levels, scale = rng.choice([2, 5, 100, 10**9]), rng.choice([1.0, 1e-3, 1e300])
    shape = (n, n_columns)
    low, high = (np.round(rng.random(shape) * levels) / levels * scale for _ in range(2))
    if rng.random() < 0.5:
        high = low + rng.choice([0, 0.001, 0.02, 0.2]) * rng.random(shape)
    elif rng.random() < 0.8:
        low, high = np.minimum(low, high), np.maximum(low, high)
    high = np.where(rng.random(shape) < rng.choice([0, 0.2, 1]), low, high)
    low[rng.random(shape) < 0.03], high[rng.random(shape) < 0.03] = -inf, inf
    is_infinite = rng.random(shape) < 0.005
    low[is_infinite] = high[is_infinite] = rng.choice([inf, -inf])
    weight = 1 / np.arange(1, n_columns + 1) ** rng.choice([0, 1, 2])
    is_free = rng.random(shape) > weight * rng.choice([0.1, 0.5, 1.0])
    low[is_free] = high[is_free] = nan
    if n and rng.random() < 0.2:
        low[:], high[:] = low[0], high[0]
    return low, high


def events_for(rng, constraints, n_events, n_columns):
    """Events that mostly hit bounds exactly; some values missing, infinite or -0.0."""
    shape = (n_events, n_columns)
    events = rng.random(shape)
    if len(constraints.low):
        at = rng.integers(0, len(constraints.low), shape)
        bound = np.where(rng.random(shape) < 0.5, constraints.low[at], constraints.high[at])
        events = np.where(rng.random(shape) < 0.6, bound, events)
    for value, share in ((nan, 0.1), (inf, 0.03), (-inf, 0.03), (-0.0, 0.03)):
        events[rng.random(shape) < share] = value
    return events


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
def test_random_boxes(n):
    n_matches = 0
    for seed in range(12):
        rng = np.random.default_rng((n, seed))
        n_columns = int(rng.choice([1, 2, 5, 20, 60]))
        constraints = constraints_of(*random_boxes(rng, n, n_columns))
        n_matches += check(constraints, events_for(rng, constraints, 20, n_columns))[1]
    assert n_matches > 0 or n == 0


@pytest.mark.parametrize("seed", range(4))
def test_many_random_boxes(seed):
    rng = np.random.default_rng(seed)
    constraints = constraints_of(*random_boxes(rng, 20_000, 12))
    check(constraints, events_for(rng, constraints, 20, 12))


def some_of(rng, n, n_columns, k):
    """k different columns a slot: i8[n, k], ascending."""
    return np.sort(np.argsort(rng.random((n, n_columns)), axis=1)[:, :k], axis=1)


def regular(columns, low, high):
    """Constraints of slots that all have as many."""
    n, k = columns.shape
    start = np.arange(n + 1, dtype=np.int64) * k
    return Constraints(start, columns.ravel().astype(np.int32), low.ravel(), high.ravel())


def test_broad_boxes_make_strips():
    rng = np.random.default_rng(1)
    low = rng.random((20_000, 4)) * 0.75
    constraints = regular(some_of(rng, 20_000, 10, 4), low, low + 0.25)
    block, n_matches = check(constraints, rng.random((30, 10)))
    assert len(block.arrays()["strip"]) // 3 > 20_000 // STRIP
    assert n_matches > 1000


def test_few_columns_make_plots_of_two():
    rng = np.random.default_rng(16)
    columns = np.where(np.arange(20_000)[:, None] % 2, [0, 1], [2, 3])
    low = rng.random((20_000, 2)) * 0.6
    block, n_matches = check(regular(columns, low, low + 0.4), rng.random((30, 4)))
    part = block.arrays()
    first = np.repeat(np.arange(4), np.diff(part["plot_start"]))
    assert (first != part["plot"][:-2:2]).all()
    assert n_matches > 1000


def test_strips_that_an_event_is_beside():
    """Axes that go together: a strip that is touched on the first may end before the second."""
    rng = np.random.default_rng(15)
    low = rng.random((20_000, 1)) * 0.6 + rng.random((20_000, 4)) * 0.01
    columns = np.where(np.arange(20_000)[:, None] % 2, [0, 1, 2, 3], [4, 5, 6, 7])
    events = rng.random((80, 8))
    events[:40] = rng.random((40, 1))
    events[rng.random(events.shape) < 0.1] = nan
    block, n_matches = check(regular(columns, low, low + 0.4), events)
    fence = block.arrays()["fence"].reshape(-1, 2)
    is_empty = fence[:, 0] == fence[:, 1]
    assert (fence[:, 0] <= fence[:, 1]).all()
    assert (fence[is_empty, 0] > 0).any()
    assert n_matches > 1000


def test_narrow_boxes_make_cells_and_pairs():
    rng = np.random.default_rng(2)
    low = rng.random((20_000, 4))
    columns = np.concatenate([np.tile([0, 1], (20_000, 1)), some_of(rng, 20_000, 8, 2) + 2], axis=1)
    width = np.where(columns < 2, 0.01, 0.5)
    for only in (False, True):  # with one narrow constraint, and with two
        width[:, 0] = 0.8 if only else 0.01
        constraints = regular(columns, low, low + width)
        block, n_matches = check(constraints, rng.random((40, 10)))
        assert (CELL if only else PAIR) in block.arrays()["kind"][::5]
        assert n_matches > 5


def test_cells_at_the_borders_of_their_quarters():
    rng = np.random.default_rng(12)
    low = np.column_stack([rng.integers(0, 4096, 30_000) / 4096, rng.random((30_000, 2)) / 2])
    width = np.array([1 / 256, 0.5, 0.5])
    for wide in (False, True):  # cells, and pairs
        low[:, 1] = rng.integers(0, 4096, 30_000) / 4096 if wide else low[:, 1]
        width[1] = 1 / 32 if wide else 0.5
        constraints = constraints_of(low, low + width)
        events = np.column_stack([rng.integers(0, 4200, (80, 2)) / 4096, np.full(80, 0.5)])
        events[:20, :2] = low[:20, :2]
        events[20:40, :2] = low[:20, :2] + width[:2]
        block, n_matches = check(constraints, events)
        assert (PAIR if wide else CELL) in block.arrays()["kind"][::5]
        assert n_matches > 40


@pytest.mark.parametrize("n_narrow", [1, 2])
def test_words_of_crowded_cells_are_passed_over(n_narrow):
    """Ten crowds; events at corners of boxes, just beside them, and with a value missing."""
    rng = np.random.default_rng(20 + n_narrow)
    n = 30_000
    at = rng.random((10, 2))[rng.integers(0, 10, n)] + rng.integers(-32, 32, (n, 2)) / 4096
    low = np.column_stack([at, rng.random((n, 4)) / 2])
    narrow = [1 / 128, 1 / 128] if n_narrow == 2 else [1 / 1024, 0.5]
    width = np.array([*narrow, 0.5, 0.5, 0.5, 0.5])
    constraints = constraints_of(low, low + width)
    events = np.column_stack([low[:160, :2], np.full((160, 4), 0.5)])
    events[40:80, :2] += width[:2]
    events[80:120, 0] = np.nextafter(events[80:120, 0] + width[0], inf)
    events[120:160, 1] = np.where(np.arange(40) % 2, nan, np.nextafter(events[120:160, 1], -inf))
    block, n_matches = check(constraints, events)
    part = block.arrays()
    assert (PAIR if n_narrow == 2 else CELL) in part["kind"][::5]
    assert (part["reach"] != ANYWHERE).sum() > 100
    blind = SparseBlock(constraints, **{**part, "reach": np.zeros_like(part["reach"])})
    for event in events:  # the reach of words spares work, and changes nothing
        assert np.array_equal(found(block, event), found(blind, event))
    assert n_matches > 1000


@pytest.mark.parametrize("kind_type", [POINT, CELL])
def test_words_are_near_on_a_second_axis(kind_type):
    """Most slots are narrow on it, some do not constrain it, and some events do not have it."""
    rng = np.random.default_rng(30 + kind_type)
    n = 60_000
    first = rng.integers(0, 50, n) / 50 if kind_type == POINT else rng.integers(0, 4096, n) / 4096
    low = np.column_stack([first, rng.integers(0, 4096, n) / 4096, rng.random((n, 4)) / 2])
    width = np.array([0 if kind_type == POINT else 1 / 64, 1 / 8, 0.5, 0.5, 0.5, 0.5])
    low[rng.random(n) < 0.1, 1] = nan
    constraints = constraints_of(low, low + width)
    events = np.column_stack([low[:160, :2], np.full((160, 4), 0.5)])
    events[40:80, 1] += width[1]
    events[80:120, 1] = np.nextafter(events[80:120, 1] + width[1], inf)
    events[120:160, 1] = np.where(np.arange(40) % 2, nan, np.nextafter(events[120:160, 1], -inf))
    block, n_matches = check(constraints, events)
    part = block.arrays()
    kinds = part["kind"].reshape(-1, 5)
    assert [kind_type, 0, 1] in kinds[:, [0, 1, 3]].tolist()
    on_second = part["reach"] >> np.uint64(32)
    assert (on_second != ANYWHERE).sum() > 100
    blind = SparseBlock(constraints, **{**part, "reach": np.zeros_like(part["reach"])})
    for event in events:
        assert np.array_equal(found(block, event), found(blind, event))
    assert n_matches > 1000


def test_reach_is_closed_and_never_too_small():
    rng = np.random.default_rng(23)
    masses = np.concatenate([rng.integers(0, 65536, (3000, 3)), [[0, 65535, 0], [7, 7, 7]]])
    for first, second, m in masses.tolist():
        least, greatest = min(first, second), max(first, second)
        reach, here = np.uint64(reach_on(least, greatest)), np.uint64(reach_on(m, m))
        if least <= m <= greatest:
            assert is_in_reach(reach, here)
        elif m + 1 < least or m > greatest + 1:
            assert not is_in_reach(reach, here)
            assert not is_in_reach(reach << np.uint64(32), here << np.uint64(32))
        assert is_in_reach(np.uint64(ANYWHERE), here)


def test_points_with_many_codes():
    rng = np.random.default_rng(3)
    codes = rng.zipf(1.3, 60_000).astype(float) % (2 * MAX_EXACT)
    low, high = rng.random((60_000, 2)), rng.random((60_000, 2)) + 0.5
    low[:, 0] = high[:, 0] = codes
    events = rng.random((60, 2))
    events[:, 0] = codes[:60]
    block, n_matches = check(constraints_of(low, high), events)
    assert POINT in block.arrays()["kind"][::5]
    assert n_matches > 1000


def test_columns_that_are_not_exact_decide_by_bounds():
    rng = np.random.default_rng(4)
    low = rng.random((3 * MAX_EXACT, 1)) ** 9
    high = np.nextafter(low, 1.0)
    constraints = constraints_of(low, high)
    events = np.concatenate([low[:30], high[:30], np.nextafter(high[:30], 2), -low[:5]])
    block, n_matches = check(constraints, events)
    assert block.arrays()["is_exact"][0] == 0
    assert n_matches >= 60


def test_infinite_bounds_do_not_tie_with_finite_values():
    low = np.array([[-inf], [inf], [-inf], [1.0], [-inf]])
    high = np.array([[-inf], [inf], [1.0], [inf], [inf]])
    values = [-inf, -1e308, 0.0, 1.0, 2.0, 1e308, inf]
    assert check(constraints_of(low, high), np.array(values)[:, None])[1] == 17


def test_all_the_same():
    low = np.tile([0.2, nan, 0.3], (5000, 1))
    constraints = constraints_of(low, low + 0.1)
    events = np.array([[0.25, 0, 0.3], [0.3, nan, 0.4], [0.25, 0, 0.5], [nan, 0, 0.35]])
    events[1, 0], events[1, 2] = low[0, 0] + 0.1, low[0, 2] + 0.1
    assert check(constraints, events)[1] == 10_000


def test_one_column():
    rng = np.random.default_rng(5)
    low = rng.integers(0, 40, (3000, 1)).astype(float)
    constraints = constraints_of(low, low + rng.integers(0, 5, (3000, 1)))
    assert check(constraints, np.arange(-1, 45, 0.5)[:, None])[1] > 3000


def test_thousands_of_columns():
    rng = np.random.default_rng(6)
    columns = np.sort(rng.integers(0, 1000, (4000, 5)) + 1000 * np.arange(5), axis=1)
    low = rng.random((4000, 5)) * 0.2
    constraints = regular(columns, low, low + 0.8)
    events = rng.random((20, 5000))
    events[rng.random(events.shape) < 0.2] = nan
    block, n_matches = check(constraints, events)
    assert len(block.arrays()["columns"]) > 4000
    assert n_matches > 100


def test_plots_are_shared_among_thousands_of_columns():
    rng = np.random.default_rng(11)
    columns = some_of(rng, 20_000, 1000, 4)
    low = rng.random(columns.shape) * 0.5
    constraints = regular(columns, low, low + 0.5)
    block, n_matches = check(constraints, rng.random((20, 1000)))
    assert len(block.arrays()["plot"]) // 2 < 20_000 // 4
    assert n_matches > 1000


def test_more_constraints_than_a_record_holds():
    rng = np.random.default_rng(7)
    low = rng.random((2000, 12)) * 0.02
    low[rng.random(low.shape) < 0.1] = nan
    assert check(constraints_of(low, low + 0.98), rng.random((30, 12)))[1] > 1000


def test_few_of_many_columns_and_longer_events():
    rng = np.random.default_rng(8)
    columns = np.array([3, 700, 40_000])
    low, high = random_boxes(np.random.default_rng(9), 500, 3)
    constraints = constraints_of(low, high, columns)
    events = np.full((20, 41_000), 0.5)
    events[:, columns] = events_for(rng, constraints, 20, 3)
    block, _ = check(constraints, events)
    assert len(block.arrays()["columns"]) <= 3


def test_unconstrained_and_impossible_slots():
    low = np.array([[nan, nan], [1.0, nan], [2.0, 5.0], [nan, nan]])
    high = np.array([[nan, nan], [0.0, nan], [3.0, 4.0], [nan, nan]])
    block, _ = check(constraints_of(low, high), np.array([[0.5, 4.5], [nan, nan]]))
    assert found(block, np.array([2.5, 4.5])).tolist() == [0, 3]
    only = constraints_of(low[1:3], high[1:3])
    assert check(only, np.array([[0.5, 4.5], [nan, nan]]))[1] == 0


def test_groups_as_large_as_are_scanned_and_larger():
    for n in (MAX_SCAN, MAX_SCAN + 1):
        rng = np.random.default_rng(n)
        low = np.column_stack([np.full(n, 7.0), rng.random((n, 2))])
        other = np.column_stack([np.arange(50_000) + 100.0, rng.random((50_000, 2))])
        both = np.concatenate([low, other])
        constraints = constraints_of(both, both + np.array([0, 0.5, 0.5]))
        events = rng.random((20, 3))
        events[:, 0] = 7.0
        assert check(constraints, events)[1] > 100


def test_more_candidates_than_fit_at_once():
    n = 300_000
    low = np.zeros((n, 1))
    low[::2] = -inf
    free = np.full((n, 1), nan)
    for bounds in (low, free):
        constraints = constraints_of(bounds, bounds + 1.0)
        block = SparseBlock.build(constraints)
        for x in (0.5, -1.0):
            event = np.array([x, nan])
            assert np.array_equal(found(block, event), expected(constraints, event))


def mixed_case():
    rng = np.random.default_rng(10)
    low, high = rng.random((8000, 9)), rng.random((8000, 9)) + 0.4
    low[:, :2] = high[:, :2] = np.round(low[:, :2] * 300)
    high[:, 2] = low[:, 2] + 0.01
    is_free = rng.random(low.shape) < 0.5
    low[is_free] = high[is_free] = nan
    constraints = constraints_of(low, high)
    return constraints, events_for(rng, constraints, 200, 9)


def test_saved_and_mapped(tmp_path):
    constraints, events = mixed_case()
    block = SparseBlock.build(constraints)
    assert block.bounds is constraints
    assert block.memory_bytes() == sum(
        array.nbytes for array in (*constraints, *NO_TESTS, *block.arrays().values())
    )
    for name, array in {**constraints._asdict(), **block.arrays()}.items():
        np.save(tmp_path / f"{name}.npy", array)

    def load(name):
        file = tmp_path / f"{name}.npy"
        return np.asarray(np.load(file, mmap_mode="r" if file.stat().st_size > 128 else None))

    bounds = Constraints(*map(load, Constraints._fields))
    own = {name: load(name) for name in block.arrays()}
    mapped = SparseBlock(bounds, NO_ROWS, NO_TESTS, **own)
    assert not mapped.bounds.low.flags.writeable
    for event in events[:50]:
        assert np.array_equal(found(mapped, event), expected(constraints, event))
    again = SparseBlock.build(bounds)  # from mapped constraints
    for name, array in block.arrays().items():
        assert np.array_equal(array, again.arrays()[name]), name


def test_threads_at_once():
    constraints, events = mixed_case()
    block = SparseBlock.build(constraints)
    wanted = [expected(constraints, event) for event in events]

    def run(seed):
        for e in np.random.default_rng(seed).permutation(len(events)):
            assert np.array_equal(found(block, events[e]), wanted[e])
        for slots, want in zip(all_found(block, events), wanted, strict=True):
            assert np.array_equal(np.sort(slots), want)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(12)))


def test_batch_stops_when_out_is_full():
    constraints, events = mixed_case()
    block = SparseBlock.build(constraints)
    offsets = np.full(len(events) + 1, -1, np.int64)
    offsets[5] = 3
    assert block.candidates_many(events, 5, np.empty(block.n_slots + 2, np.int32), offsets) == 5
    assert offsets[6] == -1
    out = np.empty(block.n_slots + 4, np.int32)
    assert block.candidates_many(events, 5, out, offsets) > 5
    assert np.array_equal(np.sort(out[3 : offsets[6]]), expected(constraints, events[5]))


def check_plain():
    """Match through the kernels as they are, on arrays; the JIT may be off."""
    n_matches = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        constraints = constraints_of(*random_boxes(rng, 300, 4))
        with np.errstate(over="ignore"):
            part = build(constraints)
            scratch, out = new_scratch(part), np.empty(301, np.int32)
            for event in events_for(rng, constraints, 5, 4):
                n = match(part, constraints, scratch, event, out)
                assert np.array_equal(np.sort(out[:n]), expected(constraints, event))
                n_matches += n
    assert n_matches > 100


def test_without_the_jit():
    program = "from tests.unit.test_sparse_kernels import check_plain; check_plain()"
    subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parents[2],
        check=True,
    )
