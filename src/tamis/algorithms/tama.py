"""TAMA: layered cells an attribute, and counting; a superset, or exact with a check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tamis.algorithms.counting import CountingMatcher
from tamis.algorithms.kernels.tama import count_cells, count_satisfied, fill_cells
from tamis.kernels.constraints import keep_accepting
from tamis.matching import Attribute, Capabilities, SlotLists
from tamis.matching.parameters import check_count
from tamis.matching.store import Array, Slots
from tamis.matching.table import Floats

_MAX_LEVELS = 20
_MANY = 1_000  # slots that are added or removed by a pass over all lists
_CHUNK = 50_000  # slots whose cells are listed at once


class Tama(CountingMatcher):
    """TAMA (Zhao, Wu, ICDCS 2011), as seeds 0 to 3 describe it: fast, but only a superset.

    Every attribute has ``n_levels`` layers of cells (the papers' d or ξ, 13), each layer with
    cells half as wide as the one above. A constraint is kept in the fewest cells that cover it.
    An event visits one cell a layer and attribute and counts for every subscription how many
    constraints it met there; who is complete is found. The cells at the ends of an interval may
    stick out by the width of the finest cell: hence the superset. Departs from the paper: a
    not-equal constraint is kept as the whole domain, which is a superset as well.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(is_exact=False)

    def __init__(self, attributes: Sequence[Attribute | str], n_levels: int = 13) -> None:
        self.n_levels = check_count("n_levels", n_levels, most=_MAX_LEVELS)
        self._n_leaves = 2 ** (self.n_levels - 1)
        lists = SlotLists(len(attributes) * 2 * self._n_leaves)
        super().__init__(attributes, len(attributes), lists)

    def cell_counts(self, m: int) -> Array:
        """How many constraints each cell of attribute m keeps, by number: see ``kernels.tama``."""
        return self._lists.arrays.size[m * 2 * self._n_leaves :][: 2 * self._n_leaves]

    def _add(self, slots: Slots) -> None:
        self._need(slots, self.stored.end[slots] - self.stored.start[slots])
        if len(slots) > _MANY:
            counts = np.zeros(len(self._lists), np.int64)
            count_cells(self.stored, slots, self.domains, self._n_leaves, counts)
            self._lists.reserve(counts)
        for first in range(0, len(slots), _CHUNK):
            self._lists.extend(*self._entries(slots[first : first + _CHUNK]))

    def _remove(self, slots: Slots) -> None:
        self._need_no_more(slots)
        if len(slots) > _MANY:
            self._lists.discard_in_order(slots)
        else:
            self._lists.discard(*self._entries(slots))

    def _count(self, event: Floats, first: int, last: int) -> None:
        count_satisfied(
            self._lists.arrays, self.domains, self._n_leaves, event, first, last, self._counts
        )

    def _entries(self, slots: Slots) -> tuple[Slots, Slots]:
        """The cells of all constraints of slots, and whose they are."""
        n_constraints = int((self.stored.end[slots] - self.stored.start[slots]).sum())
        keys, owners = (np.empty(n_constraints * 2 * self.n_levels, np.int32) for _ in range(2))
        n = int(fill_cells(self.stored, slots, self.domains, self._n_leaves, keys, owners))
        return keys[:n], owners[:n]


class ExactTama(Tama):
    """TAMA with every subscription it finds checked against its constraints: exact.

    What the papers' TAMA lacks; the check costs little where few are found.
    """

    capabilities: ClassVar[Capabilities] = replace(Tama.capabilities, is_exact=True)

    def _match(self, event: Floats, out: Slots) -> int:
        return int(keep_accepting(self.stored, event, out, super()._match(event, out)))

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        n_before = n_out = 0
        found = np.empty_like(out)
        for n_found in super()._match_parts(event, found):
            part = found[n_before:n_found]
            n_kept = int(keep_accepting(self.stored, event, part, len(part)))
            out[n_out : n_out + n_kept] = part[:n_kept]
            n_before, n_out = n_found, n_out + n_kept
            yield n_out
