"""Siena: a table of attributes and operators, and counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.counting import CountingMatcher
from tamis.algorithms.kernels.siena import count_satisfied, fill_predicates
from tamis.kernels.cells import cell_of
from tamis.kernels.predicates import N_OPERATORS, count_predicates
from tamis.matching import Attribute, Capabilities, SlotLists
from tamis.matching.parameters import check_count
from tamis.matching.store import Array, Slots
from tamis.matching.table import Floats


class Siena(CountingMatcher):
    """Siena's forwarding table (Carzaniga, Wolf, SIGCOMM 2003), as seed 2 describes it.

    The first level of the table is the attribute, the second the operator (at least, at most,
    equal, not equal); an interval is two comparisons. An event finds the comparisons it
    satisfies and counts them for each subscription; who has all of them is found.
    Departs from the paper: the comparisons of one operator are ordered by ``n_buckets`` buckets,
    of which only the value's own is compared, instead of a sorted list, so that inserting stays
    cheap.
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, attributes: Sequence[Attribute | str], n_buckets: int = 1_000) -> None:
        self.n_buckets = check_count("n_buckets", n_buckets)
        lists = SlotLists(len(attributes) * N_OPERATORS * self.n_buckets, has_values=True)
        super().__init__(attributes, 2 * len(attributes), lists)

    def bucket_of(self, m: int, value: float) -> int:
        """The bucket that holds a value of attribute m."""
        return int(cell_of(self.domains, m, value, self.n_buckets))

    def bucket_counts(self, m: int, operator: int) -> Array:
        """How many comparisons of one operator (0 at least, 1 at most) each bucket holds."""
        start = (m * N_OPERATORS + operator) * self.n_buckets
        return self._lists.arrays.size[start : start + self.n_buckets]

    def _add(self, slots: Slots) -> None:
        self._need(slots, self._n_predicates(slots))
        self._lists.extend(*self._entries(slots))

    def _remove(self, slots: Slots) -> None:
        self._need_no_more(slots)
        keys, owners, _ = self._entries(slots)
        self._lists.discard(keys, owners)

    def _count(self, event: Floats, first: int, last: int) -> None:
        count_satisfied(
            self._lists.arrays, self.domains, self.n_buckets, event, first, last, self._counts
        )

    def _n_predicates(self, slots: Slots) -> Array:
        counts = np.empty(len(slots), np.int64)
        count_predicates(self.stored, slots, counts)
        return counts

    def _entries(self, slots: Slots) -> tuple[Array, Array, Array]:
        """The buckets, slots and values of all comparisons."""
        n = int(self._n_predicates(slots).sum())
        entries = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
        fill_predicates(self.stored, slots, self.domains, self.n_buckets, *entries)
        return entries
