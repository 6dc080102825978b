"""The scan and the finding of equal boxes, against NumPy and plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.kernels.scan import TOGETHER, Constraints, scan, scan_some
from tamis.kernels.sharing import RawBoxes, lead_boxes

N_COLUMNS = 5


def constraints_of(rng: np.random.Generator, lengths: list[int]) -> Constraints:
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = [rng.permutation(N_COLUMNS)[:n] for n in lengths]
    low = rng.integers(0, 4, start[-1]).astype(float)
    high = low + rng.integers(-1, 3, start[-1])  # some are inverted
    low[rng.random(len(low)) < 0.1] = -np.inf
    return Constraints(start, np.concatenate([*columns, []]).astype(np.int32), low, high)


def slots_by_numpy(held: Constraints, low: np.ndarray, high: np.ndarray) -> list[int]:
    meets = (held.low <= high[held.column]) & (low[held.column] <= held.high)
    spans = zip(held.start[:-1], held.start[1:], strict=True)
    return [slot for slot, (first, last) in enumerate(spans) if meets[first:last].all()]


@pytest.mark.parametrize(
    "lengths",
    [[], [0], [0, 0, 0], [1, 0, 3], [5, 5, 5, 5], [0, 5, 1, 2, 0, 3, 4] * 40],
    ids=["none", "one unbounded", "all unbounded", "mixed", "equal", "many"],
)
def test_a_scan_finds_what_numpy_finds(lengths: list[int]) -> None:
    rng = np.random.default_rng(len(lengths))
    held = constraints_of(rng, lengths)
    matrix = rng.integers(0, 5, (30, N_COLUMNS)).astype(float)
    matrix[rng.random(matrix.shape) < 0.15] = np.nan
    out = np.full(len(lengths) + 1, -1, np.int32)
    for low in matrix:
        for high in (low, low + 1):
            n_found = scan(held, len(lengths), low, high, out)
            assert out[:n_found].tolist() == slots_by_numpy(held, low, high)


def test_a_scan_without_columns_finds_all() -> None:
    held = constraints_of(np.random.default_rng(0), [0, 0])
    out = np.full(3, -1, np.int32)
    assert scan(held, 2, np.zeros(0), np.zeros(0), out) == 2
    assert out.tolist() == [0, 1, -1]


@pytest.mark.parametrize("n_events", [12, TOGETHER, 2 * TOGETHER + 1])
def test_a_scan_of_many_events_stops_where_there_is_no_room(n_events: int) -> None:
    rng = np.random.default_rng(3)
    lengths = [0, 1, 2, 3] * 5
    held = constraints_of(rng, lengths)
    matrix = rng.integers(0, 5, (n_events, N_COLUMNS)).astype(float)
    matrix[rng.random(matrix.shape) < 0.15] = np.nan
    wanted = [slots_by_numpy(held, row, row) for row in matrix]
    event, found = 0, []
    while event < len(matrix):
        offsets, out = np.zeros(len(matrix) + 1, np.int64), np.empty(50, np.int32)
        done = scan_some(held, len(lengths), matrix, event, out, offsets)
        assert done > event
        found += [out[offsets[e] : offsets[e + 1]].tolist() for e in range(event, done)]
        event = done
    assert found == wanted


@pytest.mark.parametrize("n_boxes", [0, 1, 500])
def test_equal_boxes_have_one_leader(n_boxes: int) -> None:
    rng = np.random.default_rng(n_boxes)
    low = rng.choice([-np.inf, 0.0, -0.0, 1.0], (n_boxes, 2))
    high = rng.choice([1.0, 2.0, np.inf], (n_boxes, 2))
    form = rng.integers(0, 2, (n_boxes, 2)).astype(np.uint8)
    priority = rng.integers(0, 10, n_boxes).astype(np.uint8)
    leader, table = np.empty(n_boxes, np.int32), np.zeros(2048, np.int32)
    boxes = RawBoxes(low.view(np.uint64), high.view(np.uint64), form)
    n_led = lead_boxes(boxes, priority, np.empty(n_boxes, np.uint64), table, leader)
    keys = [(low[i].tobytes(), high[i].tobytes(), form[i].tobytes()) for i in range(n_boxes)]
    wanted = [
        min((i for i in range(n_boxes) if keys[i] == key), key=lambda i: (priority[i], i))
        for key in keys
    ]
    assert leader.tolist() == wanted
    assert n_led == n_boxes - len(set(keys))
