"""DEXIN: exclude by sorted bounds or include by a look, whichever an event makes cheaper.

The paper's words and ours (those of plans are in pipeline.py):

    S_n, c_m^(n)                subscription, its constraint on attribute m
    a_m, v_m                    attribute m, the event's value there
    Array^(low), Array^(high)   the low and the high buckets of an attribute
    slot                        bucket (a slot is a subscription's number in all of Tamis)
    tau                         n_buckets
    alpha, beta                 the value's own bucket among the low, among the high ones
    RB-tree, linked list        is_ordered true, false
    exclusive, inclusive        exclude, select
    Null                        an infinite bound
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.kernels.dexin import (
    HIGH,
    LOW,
    N_SIDES,
    Buckets,
    count_bounds,
    count_buckets,
    discard_ordered,
    exclude,
    fill_bounds,
    find_rates,
    order_tails,
    recount_buckets,
)
from tamis.algorithms.pipeline import Area, Pipeline, Plan
from tamis.errors import InvalidSchema
from tamis.kernels.cells import cell_of
from tamis.matching import Attribute, Capabilities, SlotLists
from tamis.matching.parameters import check_count
from tamis.matching.store import Array, Slots
from tamis.matching.table import Floats


class Dexin(Pipeline):
    """DEXIN (Fan, Liu, Tang: dynamic exclusive and inclusive methods, FGCS 2017).

    Two arrays of buckets an attribute (``n_buckets`` = 1500) hold the subscriptions by their low
    and by their high bounds. For an event the attributes are ordered by matching rate, which
    counters of the buckets tell. The first ones exclude: low bounds above the value and high
    bounds below it. The others select among who is left. ``is_ordered`` keeps the bounds of a
    bucket in order, so that the value's own bucket needs a search instead of comparisons;
    without it (the paper's linked lists) adding is quicker. ``plan`` is "near_optimal"
    (low-matching-rate-first-fit, Algorithm 4), "optimal", "exclusive" or "inclusive".

    Departs from the paper: a bucket is a sorted array instead of a red-black tree, or an
    unsorted one instead of a linked list, so both need the same memory; an excluded value
    (not-equal) is not split in two ranges, of which the exclusive method would exclude one side
    wrongly, but kept in a third array; an open end is moved to the next number, so that equal
    bounds need no look at their types; and what ``Pipeline`` says.

    >>> from tamis.values import Range
    >>> dexin = Dexin(["x", "y"])
    >>> dexin.add({"x": Range(0.2, 0.4), "y": Range(low=0.5)})
    0
    >>> dexin.match({"x": 0.4, "y": 0.7}).tolist()
    [0]
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(
        self,
        attributes: Sequence[Attribute | str],
        n_buckets: int = 1_500,
        is_ordered: bool = True,
        plan: str = "near_optimal",
    ) -> None:
        super().__init__(attributes, plan, {"near_optimal", "optimal", "exclusive", "inclusive"})
        if not isinstance(is_ordered, bool):
            raise InvalidSchema(f"is_ordered={is_ordered!r}; expected True or False")
        self.n_buckets = n_buckets = check_count("n_buckets", n_buckets)
        self.is_ordered = is_ordered
        n_lists = self.n_attributes * N_SIDES * n_buckets
        self._lists = SlotLists(n_lists, has_values=True)
        self._n_bounds = np.zeros((self.n_attributes, 2, n_buckets + 1), np.int64)

    @property
    def _buckets(self) -> Buckets:
        return Buckets(self._lists.arrays, self.n_buckets, self.is_ordered, self._n_bounds)

    def _put(self, slots: Slots) -> None:
        keys, owners, values = self._entries(slots)
        self._lists.extend(keys, owners, values)
        if self.is_ordered:
            _order_new(self._lists, keys)
        self._count(keys, 1)

    def _drop(self, slots: Slots) -> None:
        keys, owners, values = self._entries(slots)
        if self.is_ordered and self._lists.is_search_short(keys):
            discard_ordered(self._lists.arrays, keys, owners, values)
            self._lists.n_entries -= len(keys)
        else:
            self._lists.discard(keys, owners)
        self._count(keys, -1)

    def _count(self, keys: Array, more: int) -> None:
        if len(keys) < len(self._lists):
            count_buckets(self._buckets, keys, more)
        else:
            recount_buckets(self._buckets)

    def _find_rates(self, event: Floats) -> None:
        n_asking = self._columns.n_asking
        find_rates(self._buckets, self.domains, n_asking, self._n_held, event, self._rates)

    def _exclude(self, event: Floats, plan: Plan) -> None:
        exclude(self._buckets, self._columns, self.domains, event, tuple(plan), self._words)

    def _index_bytes(self) -> int:
        return self._lists.n_bytes + self._n_bounds.nbytes

    def _entries(self, slots: Slots) -> tuple[Array, Array, Array]:
        """The buckets, slots and values of all bounds."""
        n = int(count_bounds(self.stored, slots))
        entries = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
        fill_bounds(self.stored, slots, self.domains, self.n_buckets, *entries)
        return entries

    # -- for looking at

    def _areas(self, m: int, value: float, *, is_first: bool) -> tuple[Area, ...]:
        cell, last = self.bucket_of(m, value), self.n_buckets - 1
        return (
            self._area("low beyond", m, LOW, (cell + 1, last)),
            self._own_area("low own", m, LOW, cell, value),
            self._area("high before", m, HIGH, (0, cell - 1)),
            self._own_area("high own", m, HIGH, cell, value),
        )

    def _area(self, name: str, m: int, side: int, buckets: tuple[int, int]) -> Area:
        n_entries = int(self.bucket_counts(m, side)[buckets[0] : buckets[1] + 1].sum())
        return Area(name, (buckets,), n_entries, False)

    def _own_area(self, name: str, m: int, side: int, cell: int, value: float) -> Area:
        """The value's own bucket: all of it is compared, or what lies behind a search is taken."""
        number = (m * N_SIDES + side) * self.n_buckets + cell
        start, n_entries = (int(a[number]) for a in self._lists.arrays[:2])
        if self.is_ordered:
            values = self._lists.arrays.values[start : start + n_entries]
            if side == HIGH:
                n_entries = int(np.searchsorted(values, value, "left"))
            else:
                n_entries -= int(np.searchsorted(values, value, "right"))
        return Area(name, ((cell, cell),), n_entries, not self.is_ordered)

    def bucket_of(self, m: int, value: float) -> int:
        """The bucket of a value of attribute m."""
        return int(cell_of(self.domains, m, value, self.n_buckets))

    def bucket_counts(self, m: int, side: int) -> Array:
        """How many bounds each bucket of one side (0 low, 1 high, 2 excluded values) holds."""
        start = (m * N_SIDES + side) * self.n_buckets
        return self._lists.arrays.size[start : start + self.n_buckets]


def _order_new(lists: SlotLists, keys: Array) -> None:
    """Put the entries just appended to lists ``keys`` where their values belong."""
    if len(keys) < len(lists):
        numbers, n_new = np.unique(keys, return_counts=True)
    else:
        counts = np.bincount(keys, minlength=len(lists))
        numbers = np.flatnonzero(counts)
        n_new = counts[numbers]
    order_tails(lists.arrays, numbers.astype(np.int64), n_new)
