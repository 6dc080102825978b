"""The tests of slots as arrays that are appended to while readers look at them."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import Array
from tamis.kernels.tests import FIRST_WITH_LIST, NEGATED, Tests
from tamis.slots.slots import Slot


class GrowingTests:
    """Tests slot by slot; a reader keeps the ``tests`` it started with.

    Appending writes only behind what any reader looks at, or to longer copies.
    """

    def __init__(self, capacity: int) -> None:
        self._n_slots = self._n_tests = self._n_lists = self._n_numbers = 0
        self.tests = Tests(
            np.zeros(capacity + 1, np.int32),
            np.zeros(16, np.uint8),
            np.zeros(16, np.int32),
            np.zeros(16, np.float64),
            np.zeros(16, np.float64),
            np.zeros(16, np.int64),
            np.zeros(64, np.float64),
        )

    def __len__(self) -> int:
        return self._n_slots

    def append(self, slot: Slot) -> None:
        """Add the tests of the next slot."""
        if self._n_slots + 1 >= len(self.tests.start):
            self._replace(start=_longer(self.tests.start, self._n_slots + 2))
        if slot.tests:
            self._append_lists(slot)
            self._append_tests(slot)
        self._n_slots += 1
        self.tests.start[self._n_slots] = self._n_tests

    def _append_lists(self, slot: Slot) -> None:
        n_lists = self._n_lists + len(slot.lists)
        n_numbers = self._n_numbers + sum(map(len, slot.lists))
        self._replace(
            list_start=_longer(self.tests.list_start, n_lists + 1),
            lists=_longer(self.tests.lists, n_numbers),
        )
        end = self._n_numbers
        for number, numbers in enumerate(slot.lists, self._n_lists + 1):
            self.tests.lists[end : end + len(numbers)] = numbers
            end += len(numbers)
            self.tests.list_start[number] = end
        self._n_numbers = end

    def _append_tests(self, slot: Slot) -> None:
        first, last = self._n_tests, self._n_tests + len(slot.tests)
        held = self.tests
        self._replace(
            operation=_longer(held.operation, last),
            column=_longer(held.column, last),
            low=_longer(held.low, last),
            high=_longer(held.high, last),
        )
        for t, (operation, column, low, high) in enumerate(slot.tests, first):
            has_list = operation % NEGATED >= FIRST_WITH_LIST
            self.tests.operation[t] = operation
            self.tests.column[t] = column
            self.tests.low[t] = low + self._n_lists if has_list else low
            self.tests.high[t] = high
        self._n_tests = last
        self._n_lists += len(slot.lists)

    def _replace(self, **arrays: Array) -> None:
        self.tests = self.tests._replace(**arrays)


def _longer(array: Array, wanted: int) -> Array:
    """The array if it has room for as many, else a copy that has."""
    if wanted <= len(array):
        return array
    made = np.zeros(max(wanted, 2 * len(array)), array.dtype)
    made[: len(array)] = array
    return made
