"""Tests of sparse boxes sixteen at a time: what one by one gives, whatever the processor."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.index import Index
from tamis.kernels.compiled import kernel
from tamis.kernels.memory import u4_at
from tamis.kernels.sparse_vectors import LANES, TABLE, which_hold, which_hold_plainly


@kernel
def _both(test, rough, first, n, axis_bits, bits, second):  # type: ignore[no-untyped-def]
    items, table, width_at = u4_at(test), u4_at(rough), axis_bits + bits
    axis_mask, mask = (1 << axis_bits) - 1, (1 << bits) - 1
    one = which_hold(items, first, n, table, axis_bits, width_at, axis_mask, mask, second)
    other = which_hold_plainly(items, first, n, table, axis_bits, width_at, axis_mask, mask, second)
    return one, other


@pytest.mark.parametrize("n_axes", [2, 15, 16, 31, 32, 33, TABLE - 2])
def test_sixteen_at_a_time_hold_as_one_by_one(n_axes: int) -> None:
    random = np.random.default_rng(n_axes)
    axis_bits = int(n_axes + 1).bit_length()
    bits = (16 - axis_bits) // 2
    second = axis_bits + 2 * bits
    n = 10 * LANES
    rough = np.zeros(TABLE, np.uint32)
    test = np.zeros(n, np.uint64)
    for place in (0, second):
        axis = random.integers(0, n_axes, n)
        low, width = random.integers(0, 1 << bits, (2, n))
        test |= (axis | low << axis_bits | width << (axis_bits + bits)).astype(np.uint64) << place
    items = test.astype(np.uint32)
    n_hold = 0
    for _ in range(20):
        rough[:n_axes] = random.integers(0, 1 << bits, n_axes)
        rough[random.integers(n_axes)] = 1 << 30  # missing
        for first in range(0, n - LANES, 7):
            for n_lanes in (1, 5, LANES):
                vector, plain = _both(
                    np.int64(items.ctypes.data), np.int64(rough.ctypes.data),
                    np.uint64(first), np.uint64(n_lanes), np.uint64(axis_bits), np.uint64(bits),
                    np.uint64(second),
                )  # fmt: skip
                assert vector == plain < 1 << n_lanes
                n_hold += plain.bit_count()
    assert n_hold


@pytest.mark.parametrize("n_axes", [TABLE - 3, TABLE - 2, TABLE - 1, TABLE + 6])
def test_as_many_axes_as_fit_into_registers_and_more(n_axes: int) -> None:
    random = np.random.default_rng(1)
    n = 2_000
    low, high = np.full((2, n, n_axes), np.nan)
    for row in range(n):
        some = random.choice(n_axes, 4, replace=False)
        low[row, some] = random.integers(0, 6, 4)
        high[row, some] = low[row, some] + random.integers(0, 6, 4)
    names = [f"a{k}" for k in range(n_axes)]
    index = Index.from_boxes(names, low, high)
    assert [block["kind"] for block in index.stats()["blocks"]] == ["sparse"]
    events = random.integers(0, 9, (60, n_axes)).astype(float)
    batch = index.match_batch({name: events[:, k] for k, name in enumerate(names)})
    for event, found in zip(events, batch, strict=True):
        holds = (np.isnan(low) | (low <= event)) & (np.isnan(high) | (event <= high))
        expected = {str(row) for row in np.nonzero(holds.all(axis=1))[0]}
        one = index.match(dict(zip(names, event.tolist(), strict=True)))
        assert set(one) == set(found) == expected
