"""Sharing: which of many boxes are equal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


class RawBoxes(NamedTuple):
    """N boxes over M attributes, as their bits."""

    low: Array  # u8[N, M], the bits of float64
    high: Array  # u8[N, M]
    form: Array  # u1[N, M], what else tells one from another: open ends, no constraint


@inlined
def _mix(made, word):
    made = (made ^ word) * _PRIME
    return made ^ (made >> _SHIFT)


@kernel
def lead_boxes(boxes, priority, hashes, table, leader):
    """Find the leader of every box: of those equal to it, the first of the highest priority.

    ``priority``: u1[N]; ``hashes``: u8[N] and ``table``: i4[2^k > N], zeros, are scratch.
    Writes ``leader``: i4[N]; returns how many boxes are led by another. O(N x M).
    """
    mask = np.uint64(table.size - 1)
    n_boxes = leader.size
    for i in range(n_boxes):
        made = np.uint64(0)
        for m in range(boxes.low.shape[1]):
            made = _mix(made, boxes.low[i, m])
            made = _mix(made, boxes.high[i, m] + np.uint64(boxes.form[i, m]))
        hashes[i] = made
    n_led = 0
    for i in range(n_boxes):
        place = hashes[i] & mask
        while table[place] and not _is_same(boxes, hashes, table[place] - 1, i):
            place = (place + np.uint64(1)) & mask
        if table[place]:
            n_led += 1
        else:
            table[place] = i + 1
        leader[i] = table[place] - 1
    if n_led:
        _choose_leaders(priority, leader)
    return n_led


@kernel
def _is_same(boxes, hashes, a, b):
    if hashes[a] != hashes[b]:
        return False
    for m in range(boxes.low.shape[1]):
        if boxes.low[a, m] != boxes.low[b, m] or boxes.high[a, m] != boxes.high[b, m]:
            return False
        if boxes.form[a, m] != boxes.form[b, m]:
            return False
    return True


@kernel
def _choose_leaders(priority, leader):
    """Let the first of the highest priority lead, where now the first leads."""
    best = np.arange(leader.size).astype(np.int32)
    for i in range(leader.size):
        if priority[i] < priority[best[leader[i]]]:
            best[leader[i]] = i
    for i in range(leader.size):
        leader[i] = best[leader[i]]
