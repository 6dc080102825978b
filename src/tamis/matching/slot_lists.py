"""SlotLists: many lists of slots that grow and shrink; the buckets and cells of the algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidSchema
from tamis.kernels.slot_lists import (
    Lists,
    append_entries,
    count_keys,
    discard_entries,
    discard_slots,
    move_lists,
)

Array = npt.NDArray[Any]
_NO_VALUES = np.zeros(0)
MAX_LISTS = 2**31 - 1  # their numbers are i4


class SlotLists:
    """``n_lists`` lists of slots, perhaps with a value beside each; kernels read ``arrays``.

    ``value_type`` is the type of the values.

    >>> lists = SlotLists(3)
    >>> lists.extend(np.array([0, 2, 2], np.int32), np.array([7, 7, 8], np.int32))
    >>> lists.discard(np.array([0, 2], np.int32), np.array([7, 7], np.int32))
    >>> [lists.of(number).tolist() for number in range(3)]
    [[], [], [8]]
    """

    def __init__(
        self, n_lists: int, *, has_values: bool = False, value_type: npt.DTypeLike = np.float64
    ) -> None:
        if n_lists > MAX_LISTS:
            raise InvalidSchema(
                f"{n_lists:,} lists of subscriptions; expected at most {MAX_LISTS:,}: fewer cells "
                "or buckets, or fewer attributes"
            )
        self._has_values = has_values
        self._value_type = value_type
        self._tail = 0
        self.n_entries = 0  # in all lists
        self.arrays = self._empty(np.zeros(n_lists, np.int64))

    def __len__(self) -> int:
        return len(self.arrays.start)

    @property
    def n_bytes(self) -> int:
        """The size of its arrays."""
        return sum(array.nbytes for array in self.arrays)

    def of(self, number: int) -> npt.NDArray[np.int32]:
        """The slots of one list."""
        start, size = self.arrays.start[number], self.arrays.size[number]
        return self.arrays.slots[start : start + size]

    def reserve(self, counts: npt.NDArray[np.int64]) -> None:
        """Make room for exactly so many more entries of each list, in the order of the lists."""
        self._rebuild(self.arrays.size + counts)

    def extend(self, keys: Array, slots: Array, values: Array = _NO_VALUES) -> None:
        """Append slots[i] (with values[i]) to list keys[i]. keys, slots: i4[n]."""
        if len(keys) > max(1_000, self.n_entries):
            counts = np.zeros(len(self), np.int64)
            count_keys(keys, counts)
            if (self.arrays.size + counts > self.arrays.capacity).any():
                self.reserve(counts)
        self.n_entries += len(keys)
        n_done = 0
        while True:
            n_done, self._tail = append_entries(
                self.arrays, keys, slots, values, n_done, self._tail
            )
            if n_done == len(keys):
                return
            self._make_room(int(self.arrays.capacity[keys[n_done]]))

    def is_search_short(self, keys: Array) -> bool:
        """Whether to search lists keys[i] one by one is no more work than to pass over all."""
        return int(self.arrays.size[keys].sum()) <= 2 * (self.n_entries + len(self))

    def discard(self, keys: Array, slots: Array) -> None:
        """Take slots[i] out of list keys[i]: all entries of these slots, each of which is there."""
        if self.is_search_short(keys):
            discard_entries(self.arrays, keys, slots)
            self.n_entries -= len(keys)
        else:
            self.discard_in_order(slots)

    def discard_in_order(self, slots: Array) -> None:
        """Take all entries of slots out of all lists, which keep their order. O(entries)."""
        if self.n_entries and len(slots):
            n_slots = max(int(self.arrays.slots.max()), int(slots.max())) + 1
            is_gone = np.zeros(n_slots, np.bool_)
            is_gone[slots] = True
            discard_slots(self.arrays, is_gone)
            self.n_entries = int(self.arrays.size.sum())

    def _make_room(self, moving: int) -> None:
        """Room for a list of that capacity to move, and then some; much garbage is cleared.

        So is what lists keep from times when they were longer, if it is most of the room.
        """
        capacity, size = self.arrays.capacity, self.arrays.size
        if int(capacity.sum()) > 4 * int(size.sum()) + len(self):
            capacity = size
        if 2 * int(capacity.sum()) < self._tail:
            self._rebuild(capacity)
        more = max(1_000, len(self.arrays.slots) // 4, 4 * moving)
        slots = _longer(self.arrays.slots, more)
        values = _longer(self.arrays.values, more if self._has_values else 0)
        self.arrays = self.arrays._replace(slots=slots, values=values)

    def _rebuild(self, capacity: npt.NDArray[np.int64]) -> None:
        lists = self._empty(capacity)
        move_lists(self.arrays, lists)
        self.arrays, self._tail = lists, int(capacity.sum())

    def _empty(self, capacity: npt.NDArray[np.int64]) -> Lists:
        total = int(capacity.sum())
        values = np.zeros(total if self._has_values else 0, self._value_type)
        start = np.cumsum(capacity) - capacity
        return Lists(
            start,
            np.zeros(len(capacity), np.int64),
            capacity.copy(),
            np.zeros(total, np.int32),
            values,
        )


def _longer(array: Array, more: int) -> Array:
    return np.concatenate([array, np.zeros(more, array.dtype)]) if more else array
