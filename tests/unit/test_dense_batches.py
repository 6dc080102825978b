"""Dense blocks line by line: what plain NumPy finds, for many events at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tamis.bench import workloads
from tamis.index.dense_block import DenseBlock
from tamis.kernels.bit_lines import (
    MANY,
    list_bits,
    list_bits_plainly,
    list_words,
    list_words_plainly,
)
from tamis.kernels.compiled import IS_COMPILED, kernel
from tamis.kernels.dense_batch import FEW
from tamis.kernels.dense_batch_scratch import MANY_TIES, MAX_ANDED, PIECE, new_found
from tamis.kernels.dense_batch_vectors import (
    end_runs,
    end_runs_plainly,
    move_run,
    move_run_plainly,
)
from tamis.kernels.dense_build import LINE
from tamis.kernels.keeping import (
    LANES,
    keep_certain,
    keep_certain_plainly,
    keep_tied,
    keep_tied_plainly,
)
from tamis.kernels.scan import Boxes

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="dense blocks need compiled kernels")

inf, nan = np.inf, np.nan
BORDERS = np.array([-inf, -1.7e308, -5, -0.0, 0, 5e-324, 1, 1.5, 2**53, 2.0**53 + 2, 1.7e308, inf])


def block_of(low, high):
    columns = np.arange(low.shape[1], dtype=np.int32)
    bounds = np.ascontiguousarray(np.stack([low, high], axis=2))
    block = DenseBlock.build(Boxes(columns, bounds))
    for array in (bounds, *block.arrays().values()):
        array.flags.writeable = False  # as those of a snapshot are
    return block


def expected(low, high, events):
    """The boxes that hold each event, the slow way."""
    is_free = np.isnan(low) & np.isnan(high)
    found = [(is_free | ((low <= x) & (x <= high))).all(axis=1).nonzero()[0] for x in events]
    return np.concatenate(found), np.array([len(slots) for slots in found])


def in_order(slots, counts):
    return slots[np.lexsort((slots, np.repeat(np.arange(len(counts)), counts)))]


def check(low, high, events):
    """Compare line by line with the slow way; returns the number of matches."""
    wanted, counts = expected(low, high, events)
    found = [new_found(len(events))]
    slots, n_found = block_of(low, high)._slots_by_line(events, found)
    assert np.array_equal(n_found, counts)
    assert np.array_equal(in_order(slots, counts), wanted)
    return len(wanted)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 511, 512, 513, 1000, 9000])
@pytest.mark.parametrize("make", [workloads.make_w1, workloads.make_w2])
def test_workloads(make, n):
    workload = make(n, n_events=3 * PIECE + 1)
    check(workload.low, workload.high, workload.values)


@pytest.mark.parametrize("first_is_rare", [False, True])
def test_lines_that_few_events_look_at(first_is_rare):
    # Groups of lines are read whole or not at all; here of some only the first, or the second.
    random = np.random.default_rng(first_is_rare)
    n_rare, rare = 3 * LINE, np.repeat([first_is_rare, not first_is_rare], 10 * LINE)
    rare[random.permutation(np.nonzero(rare)[0])[n_rare:]] = False
    low = np.where(
        rare[:, None], random.uniform(10, 11, (len(rare), 4)), random.random((len(rare), 4))
    )
    high = low + random.random(low.shape)
    events = random.random((4 * FEW, 4)) * 1.5
    events[::8] += 10
    assert len(events[::8]) < FEW < len(events) - len(events[::8])
    assert check(low, high, events) > 1000


@pytest.mark.parametrize("m", [1, 2, 3, 4, 6, 7, 10, 11, 23, MAX_ANDED - 1, MAX_ANDED + 1, 50])
def test_borders(m):
    # Few values, so that bounds, events and edges coincide; from m = 11 on a row has more words.
    random = np.random.default_rng(m)
    n = int(random.integers(1500, 2500))
    ends = np.sort(random.choice(BORDERS, (n, m, 2)), axis=2)
    low, high = ends[..., 0].copy(), ends[..., 1].copy()
    is_free = random.random((n, m)) < 1 - 2 / (m + 2)
    low[is_free] = high[is_free] = nan
    low[random.random((n, m)) < 0.02] = -inf
    high[np.isnan(high) & ~np.isnan(low)] = inf
    events = random.choice(BORDERS, (130, m))
    events[random.random(events.shape) < 0.1] = nan
    assert check(low, high, events) > 130


def test_one_event_and_events_that_nothing_matches():
    workload = workloads.make_w1(3000, n_events=70)
    check(workload.low, workload.high, workload.values[:1])
    assert check(workload.low, workload.high, np.full((70, 10), 7.0)) == 0
    assert check(workload.low, workload.high, np.full((70, 10), nan)) == 0


@pytest.mark.parametrize("m", [4, 12])
def test_ties_are_settled_by_exact_bounds(m):
    # Bounds of the last attribute one float64 beside an event's value share its code.
    random = np.random.default_rng(5)
    values = random.random(3000)
    low, high = np.zeros((3000, m)), np.ones((3000, m))
    low[:, -1] = np.where(random.random(3000) < 0.5, np.nextafter(values, inf), values)
    high[:, -1] = np.where(random.random(3000) < 0.3, np.nextafter(values, -inf), values)
    high[::2, -1] = 1
    events = np.full((200, m), 0.5)
    events[:, -1] = values[:200]
    assert check(low, high, events) > 200


def test_many_ties():
    # Most lows are at 0.5 and so is every event: all tie, and more of a line than are kept at once.
    random = np.random.default_rng(7)
    n, n_events = 3000, 3 * PIECE
    low = np.where(random.random((n, 4)) < 0.7, 0.5, random.random((n, 4)))
    n_found = check(low, low + 1, np.full((n_events, 4), 0.5))
    assert MANY_TIES * n_events < n_found < n * n_events


@pytest.mark.parametrize("more_room", [0, 1 << 20])
def test_every_event_matches_every_box(monkeypatch, more_room):
    # Without more room each line is found into an array of its own.
    monkeypatch.setattr("tamis.kernels.dense_batch_scratch.MORE_ROOM", more_room)
    n, n_events = 5 * LINE - 3, PIECE + 70
    low, high = np.zeros((n, 4)), np.ones((n, 4))
    assert check(low, high, np.full((n_events, 4), 0.5)) == n_events * n


def test_it_pays_for_many_events(monkeypatch):
    workload = workloads.make_w1(9000, n_events=2000)
    block = block_of(workload.low, workload.high)
    wanted, counts = expected(workload.low, workload.high, workload.values)
    assert block._n_line_by_line(workload.values) == 2000
    assert block._n_line_by_line(workload.values[:20]) == 0
    for n_at_once in (5000, 700):
        monkeypatch.setattr("tamis.index.dense_block._MAX_EVENTS", n_at_once)
        slots, offsets = block.slots_of(workload.values)
        assert np.array_equal(np.diff(offsets), counts)
        assert np.array_equal(in_order(slots, counts), wanted)


def test_it_does_not_pay_where_most_boxes_match(monkeypatch):
    monkeypatch.setattr("tamis.index.dense_block._MAX_FOUND", 400 * 2999)
    low, high = np.zeros((3000, 4)), np.ones((3000, 4))
    block, events = block_of(low, high), np.full((500, 4), 0.5)
    assert block._n_line_by_line(events) == 0
    slots, offsets = block.slots_of(events)
    assert len(slots) == offsets[-1] == 500 * 3000


def test_several_threads_at_once():
    workload = workloads.make_w2(5000, n_events=2400)
    block = block_of(workload.low, workload.high)
    wanted, counts = expected(workload.low, workload.high, workload.values)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(block.slots_of, np.split(workload.values, 4)))
    slots = np.concatenate([part[0] for part in parts])
    assert np.array_equal(np.concatenate([np.diff(part[1]) for part in parts]), counts)
    assert np.array_equal(in_order(slots, counts), wanted)


@kernel
def _list_both(words, full, places, n, one, other):
    k = k_plainly = np.uint64(0)
    for i in range(np.uint64(0), np.uint64(len(words)), np.uint64(8)):
        base = np.uint64(64) * i
        k = list_words(words, i, base, full[0], places[0], k)
        k_plainly = list_words_plainly(words, i, base, full[1], places[1], k_plainly)
    n[0], n[1] = k, k_plainly
    k = k_plainly = np.uint64(0)
    for i in range(n[0]):
        k = list_bits(full[0, i], places[0, i], one, k)
        k_plainly = list_bits_plainly(full[1, i], places[1, i], other, k_plainly)
    return k, k_plainly


@pytest.mark.parametrize("share", [0, 0.01, 0.2, 0.5, 1])
def test_bits_are_listed(share):
    bits = np.random.default_rng(3).random(2048) < share
    words = np.packbits(bits, bitorder="little").view(np.uint64)
    full, places = np.zeros((2, 2, len(words) + 8), np.uint64)
    one, other = np.zeros((2, len(bits) + MANY), np.uint32)
    n = np.zeros(2, np.int64)
    wanted = bits.nonzero()[0]
    assert _list_both(words, full, places, n, one, other) == (len(wanted), len(wanted))
    assert n[0] == n[1] == np.count_nonzero(words)
    assert np.array_equal(one[: len(wanted)], wanted)
    assert np.array_equal(other[: len(wanted)], wanted)


@kernel
def _keep_all(candidates, misfits, kept, n):
    k, step = np.zeros(4, np.uint64), np.uint64(LANES)
    for i in range(np.uint64(0), np.uint64(len(candidates)), step):
        k[0] = keep_certain(candidates, misfits, i, kept[0], k[0])
        k[1] = keep_certain_plainly(candidates, misfits, i, kept[1], k[1])
        k[2] = keep_tied(candidates, misfits, i, kept[2], k[2])
        k[3] = keep_tied_plainly(candidates, misfits, i, kept[3], k[3])
    n[:] = k


def test_candidates_are_kept_by_their_misfits():
    # A byte has a bit a word: the low four by "possible", the high ones by "certain".
    random = np.random.default_rng(4)
    misfits = random.choice(np.array([0, 0, 16, 240, 1, 17, 15, 255], np.uint8), 40 * LANES)
    misfits[:LANES], misfits[LANES : 2 * LANES] = 0, 32
    candidates = random.integers(0, 1 << 32, len(misfits), dtype=np.uint32)
    kept, n = np.zeros((4, len(misfits) + LANES), np.uint32), np.zeros(4, np.int64)
    _keep_all(candidates, misfits, kept, n)
    certain, tied = candidates[misfits == 0], candidates[(misfits > 0) & (misfits % 16 == 0)]
    assert n.tolist() == [len(certain)] * 2 + [len(tied)] * 2
    for some, wanted in zip(kept, (certain, certain, tied, tied), strict=True):
        assert np.array_equal(some[: len(wanted)], wanted)


@kernel
def _keep_in_place(numbers, misfits, plainly):
    k = np.zeros(2, np.uint64)
    for i in range(np.uint64(0), np.uint64(len(misfits)), np.uint64(LANES)):
        k[0] = keep_certain(numbers, misfits, i, numbers, k[0])
        k[1] = keep_certain_plainly(plainly, misfits, i, plainly, k[1])
    return k


def test_candidates_are_kept_where_they_are():
    misfits = np.random.default_rng(7).choice(np.array([0, 1, 240], np.uint8), 40 * LANES)
    numbers, plainly = (np.arange(len(misfits), dtype=np.uint32) for _ in range(2))
    wanted = numbers[misfits == 0]
    assert _keep_in_place(numbers, misfits, plainly).tolist() == [len(wanted)] * 2
    assert np.array_equal(numbers[: len(wanted)], wanted)
    assert np.array_equal(plainly[: len(wanted)], wanted)


@kernel
def _end_all(kept, n, before, one, other):
    k = np.zeros(2, np.uint64)
    for i in range(np.uint64(0), np.uint64(n), np.uint64(LANES)):
        k[0] = end_runs(kept, i, np.uint64(before), one, k[0])
        k[1] = end_runs_plainly(kept, i, np.uint64(before), other, k[1])
    return k


@pytest.mark.parametrize("n", [1, LANES - 1, LANES, LANES + 1, 300])
@pytest.mark.parametrize("n_events", [1, 3, 200])
def test_runs_end_where_the_next_event_begins(n, n_events):
    random = np.random.default_rng(n)
    events = np.sort(random.integers(0, n_events, n))
    kept = np.full(n + 2 * LANES + 1, 2**32 - 1, np.uint32)
    kept[:n] = events * LINE + random.integers(0, LINE, n)
    before = 2**31 - 1000
    one, other = np.zeros((2, n + 2 * LANES), np.uint64)
    ends = np.append(np.nonzero(np.diff(events))[0], n - 1)
    wanted = events[ends].astype(np.uint64) << np.uint64(32) | (before + ends + 1).astype(np.uint64)
    assert _end_all(kept, n, before, one, other).tolist() == [len(wanted)] * 2
    assert np.array_equal(one[: len(wanted)], wanted)
    assert np.array_equal(other[: len(wanted)], wanted)


@kernel
def _move_both(found, start, n, one, other, at):
    start, n, at = np.uint64(start), np.uint64(n), np.uint64(at)
    move_run(found, start, n, one, at)
    move_run_plainly(found, start, n, other, at)


@pytest.mark.parametrize("n", [0, 1, LANES - 1, LANES, LANES + 1, 100])
def test_a_run_is_moved_and_nothing_beside_it(n):
    found = np.arange(200, dtype=np.int32)
    one, other = np.full((2, 120), -7, np.int32)
    _move_both(found, 30, n, one, other, 5)
    for made in (one, other):
        assert made[5 : 5 + n].tolist() == list(range(30, 30 + n))
        assert (made[:5] == -7).all()
        assert (made[5 + n :] == -7).all()
