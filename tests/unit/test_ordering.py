"""Rows in order of priority: what a stable sort gives, whatever the processor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tamis.kernels.compiled import kernel
from tamis.kernels.ordering import (
    N_PRIORITIES,
    append_level,
    append_level_plainly,
    handle_of_parts,
    join,
    order_by_priority,
    order_events,
)

SENTINEL = -7


@kernel
def _both(rows, levels, first, last, level, one, other, n):  # type: ignore[no-untyped-def]
    level = np.uint8(level)
    return (
        append_level(rows, levels, first, last, level, one, n),
        append_level_plainly(rows, levels, first, last, level, other, n),
    )


@pytest.mark.parametrize("n_rows", [0, 1, 15, 16, 17, 31, 32, 33, 500])
def test_a_level_is_picked_out(n_rows: int) -> None:
    random = np.random.default_rng(n_rows)
    rows = random.permutation(np.arange(n_rows, dtype=np.int32))
    levels = random.integers(0, 3, n_rows).astype(np.uint8)
    for first in {0, n_rows // 3, n_rows}:
        for level in range(4):
            one, other = np.full((2, n_rows + 5), SENTINEL, np.int32)
            n, n_plainly = _both(rows, levels, first, n_rows, level, one, other, 2)
            wanted = rows[first:][levels[first:] == level]
            assert n == n_plainly == 2 + len(wanted)
            assert one[2:n].tolist() == other[2:n].tolist() == wanted.tolist()
            for made in (one, other):  # which may have been written to one place further
                assert (made[:2] == SENTINEL).all()
                assert (made[n + 1 :] == SENTINEL).all()


@pytest.mark.parametrize("n_rows", [1, 7, 16, 40, 1_000])
def test_the_order_is_that_of_a_stable_sort(n_rows: int) -> None:
    random = np.random.default_rng(n_rows)
    priority = random.integers(0, N_PRIORITIES, 5_000).astype(np.uint8)
    rows = random.choice(5_000, n_rows, replace=False).astype(np.int32)
    ordered = np.full(n_rows + 1, SENTINEL, np.int32)
    order_by_priority(rows, n_rows, priority, ordered)
    wanted = rows[np.argsort(priority[rows], kind="stable")]
    assert ordered[:n_rows].tolist() == wanted.tolist()


def test_the_rows_of_each_event_are_ordered() -> None:
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], random.integers(0, 40, 50).cumsum()])
    offsets[8:] += offsets[7] - offsets[8]  # one event has none
    rows = random.integers(0, 1_000, offsets[-1]).astype(np.int32)
    priority = random.integers(0, N_PRIORITIES, 1_000).astype(np.uint8)
    ordered = np.empty(len(rows) + 1, np.int32)
    order_events(rows, offsets, priority, ordered)
    for first, last in itertools.pairwise(offsets):
        own = rows[first:last]
        wanted = own[np.argsort(priority[own], kind="stable")]
        assert ordered[first:last].tolist() == wanted.tolist()


@pytest.mark.parametrize("n_parts", [1, 2, 5])
@pytest.mark.parametrize("n_events", [1, 50])
def test_parts_are_joined(n_parts: int, n_events: int) -> None:
    random = np.random.default_rng([n_parts, n_events])
    parts = []
    for _ in range(n_parts):
        counts = random.integers(0, 40, n_events) * random.integers(0, 2, n_events)
        offsets = np.concatenate([[0], counts.cumsum()])
        parts.append((random.integers(0, 1_000, offsets[-1]).astype(np.int32), offsets))
    rows = np.full(sum(len(held) for held, _ in parts) + 1, SENTINEL, np.int32)
    offsets = np.zeros(n_events + 1, np.int64)
    join(handle_of_parts(parts), rows, offsets)
    for event in range(n_events):
        wanted = np.concatenate([held[at[event] : at[event + 1]] for held, at in parts])
        assert rows[offsets[event] : offsets[event + 1]].tolist() == wanted.tolist()
    assert rows[offsets[-1] :].tolist() == [SENTINEL]
