"""OpIndex: subscriptions by their rarest attribute, comparisons by operator, and counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.counting import CountingMatcher
from tamis.algorithms.kernels.op_index import (
    N_HASHED,
    N_SCANNED,
    choose_pivots,
    count_attributes,
    count_satisfied,
    fill_predicates,
)
from tamis.kernels.predicates import count_predicates
from tamis.matching import Attribute, Capabilities, SlotLists
from tamis.matching.store import Array, Slots, grown
from tamis.matching.table import Floats


class OpIndex(CountingMatcher):
    """OpIndex (Zhang, Chan, Tan, PVLDB 2014), as seeds 1 and 3 describe it.

    The first level parts the subscriptions by their *pivot*, the attribute of theirs that the
    fewest subscriptions constrain; an event opens only the parts whose pivot it has. The second
    level parts the comparisons of a part by operator: at least, at most and not equal in a list
    an attribute, equal by a hash of attribute and value. The lists are not ordered and are
    compared entry by entry; satisfied comparisons are counted.
    Departs from the paper: the frequency of attributes is that at the time of adding; pivots
    are not chosen anew later.
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, attributes: Sequence[Attribute | str]) -> None:
        m = len(attributes)
        lists = SlotLists(m * (m * N_SCANNED + N_HASHED), has_values=True)
        super().__init__(attributes, 2 * m, lists)
        self._frequency = np.zeros(m, np.int64)
        self._pivots = np.zeros(0, np.int32)  # of each slot; -1 if it constrains nothing

    def list_sizes(self) -> Array:
        """i8[M, M, 3]: by pivot, attribute and operator (at least, at most, not equal)."""
        sizes = self._lists.arrays.size.reshape(self.n_attributes, -1)
        n_scanned = self.n_attributes * N_SCANNED
        return sizes[:, :n_scanned].reshape(self.n_attributes, self.n_attributes, N_SCANNED)

    def _add(self, slots: Slots) -> None:
        self._need(slots, self._n_predicates(slots))
        self._pivots = grown(self._pivots, self.n_slots, -1)
        self._frequency += self._attributes_of(slots)
        choose_pivots(self.stored, slots, self._frequency, self._pivots)
        self._lists.extend(*self._entries(slots))

    def _remove(self, slots: Slots) -> None:
        self._need_no_more(slots)
        self._frequency -= self._attributes_of(slots)
        keys, owners, _ = self._entries(slots)
        self._lists.discard(keys, owners)

    def _count(self, event: Floats, first: int, last: int) -> None:
        count_satisfied(self._lists.arrays, event, first, last, self._counts)

    def _memory_bytes(self) -> int:
        return super()._memory_bytes() + self._pivots.nbytes + self._frequency.nbytes

    def _n_predicates(self, slots: Slots) -> Array:
        counts = np.empty(len(slots), np.int64)
        count_predicates(self.stored, slots, counts)
        return counts

    def _attributes_of(self, slots: Slots) -> Array:
        """How many of the slots constrain each attribute."""
        counts = np.zeros(self.n_attributes, np.int64)
        count_attributes(self.stored, slots, counts)
        return counts

    def _entries(self, slots: Slots) -> tuple[Array, Array, Array]:
        """The lists, slots and values of all comparisons."""
        n = int(self._n_predicates(slots).sum())
        entries = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
        fill_predicates(self.stored, slots, self._pivots, self.n_attributes, *entries)
        return entries
