"""Few slots asked about many events at once: what a scan finds, event by event."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tamis import Index, Subscription, col
from tamis.index.asked_events import MAX_EVENTS, MIN_EVENTS, SLOTS_AN_EVENT, AskedEvents
from tamis.index.blocks import Block, ScanBlock
from tamis.index.head import Head, HeadView
from tamis.index.sparse_block import SparseBlock
from tamis.kernels.compiled import IS_COMPILED, kernel
from tamis.kernels.scan import Boxes, Constraints
from tamis.kernels.scan_batch import GROUP, MAX_COLUMNS, N_CUTS
from tamis.kernels.scan_vectors import count_at_most
from tamis.slots.slots import Slot

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="rows of bits need compiled kernels")

inf, nan = np.inf, np.nan
BORDERS = np.array(
    [-inf, -1.7e308, -5, -0.0, 0, 5e-324, 1, np.nextafter(1, 2), 2.0**53, 2.0**53 + 2, 1.7e308, inf]
)


def block_of(low: np.ndarray, high: np.ndarray) -> ScanBlock:
    """The slots f8[P, C] as a block, NaN = unconstrained; nothing may write to its arrays."""
    is_bound = ~np.isnan(low)
    start = np.concatenate([[0], np.cumsum(is_bound.sum(axis=1))]).astype(np.int64)
    column = np.nonzero(is_bound)[1].astype(np.int32)
    held = Constraints(start, column, low[is_bound], high[is_bound])
    for array in held:
        array.flags.writeable = False
    return ScanBlock(held)


def cells_of(events: np.ndarray, *blocks: Block) -> AskedEvents:
    """The cells of events that blocks ask, however few or many events there are."""
    cells = AskedEvents(events, ())
    cells._few = blocks
    return cells


def check(low: np.ndarray, high: np.ndarray, events: np.ndarray) -> int:
    """Compare with NumPy; returns the number of matches."""
    block = block_of(low, high)
    slots, offsets = cells_of(events, block).slots_of(block)
    is_free, total = np.isnan(low), 0
    assert len(offsets) == len(events) + 1
    assert offsets[0] == 0
    for event, first, last in zip(events, offsets[:-1], offsets[1:], strict=True):
        wanted = (is_free | ((low <= event) & (event <= high))).all(axis=1).nonzero()[0]
        assert slots[first:last].tolist() == wanted.tolist()
        total += len(wanted)
    assert len(slots) == total
    return total


@pytest.mark.parametrize(
    "n_events", [1, 2, 63, 65, MIN_EVENTS, 1000, GROUP, GROUP + 1, 2 * GROUP + 9]
)
@pytest.mark.parametrize("n_columns", [1, 10, 60])
def test_boxes(n_events: int, n_columns: int) -> None:
    random = np.random.default_rng([n_events, n_columns])
    low = random.random((150, n_columns)) * 0.5
    high = low + 0.5
    is_free = random.random(low.shape) < 1 - 5 / (n_columns + 4)
    low[is_free] = high[is_free] = nan
    events = random.random((n_events, n_columns))
    events[random.random(events.shape) < 0.2] = nan
    assert check(low, high, events)


@pytest.mark.parametrize("seed", range(6))
def test_borders(seed: int) -> None:
    random = np.random.default_rng(seed)
    n_columns = 1 + seed % 3
    low, high = random.choice(BORDERS, (2, 400, n_columns))
    high = np.where(random.random(low.shape) < 0.3, low, high)  # points, and inverted ones
    is_free = random.random(low.shape) < 0.3
    low[is_free] = high[is_free] = nan
    events = random.choice([*BORDERS, nan], (700, n_columns))
    assert check(low, high, events)


def test_more_values_than_cells_and_fewer() -> None:
    # As many different values as there are cuts, one more and one less; and all the same.
    for n_values in (1, N_CUTS - 1, N_CUTS, N_CUTS + 1, 1000):
        events = (np.arange(1000) % n_values).astype(float)[:, np.newaxis]
        ends = np.arange(-1.0, n_values + 1)[:, np.newaxis]
        assert check(ends, ends, events) == 1000
        assert check(ends, ends + 1, events)
        assert check(np.full_like(ends, -inf), ends, events)
        assert check(ends, np.full_like(ends, inf), events)


def test_columns_that_nobody_has_a_value_in() -> None:
    events = np.full((200, 3), nan)
    events[::2, 1] = 4.0
    low = np.array([[nan, nan, nan], [nan, 4.0, nan], [-inf, nan, nan], [nan, -inf, -inf]])
    high = np.array([[nan, nan, nan], [nan, 4.0, nan], [inf, nan, nan], [nan, inf, inf]])
    assert check(low, high, events) == 200 + 100


def test_no_slots_no_columns_and_slots_that_match_all() -> None:
    nothing = np.zeros((0, 2))
    assert check(nothing, nothing, np.ones((200, 2))) == 0
    free = np.full((3, 2), nan)
    assert check(free, free, np.ones((200, 2))) == 600
    assert check(np.zeros((3, 0)), np.zeros((3, 0)), np.zeros((200, 0))) == 600
    assert check(free, free, np.ones((GROUP + 3, 2))) == 3 * (GROUP + 3)


def test_several_blocks_share_the_cells_and_a_head_has_more_room_than_slots() -> None:
    random = np.random.default_rng(5)
    low = random.random((300, 4)) * 0.5
    sparse = SparseBlock.build(block_of(low, low + 0.5).bounds)
    head = Head()
    for row in range(20):
        slot = Slot()
        slot.constrain(row % 6, 0.0, 0.05 * row)
        head.append(slot, row)
    blocks = [sparse, HeadView(head)]
    events = random.random((500, 6))
    cells = cells_of(events, *blocks)
    for block in blocks:
        slots, offsets = cells.slots_of(block)
        wanted, places = Block.slots_of(block, events)
        assert offsets.tolist() == places.tolist()
        for first, last in itertools.pairwise(offsets):
            assert slots[first:last].tolist() == sorted(wanted[first:last].tolist())


def test_whom_they_suit() -> None:
    sizes = (10, SLOTS_AN_EVENT * MIN_EVENTS + 1, SLOTS_AN_EVENT * GROUP + 1)
    few, more, many = (block_of(*np.ones((2, n, 1))) for n in sizes)
    boxes = ScanBlock(Boxes(np.zeros(1, np.int32), np.ones((10, 1, 2))))
    blocks = [few, more, many, boxes]

    def suited(*shape: int) -> list[ScanBlock]:
        cells = AskedEvents(np.zeros(shape), blocks)
        return [block for block in blocks if cells.suit(block)]

    assert suited(MIN_EVENTS, 1) == [few]
    assert suited(MIN_EVENTS + 1, 1) == [few, more]
    assert suited(50 * GROUP, 1) == [few, more]  # many slots are not few where events are many
    assert suited(MIN_EVENTS - 1, 1) == []
    assert suited(MAX_EVENTS, 1) == [few, more]
    assert suited(MAX_EVENTS + 1, 1) == []
    assert suited(MIN_EVENTS, MAX_COLUMNS) == [few]
    assert suited(MIN_EVENTS, MAX_COLUMNS + 1) == []


def test_as_many_columns_as_rows_have_numbers() -> None:
    random = np.random.default_rng(9)
    low = np.full((40, MAX_COLUMNS), nan)
    low[:, -1] = random.random(40)
    low[:3, 0] = 0.5
    low[0] = 0.1  # all columns
    assert check(low, low + 0.3, random.random((130, MAX_COLUMNS)))


@kernel
def _count(array, i, value):  # type: ignore[no-untyped-def]
    return count_at_most(array, np.uint64(i), value)


def test_counting_what_is_at_most_a_value() -> None:
    held = np.array([-inf, -1.0, -0.0, 0.0, 2.0, inf, nan, nan, 3.0])
    for value in (-inf, -2.0, -1.0, 0.0, -0.0, 1.0, 2.0, inf, nan):
        for first in (0, 1):
            wanted = int((held[first : first + 8] <= value).sum())
            assert _count(held, first, value) == wanted


def _of_boxes(n: int) -> tuple[Index, np.random.Generator]:
    random = np.random.default_rng(n)
    low = random.random((n, 4)) * 0.5
    return Index.from_boxes(list("abcd"), low, low + 0.6), random


@pytest.mark.parametrize("n", [4096, 4099])
@pytest.mark.parametrize("priority", [0, 3])
def test_the_newest_are_found_beside_the_old(n: int, priority: int) -> None:
    index, random = _of_boxes(n)
    events = random.random((MIN_EVENTS + 40, 4))
    given = dict(zip("abcd", events.T, strict=True))

    def check_all() -> None:
        singles = [index.match(dict(zip("abcd", event.tolist(), strict=True))) for event in events]
        batch = index.match_batch(given)
        assert [list(ids) for ids in batch] == [list(ids) for ids in singles]

    def add(first: int, last: int) -> None:
        for number in range(first, last):
            condition = col("a").between(0.0, number / 2000) & (col("d") > 0.2)
            index.add(Subscription(f"new {number}", condition, priority * (number % 2)))
        check_all()

    add(0, 30)
    for id in (
        "new 0",
        "new 29",
    ):  # the first rows behind those of the boxes, in one byte with them
        index.remove(id)
    check_all()
    add(30, 1200)  # beyond a head
    index._engine.wait_for_merging()
    check_all()
    for id in ("new 700", str(n - 1), "0"):  # the last, from where the boxes are not all plain
        index.remove(id)
        check_all()
    index.update(Subscription("7", (col("a") < 0.5) | (col("b") < 0.5)))
    add(1200, 1210)


def test_boxes_are_plain_until_one_of_their_own_rows_is_not() -> None:
    for n in (4096, 4097, 4103):
        index, _ = _of_boxes(n)
        (boxes,) = index._engine.state.blocks
        index.add(Subscription("one more", col("a") > 0))
        index.remove("one more")
        assert not index._engine.state.is_plain
        assert boxes.belongs_to_plain(index._engine.state.rows)
        index.remove(str(n - 1))
        assert not boxes.belongs_to_plain(index._engine.state.rows)
