"""GEM: constraints as points of a triangle, and a plan for each event.

The paper's words and ours (those of plans are in pipeline.py):

    S_n, p_n^(m)     subscription, its constraint on attribute m
    a_m, v_m         attribute m, the event's value there
    tau              n_cells, the cells of a row or a column
    i^(r), i^(c)     row (the cell of high), column (the cell of low)
    i^(v), i^(t)     the cell of the value, of a cache's place
    omega, t_k       n_caches, the place of a cache
    l_1, l_2         the row and the column of the value
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.kernels.gem import (
    PLACE_BITS,
    Caches,
    Triangle,
    count_cells,
    drop_caches,
    exclude,
    fill_cells,
    find_rates,
    nearest_cache,
    put_caches,
)
from tamis.algorithms.pipeline import Area, Pipeline, Plan, widened
from tamis.kernels.cells import cell_of
from tamis.matching import Attribute, Capabilities, SlotLists
from tamis.matching.parameters import check_count
from tamis.matching.store import Array, Slots
from tamis.matching.table import Floats

_ALL = np.uint64(2**64 - 1)
_MAX_CACHES = 10_000


class Gem(Pipeline):
    """GEM (Fan, Liu, Tang: An Analytic Geometrical Approach to Fast Event Matching, 2016).

    An attribute's constraints lie in a triangle of cells by their bounds (``n_cells`` = 80 in a
    row). For an event the attributes are ordered by matching rate, which counters of rows and
    columns tell. The first ones exclude: the areas A (high too low) and B (low too high) without
    a look, A', B' and D on the border by comparing. The others select among who is left. The
    first step starts from the nearest of ``n_caches`` (0, 10, 20) results that are kept for
    values spread evenly, and puts right what lies between. 20 is the fastest of the paper's
    three; without caches adding and removing are quicker. ``plan`` is "near_optimal" (Algorithm
    4) or "optimal".

    Departs from the paper: cells keep a bound as 16 bits, and only where these equal the
    event's the exact bound is read; caches are bit sets; excluded values (not-equal), which are
    no point of a triangle, have cells of their own; in the row and the column of the value the
    counters are divided in proportion; and what ``Pipeline`` says.

    >>> from tamis.values import Range
    >>> gem = Gem(["x", "y"])
    >>> gem.add({"x": Range(0.2, 0.4), "y": Range(low=0.5)})
    0
    >>> gem.match({"x": 0.4, "y": 0.7}).tolist()
    [0]
    >>> [(step.attribute, step.method) for step in gem.trace({"x": 0.5, "y": 0.7}).steps]
    [('x', 'exclude')]
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(
        self,
        attributes: Sequence[Attribute | str],
        n_cells: int = 80,
        n_caches: int = 20,
        plan: str = "near_optimal",
    ) -> None:
        super().__init__(attributes, plan, {"near_optimal", "optimal"})
        self.n_cells = n_cells = check_count("n_cells", n_cells)
        self.n_caches = n_caches = check_count("n_caches", n_caches, 0, _MAX_CACHES)
        n_lists = self.n_attributes * (n_cells * (n_cells + 3) // 2)
        self._lists = SlotLists(n_lists, has_values=True, value_type=np.uint32)
        shape = self.n_attributes, n_cells
        self._row_count = np.zeros(shape, np.int64)
        self._column_count = np.zeros(shape, np.int64)
        share = np.arange(1, n_caches + 1) / (n_caches + 1)
        place = self.domains.low[:, None] + self.domains.width[:, None] * share
        words = np.zeros((*place.shape, 0), np.uint64)
        self._caches = Caches(place, words)

    @property
    def _triangle(self) -> Triangle:
        return Triangle(self._lists.arrays, self.n_cells, self._row_count, self._column_count)

    def _put(self, slots: Slots) -> None:
        self._lists.extend(*self._entries(slots))
        count_cells(self._triangle, self.stored, slots, self.domains, 1)
        put_caches(self._caches, self.stored, slots)

    def _drop(self, slots: Slots) -> None:
        keys, owners, _ = self._entries(slots)
        self._lists.discard(keys, owners)
        count_cells(self._triangle, self.stored, slots, self.domains, -1)
        drop_caches(self._caches, slots)

    def _find_rates(self, event: Floats) -> None:
        n_asking = self._columns.n_asking
        find_rates(self._triangle, self.domains, n_asking, self._n_held, event, self._rates)

    def _exclude(self, event: Floats, plan: Plan) -> None:
        triangle, caches, columns = self._triangle, self._caches, self._columns
        plain = tuple(plan)
        exclude(triangle, caches, columns, self.stored, self.domains, event, plain, self._words)

    def _index_bytes(self) -> int:
        kept = (self._row_count, self._column_count, *self._caches)
        return self._lists.n_bytes + sum(array.nbytes for array in kept)

    def _widen(self, n_words: int) -> None:
        m, n_caches, n_before = self._caches.words.shape
        flat = self._caches.words.reshape(m * n_caches, n_before)
        words = widened(flat, n_words, _ALL).reshape(m, n_caches, n_words)
        self._caches = self._caches._replace(words=words)

    def _entries(self, slots: Slots) -> tuple[Array, Array, Array]:
        """The cells, slots and places of all constraints."""
        n = int((self.stored.end[slots] - self.stored.start[slots]).sum())
        entries = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint32)
        fill_cells(self.stored, slots, self.domains, self.n_cells, *entries)
        return entries

    # -- for looking at

    def _areas(self, m: int, value: float, *, is_first: bool) -> tuple[Area, ...]:
        cell, last = self.cell_of(m, value), self.n_cells - 1
        border = (
            self._area("A'", m, (cell, cell), (0, cell - 1), is_compared=True),
            self._area("B'", m, (cell + 1, last), (cell, cell), is_compared=True),
            self._area("D", m, (cell, cell), (cell, cell), is_compared=True),
        )
        if is_first and self.n_caches:
            return (*self._cached_areas(m, value), *border)
        whole = (
            self._area("A", m, (0, cell - 1), (0, cell - 1)),
            self._area("B", m, (cell + 1, last), (cell + 1, last)),
        )
        return (*whole, *border)

    def _cached_areas(self, m: int, value: float) -> tuple[Area, ...]:
        """What lies between the rectangles of the value and of the nearest cache (Fig. 3b)."""
        place = float(self._caches.place[m, int(nearest_cache(self._caches, m, value))])
        cell, cached, last = self.cell_of(m, value), self.cell_of(m, place), self.n_cells - 1
        if value < place:
            return (
                self._area("added", m, (cell + 1, cached), (0, cell - 1)),
                self._area("removed", m, (cached, last), (cell + 1, cached)),
            )
        return (
            self._area("added", m, (cell + 1, last), (cached, cell - 1)),
            self._area("removed", m, (cached, cell - 1), (0, cached)),
        )

    def _area(
        self, name: str, m: int, rows: tuple[int, int], columns: tuple[int, int], **how: bool
    ) -> Area:
        counts = self.cell_counts(m)[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1]
        return Area(name, (rows, columns), int(counts.sum()), how.get("is_compared", False))

    def cell_of(self, m: int, value: float) -> int:
        """The row and column of a value of attribute m."""
        return int(cell_of(self.domains, m, value, self.n_cells << PLACE_BITS)) >> PLACE_BITS

    def cell_counts(self, m: int) -> Array:
        """How many constraints each cell of the triangle holds, by row and column."""
        rows, columns = np.tril_indices(self.n_cells)
        start = m * (self.n_cells * (self.n_cells + 3) // 2)
        counts = np.zeros((self.n_cells, self.n_cells), np.int64)
        counts[rows, columns] = self._lists.arrays.size[start : start + len(rows)]
        return counts

    @property
    def cache_places(self) -> Array:
        """The places of the caches, f8[M, n_caches]."""
        return self._caches.place
