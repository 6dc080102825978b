"""Blocks of strips and records as vectors: what one by one gives, whatever the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.kernels.compiled import kernel
from tamis.kernels.memory import i4_at, u1_at, u4_at
from tamis.kernels.sparse_fit import FIT, NO_FIT, TIE, fit, fit_plainly
from tamis.kernels.sparse_strip_tests import (
    ANYTHING,
    ITEMS,
    MAX_RUN,
    MISSING,
    N_MARKS,
    N_STEPS,
    add_run,
    add_run_plainly,
    test_blocks,
    test_blocks_plainly,
)
from tamis.kernels.sparse_strips import BLOCK, STRIP
from tamis.kernels.sparse_vectors import TABLE

BASE = 1000

# pytest would take them for tests
_test_blocks, _test_blocks_plainly = test_blocks, test_blocks_plainly
del test_blocks, test_blocks_plainly


@kernel
def _test_both(blocks: Any, tests: Any, table: Any, kept: Any, also: Any) -> Any:
    listed, items, held = i4_at(blocks.ctypes.data), u1_at(tests.ctypes.data), table.ctypes.data
    last, base, before = np.int64(blocks.size), np.int64(BASE), np.int64(3)
    one = _test_blocks(
        listed, np.int64(1), last, base, items, u1_at(held), i4_at(kept.ctypes.data), before
    )
    other = _test_blocks_plainly(
        listed, np.int64(1), last, base, items, u1_at(held), i4_at(also.ctypes.data), before
    )
    return one, other


def test_a_block_at_a_time_holds_as_one_by_one() -> None:
    random = np.random.default_rng(1)
    n_blocks = 60
    tests = np.zeros((n_blocks, 3, ITEMS), np.uint8)
    tests[:, 0] = random.integers(0, N_MARKS - 1, (n_blocks, ITEMS))
    tests[:, 1] = random.integers(0, N_STEPS, (n_blocks, ITEMS))
    tests[:, 2] = random.integers(0, N_STEPS - tests[:, 1].astype(int))
    is_free = random.random((n_blocks, ITEMS)) < 0.4
    tests[:, 0][is_free], tests[:, 1][is_free], tests[:, 2][is_free] = ANYTHING, 0, 255
    table = np.zeros(N_MARKS, np.uint8)
    blocks = random.permutation(n_blocks).astype(np.int32)
    kept, also = (np.full(BLOCK * (n_blocks + 1), -1, np.int32) for _ in range(2))
    n_hold = 0
    for _ in range(50):
        table[:ANYTHING] = random.integers(0, N_STEPS, ANYTHING)
        table[random.integers(0, ANYTHING, 30)] = MISSING
        one, other = _test_both(blocks, tests.reshape(-1), table, kept, also)
        assert one == other
        assert kept[3:one].tolist() == also[3:one].tolist()
        n_hold += one - 3
        holds = [True] * BLOCK
        for item in range(ITEMS):  # the same once more, without sharing anything
            x = int(table[tests[blocks[1], 0, item]])
            low, width = tests[blocks[1], 1:, item].astype(int).tolist()
            holds[item // 4] &= low <= x <= low + width
        first = BASE + BLOCK * blocks[1]
        wanted = [first + place for place in range(BLOCK) if holds[place]]
        assert kept[3 : 3 + len(wanted)].tolist() == wanted
    assert n_hold > 100


@kernel
def _add_both(first: Any, blocks: Any, also: Any) -> None:
    add_run(i4_at(blocks.ctypes.data), np.int64(2), np.int64(first))
    add_run_plainly(i4_at(also.ctypes.data), np.int64(2), np.int64(first))


def test_a_run_is_written_whole() -> None:
    blocks, also = (np.full(2 + MAX_RUN + 1, -7, np.int32) for _ in range(2))
    _add_both(40, blocks, also)
    assert blocks.tolist() == also.tolist() == [-7, -7, *range(40, 40 + MAX_RUN), -7]
    assert STRIP <= MAX_RUN * BLOCK


@kernel
def _fit_both(record: Any, at: Any, n_fields: Any, codes: Any, axis_bits: Any, bits: Any) -> Any:
    items, held = u4_at(record.ctypes.data), i4_at(codes.ctypes.data)
    axis_mask, mask = (1 << axis_bits) - 1, 2 * ((1 << bits) - 1)
    u8 = np.uint64
    one = fit(
        items, u8(at), u8(n_fields), held, u8(axis_mask), u8(axis_bits - 1),
        u8(axis_bits + bits - 1), u8(mask),
    )  # fmt: skip
    other = fit_plainly(
        items, u8(at), u8(n_fields), held, u8(axis_mask), u8(axis_bits - 1),
        u8(axis_bits + bits - 1), u8(mask),
    )  # fmt: skip
    return one, other


@pytest.mark.parametrize("n_fields", [2, 6, 9])
@pytest.mark.parametrize("n_axes", [3, 30, TABLE - 2])
def test_a_record_fits_as_its_constraints_do(n_axes: int, n_fields: int) -> None:
    random = np.random.default_rng(n_axes + n_fields)
    axis_bits = int(n_axes + 1).bit_length()
    bits = (32 - axis_bits) // 2
    n = 400
    axis = random.integers(0, n_axes, (n, n_fields))
    low = random.integers(0, 3, (n, n_fields))
    width = random.integers(0, 9, (n, n_fields))
    record = (axis | low << axis_bits | width << (axis_bits + bits)).astype(np.uint32)
    seen = set()
    for _ in range(20):
        codes = np.zeros(TABLE, np.int32)
        ties = random.integers(0, 2, n_axes)
        code = random.integers(0, 5, n_axes)
        codes[:n_axes] = 2 * code + ties
        if random.random() < 0.3:
            codes[random.integers(n_axes)] = 1 << 30  # missing
        for i in range(n):
            found = _fit_both(record.reshape(-1), i * n_fields, n_fields, codes, axis_bits, bits)
            a, lows = axis[i, 1:], low[i, 1:]
            highs = lows + width[i, 1:]
            held = codes[a] // 2
            inside = bool(((lows <= held) & (held <= highs)).all())
            on_bound = bool((((held == lows) | (held == highs)) & (codes[a] % 2 == 1)).any())
            wanted = (TIE if on_bound else FIT) if inside else NO_FIT
            assert found == (wanted, wanted)
            seen.add(wanted)
    assert seen == {NO_FIT, TIE, FIT}
