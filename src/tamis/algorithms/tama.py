"""TAMA: layered cells an attribute, and counting; a superset, or exact with a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tamis.algorithms.kernels.tama import count_cells, count_satisfied, fill_cells
from tamis.errors import InvalidSchema
from tamis.kernels.constraints import keep_accepting
from tamis.kernels.counting import write_complete
from tamis.matching import Attribute, Capabilities, Matcher, SlotLists
from tamis.matching.store import Slots, grown
from tamis.matching.table import Floats

_MAX_LEVELS = 20
_CHUNK = 50_000  # slots whose cells are listed at once


class Tama(Matcher):
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
        super().__init__(attributes)
        if not 1 <= n_levels <= _MAX_LEVELS:
            raise InvalidSchema(f"{n_levels} levels; expected 1 to {_MAX_LEVELS}")
        self.n_levels = n_levels
        self._n_leaves = 2 ** (n_levels - 1)
        self._lists = SlotLists(self.n_attributes * 2 * self._n_leaves)
        kind = np.uint8 if self.n_attributes < 255 else np.uint16
        self._never = int(np.iinfo(kind).max)
        self._counts = np.zeros(0, kind)
        self._needed = np.zeros(0, kind)  # constraints of each slot; _never if it holds nothing

    def _add(self, slots: Slots) -> None:
        self._counts = grown(self._counts, self.n_slots)
        self._needed = grown(self._needed, self.n_slots, self._never)
        self._needed[slots] = self.stored.end[slots] - self.stored.start[slots]
        if len(slots) > 1_000:
            counts = np.zeros(len(self._lists), np.int64)
            count_cells(self.stored, slots, self.domains, self._n_leaves, counts)
            self._lists.reserve(counts)
        for first in range(0, len(slots), _CHUNK):
            self._lists.extend(*self._entries(slots[first : first + _CHUNK]))

    def _remove(self, slots: Slots) -> None:
        self._needed[slots] = self._never
        self._lists.discard(*self._entries(slots))

    def _match(self, event: Floats, out: Slots) -> int:
        self._counts[:] = 0
        count_satisfied(self._lists.arrays, self.domains, self._n_leaves, event, self._counts)
        return int(write_complete(self._counts, self._needed, self.n_slots, out))

    def _memory_bytes(self) -> int:
        return self._lists.n_bytes + self._counts.nbytes + self._needed.nbytes

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
