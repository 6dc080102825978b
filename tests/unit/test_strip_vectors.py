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
    MAX_MARKED,
    MAX_RUN,
    MISSING,
    N_MARKS,
    N_STEPS,
    WAYS_TO_TEST,
    add_run,
    add_run_plainly,
)
from tamis.kernels.sparse_strips import BLOCK, STRIP
from tamis.kernels.sparse_vectors import TABLE
from tamis.kernels.vectors import has_instructions

BASE = 1000


def way_to_test(way: Any) -> Any:
    """A way to test blocks, from arrays."""

    @kernel
    def run(blocks: Any, tests: Any, table: Any, kept: Any) -> Any:
        return way(
            i4_at(blocks.ctypes.data), np.int64(1), np.int64(blocks.size), np.int64(BASE),
            u1_at(tests.ctypes.data), u1_at(table.ctypes.data), i4_at(kept.ctypes.data),
            np.int64(3),
        )  # fmt: skip

    return run


@pytest.mark.parametrize("needed", WAYS_TO_TEST, ids=str)
def test_a_block_at_a_time_holds_as_one_by_one(needed: tuple[str, ...]) -> None:
    if needed and not has_instructions(*needed):
        pytest.skip(f"this processor has no {', '.join(needed)}")
    run = way_to_test(WAYS_TO_TEST[needed])
    random = np.random.default_rng(1)
    n_blocks = 60
    tests = np.zeros((n_blocks, 3, ITEMS), np.uint8)
    tests[:, 0] = random.integers(0, MAX_MARKED, (n_blocks, ITEMS))
    tests[:, 1] = random.integers(0, N_STEPS, (n_blocks, ITEMS))
    tests[:, 2] = random.integers(0, N_STEPS - tests[:, 1].astype(int))
    is_free = random.random((n_blocks, ITEMS)) < 0.4
    tests[:, 0][is_free], tests[:, 1][is_free], tests[:, 2][is_free] = ANYTHING, 0, 255
    table = np.zeros(N_MARKS, np.uint8)
    blocks = random.permutation(n_blocks).astype(np.int32)
    kept = np.full(BLOCK * (n_blocks + 1), -1, np.int32)
    n_hold = 0
    for _ in range(50):
        table[:MAX_MARKED] = random.integers(0, N_STEPS, MAX_MARKED)
        table[random.integers(0, MAX_MARKED, 30)] = MISSING
        table[ANYTHING % N_MARKS] = 0
        n_kept = run(blocks, tests.reshape(-1), table, kept)
        held = np.where(is_free, 0, table[tests[:, 0] % N_MARKS]).astype(int)
        low, width = tests[:, 1].astype(int), tests[:, 2].astype(int)
        inside = ((low <= held) & (held <= low + width)).reshape(n_blocks, BLOCK, -1).all(axis=2)
        wanted = [
            BASE + BLOCK * block + place
            for block in blocks[1:].tolist()
            for place in np.nonzero(inside[block])[0].tolist()
        ]
        assert kept[3:n_kept].tolist() == wanted
        n_hold += len(wanted)
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
