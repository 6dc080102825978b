"""Building: which blocks serve a table of slots best."""

from __future__ import annotations

import numpy as np

from tamis.index.blocks import NO_ROWS, Array, Arrays, Block, ScanBlock
from tamis.index.dense_block import DenseBlock
from tamis.index.slot_table import SlotTable, boxes_of_constraints, constraints_of_boxes
from tamis.index.sparse_block import SparseBlock
from tamis.kernels.compiled import IS_COMPILED
from tamis.kernels.scan import Boxes, Constraints
from tamis.kernels.sparse_build import MAX_COLUMNS
from tamis.kernels.tests import NO_TESTS, Tests

FEW_SLOTS = 256  # fewer are scanned
MIN_COLUMNS = 4  # a dense block has so many; fewer exclude too little
MIN_RATE = 0.02  # of the boxes that every column of a dense block lets through
MIN_DENSE = 4096  # slots with the same columns from which they are a block of their own

_BLOCKS: dict[str, type[Block]] = {one.kind: one for one in (ScanBlock, DenseBlock, SparseBlock)}


def build_blocks(table: SlotTable) -> tuple[Block, ...]:
    """One block for each set of columns that many slots share, and one for the other slots."""
    if not table.n_slots:
        return ()
    blocks: list[Block] = []
    signature = _signatures(table.constraints)
    found, counts = np.unique(signature, return_counts=True)
    rest = np.ones(table.n_slots, np.bool_)
    for one in found[counts >= MIN_DENSE]:
        is_own = signature == one
        own = table.select(is_own)
        if own.constraints.start[1] < MIN_COLUMNS:
            continue
        boxes = boxes_of_constraints(own.constraints)
        if _is_broad(boxes):
            blocks.append(_build(boxes, own.row_of_slot, own.tests))
            rest &= ~is_own
    others = table.select(rest)
    if others.n_slots:
        blocks.append(_build(others.constraints, others.row_of_slot, others.tests))
    return tuple(blocks)


def build_box_blocks(
    bounds: Constraints | Boxes, row_of_slot: Array = NO_ROWS
) -> tuple[Block, ...]:
    """The blocks of boxes."""
    if isinstance(bounds, Boxes):
        if len(bounds.bounds) == 0:
            return ()
        if len(bounds.columns) >= MIN_COLUMNS and _is_broad(bounds):
            return (_build(bounds, row_of_slot, NO_TESTS),)
        bounds = constraints_of_boxes(bounds)
    return (_build(bounds, row_of_slot, NO_TESTS),) if len(bounds.start) > 1 else ()


def block_of(
    kind: str, bounds: Constraints | Boxes, row_of_slot: Array, tests: Tests, own: Arrays
) -> Block:
    """A block as it was, from its arrays."""
    return _BLOCKS[kind](bounds, row_of_slot, tests, **own)


def _build(bounds: Constraints | Boxes, row_of_slot: Array, tests: Tests) -> Block:
    tests = tests if len(tests.operation) else NO_TESTS
    n_slots = len(bounds.bounds) if isinstance(bounds, Boxes) else len(bounds.start) - 1
    if n_slots < FEW_SLOTS or not IS_COMPILED:
        return ScanBlock(bounds, row_of_slot, tests)
    if isinstance(bounds, Boxes):
        return DenseBlock.build(bounds, row_of_slot, tests)
    if len(np.unique(bounds.column)) > MAX_COLUMNS:
        return ScanBlock(bounds, row_of_slot, tests)
    return SparseBlock.build(bounds, row_of_slot, tests)


def _is_broad(boxes: Boxes) -> bool:
    """Whether no column excludes nearly all boxes by itself, for values like their own bounds."""
    sample = boxes.bounds[:: max(1, len(boxes.bounds) // 512)]
    low, high = sample[:, :, 0], sample[:, :, 1]
    values = np.clip(low, -np.finfo(float).max, high)[:128, None, :]
    rates = ((low[None] <= values) & (values <= high[None])).mean(axis=(0, 1))
    return bool(rates.min() > MIN_RATE)


def _signatures(constraints: Constraints) -> Array:
    """A number for each slot, the same for slots that constrain the same columns.

    Equal with certainty only for equal sets; different sets share one with a chance of 2^-64.
    """
    mixed = np.random.default_rng(7).integers(1, 2**63, constraints.column.max(initial=0) + 1)
    n_slots = len(constraints.start) - 1
    slot = np.repeat(np.arange(n_slots), np.diff(constraints.start))
    sums = np.zeros(n_slots, np.int64)
    np.add.at(sums, slot, mixed[constraints.column])
    return sums
