"""Events with more than one value in a column: which slots may hold, and which do for certain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.bench.workloads import make as make_workload
from tamis.index import Index
from tamis.index.blocks import MORE_ROOM, Block, ScanBlock
from tamis.index.dense_block import DenseBlock
from tamis.index.indexed_block import MAX_OPEN
from tamis.index.sparse_block import SparseBlock
from tamis.kernels.compiled import IS_COMPILED
from tamis.kernels.scan import Boxes, Constraints
from tamis.language import evaluate
from tamis.values import Range

N_SLOTS, N_COLUMNS = 600, 6
pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="blocks are scanned without the compiler")


def intervals(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Few different ends, so that many are equal; some are infinite, some intervals empty."""
    ends = random.choice([-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, np.inf], (2, *shape))
    low, high = ends.min(axis=0), ends.max(axis=0)
    is_turned = random.random(shape) < 0.02
    return np.where(is_turned, high, low), np.where(is_turned, low, high)


def dense(random: np.random.Generator) -> Block:
    low, high = intervals(random, (N_SLOTS, N_COLUMNS))
    bounds = np.ascontiguousarray(np.stack([low, high], axis=2))
    return DenseBlock.build(Boxes(np.arange(N_COLUMNS, dtype=np.int32), bounds))


def sparse(random: np.random.Generator) -> Block:
    counts = random.integers(0, 4, N_SLOTS)
    start = np.concatenate([[0], np.cumsum(counts)])
    picked = [random.permutation(N_COLUMNS)[:n] for n in counts]
    low, high = intervals(random, (int(start[-1]),))
    columns = np.concatenate(picked).astype(np.int32)
    return SparseBlock.build(Constraints(start.astype(np.int64), columns, low, high))


@pytest.mark.parametrize("n_open", range(MAX_OPEN + 2))
@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("seed", range(3))
def test_a_block_finds_what_a_scan_finds(make: Any, n_open: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    block = make(random)
    scanned = ScanBlock(block.bounds)
    n_sure_of_all = 0
    for _ in range(20):
        low, high = intervals(random, (N_COLUMNS,))
        low, high = np.minimum(low, high), np.maximum(low, high)
        closed = random.permutation(N_COLUMNS)[n_open:]
        low[closed] = high[closed] = random.choice([-1.0, 0.0, 0.5, 2.0, np.nan], len(closed))
        out, other = (np.full(N_SLOTS + MORE_ROOM, -1, np.int32) for _ in range(2))
        n_sure, n_slots = block.candidates_in_hull(low, high, out)
        n_expected = scanned.candidates_in_hull(low, high, other)[1]
        assert sorted(out[:n_slots]) == sorted(other[:n_expected])
        certain = {slot for slot in out[:n_slots] if _holds(block, slot, low, high)}
        if np.count_nonzero(low < high) <= MAX_OPEN:
            assert set(out[:n_sure]) == certain
        assert set(out[:n_sure]) <= certain
        n_sure_of_all += n_sure
    assert n_sure_of_all or n_open > MAX_OPEN


def _holds(block: Block, slot: int, low: Any, high: Any) -> bool:
    """Whether a slot's intervals hold all of the event's."""
    bounds = block.bounds
    if isinstance(bounds, Boxes):
        columns, ends = bounds.columns, bounds.bounds[slot]
    else:
        own = slice(bounds.start[slot], bounds.start[slot + 1])
        columns, ends = bounds.column[own], np.stack([bounds.low[own], bounds.high[own]], axis=1)
    return bool(((ends[:, 0] <= low[columns]) & (high[columns] <= ends[:, 1])).all())


@pytest.mark.parametrize("name", ["W1", "W3"])
def test_events_of_several_numbers_ranges_and_large_numbers(name: str) -> None:
    workload = make_workload(name, 0.006, n_events=12)
    attributes = list(workload.attributes)
    ids = [f"s{number}" for number in range(len(workload.low))]
    index = Index.from_boxes(attributes, workload.low, workload.high, ids)
    others: list[Any] = [
        Range(0.2, 0.4), Range(None, 0.6), [0.3, 0.31, 0.9], 2**60 + 1, [0.5, "0.7"],
    ]  # fmt: skip
    filters = {id: index[id].condition for id in ids}
    n_found = 0
    for number, row in enumerate(workload.values):
        event: dict[str, Any] = dict(zip(attributes, row.tolist(), strict=True))
        for place in range(number % 5):
            event[attributes[(number + 3 * place) % len(attributes)]] = others[
                (number + place) % len(others)
            ]
        expected = {id for id, condition in filters.items() if evaluate(condition, event)}
        found = index.match(event)
        assert len(found) == len(set(found))
        assert set(found) == expected
        n_found += len(found)
    assert n_found
