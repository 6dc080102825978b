"""SlotLists, bits and predicates against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.kernels.bits import write_unset
from tamis.kernels.counting import write_complete, write_newly_complete
from tamis.kernels.predicates import AT_LEAST, AT_MOST, EQUAL, NOT_EQUAL, write_predicates
from tamis.matching import SlotLists, Table
from tamis.matching.store import Store, grown


@pytest.mark.parametrize("has_values", [False, True])
def test_lists_hold_what_was_put_in_through_growth_and_removal(has_values: bool) -> None:
    random = np.random.default_rng(1)
    lists = SlotLists(7, has_values=has_values)
    expected: list[dict[int, float]] = [{} for _ in range(7)]
    n_slots = 0
    for n in (1, 3, 2_000, 1, 1, 500, 1, 4_000):
        keys = random.integers(0, 7, n).astype(np.int32)
        slots = np.arange(n_slots, n_slots + n, dtype=np.int32)
        values = random.random(n) if has_values else np.zeros(0)
        lists.extend(keys, slots, values)
        for i in range(n):
            expected[keys[i]][int(slots[i])] = values[i] if has_values else 0.0
        gone = random.permutation(slots)[: n // 3 if n > 3 else 0]
        where = np.array([next(b for b in range(7) if s in expected[b]) for s in gone], np.int32)
        lists.discard(where, gone.astype(np.int32))
        for b, slot in zip(where, gone.tolist(), strict=True):
            del expected[b][slot]
        n_slots += n
        assert lists.n_entries == sum(map(len, expected))
        for b in range(7):
            assert sorted(lists.of(b).tolist()) == sorted(expected[b])
            if has_values:
                start = lists.arrays.start[b]
                beside = lists.arrays.values[start : start + len(expected[b])]
                assert beside.tolist() == [expected[b][slot] for slot in lists.of(b).tolist()]


def test_room_that_was_reserved_is_used_without_moving() -> None:
    lists = SlotLists(3)
    lists.reserve(np.array([5, 0, 2]))
    before = lists.arrays.slots
    for slot, key in enumerate((0, 2, 0, 0, 2, 0, 0)):
        lists.extend(np.array([key], np.int32), np.array([slot], np.int32))
    assert lists.arrays.slots is before
    assert lists.of(0).tolist() == [0, 2, 3, 5, 6]


def test_room_does_not_grow_when_entries_move_from_list_to_list() -> None:
    lists, n_lists, n_held = SlotLists(200, has_values=True), 200, 300
    slots = np.arange(n_held, dtype=np.int32)
    for key in range(n_lists):
        keys = np.full(n_held, key, np.int32)
        for i in range(n_held):
            lists.extend(keys[i : i + 1], slots[i : i + 1], np.array([key + 0.5]))
        assert lists.of(key).tolist() == slots.tolist()
        start = lists.arrays.start[key]
        assert (lists.arrays.values[start : start + n_held] == key + 0.5).all()
        assert len(lists.arrays.slots) < 20 * n_held
        lists.discard(keys, slots)
    assert lists.n_entries == 0


def test_many_of_one_long_list_are_not_searched_one_by_one() -> None:
    lists, slots = SlotLists(10), np.arange(1_000, dtype=np.int32)
    lists.extend(np.full(1_000, 3, np.int32), slots)
    for n, is_short in ((0, True), (1, True), (2, True), (3, False)):
        assert lists.is_search_short(np.full(n, 3, np.int32)) is is_short
    for gone in (slots[5:6], slots[10:500]):
        lists.discard(np.full(len(gone), 3, np.int32), gone)
    left = [*range(5), *range(6, 10), *range(500, 1_000)]
    assert sorted(lists.of(3).tolist()) == left
    assert lists.n_entries == len(left)


def test_discarding_in_order_keeps_the_order() -> None:
    lists = SlotLists(1)
    lists.discard_in_order(np.array([3], np.int32))
    lists.extend(np.zeros(6, np.int32), np.array([5, 1, 4, 2, 0, 3], np.int32))
    lists.discard_in_order(np.array([1, 0], np.int32))
    assert lists.of(0).tolist() == [5, 4, 2, 3]


def test_unset_bits_come_ascending() -> None:
    words = np.array([2**64 - 1, 2**64 - 1 - 5, 0], np.uint64)
    out = np.zeros(192, np.int32)
    n_out = write_unset(words, 0, 3, out, 0)
    assert out[:n_out].tolist() == [64, 66, *range(128, 192)]
    assert write_unset(words, 0, 1, out, 7) == 7


def test_complete_counts_are_found_in_and_behind_whole_groups() -> None:
    needed = np.full(150, 3, np.uint8)
    counts = np.zeros(150, np.uint8)
    complete = [0, 63, 64, 130, 149]
    counts[complete] = 3
    out = np.zeros(150, np.int32)
    assert out[: write_complete(counts, needed, 150, out)].tolist() == complete
    assert out[: write_newly_complete(counts, needed, 150, out, 0)].tolist() == complete
    assert write_newly_complete(counts, needed, 150, out, 0) == 0


def test_a_constraint_is_said_by_one_or_two_comparisons() -> None:
    inf, nan = np.inf, np.nan
    cases = [
        (0.1, 0.2, 0, [(AT_LEAST, 0.1), (AT_MOST, 0.2)]),
        (0.1, nan, 0, [(AT_LEAST, 0.1)]),
        (nan, 0.2, 0, [(AT_MOST, 0.2)]),
        (-inf, inf, 0, [(AT_LEAST, -inf)]),
        (0.3, 0.3, 0, [(EQUAL, 0.3)]),
        (0.3, 0.3, 1, [(NOT_EQUAL, 0.3)]),
        (inf, inf, 0, [(EQUAL, inf)]),
    ]
    for low, high, negated, expected in cases:
        table = Table.from_constraints(
            [0, 1], [0], [low], [high], negated=[negated], n_attributes=1
        )
        store = Store()
        store.put(np.zeros(1, np.int32), np.zeros(1, np.int64), table, 1)
        operators, values = np.zeros(2, np.int64), np.zeros(2)
        n = write_predicates(store.arrays, 0, operators, values)
        found = list(zip(operators[:n].tolist(), values[:n].tolist(), strict=True))
        assert found == expected


def test_arrays_grow_by_half_at_least_and_keep_what_they_hold() -> None:
    array = np.arange(10)
    assert grown(array, 10) is array
    longer = grown(array, 11, -1)
    assert longer.tolist() == [*range(10), *[-1] * 5]
    assert len(grown(array, 40)) == 40
