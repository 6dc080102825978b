"""Pri-REIN: REIN with its result in order of priority."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.kernels.pri_rein import (
    estimate_selectivity,
    sort_tail,
    write_unset_in_order,
    write_unset_of_level,
)
from tamis.algorithms.rein import Rein
from tamis.matching import Attribute, Capabilities, Order, SlotLists
from tamis.matching.store import Slots
from tamis.matching.table import Floats
from tamis.model.subscription import LOWEST_PRIORITY

N_LEVELS = LOWEST_PRIORITY + 1
_PART = 8_192  # subscriptions of a priority that are looked at between two parts


class PriRein(Rein):
    """Pri-REIN (Qian, Cao, Le Mouël, Li, Wang, DEBS 2015), seed 2, Algorithm 1.

    A list for each priority (0, the highest, to 9) holds its subscriptions in the order in which
    they came. Marking is REIN's; then the bits are read list by list, so that whoever has the
    highest priority is determined first. ``match_parts`` gives a part a priority, or several
    where it is large. Departs from the paper: the lists are kept from event to event, not made
    for each (its line 4).
    """

    capabilities: ClassVar[Capabilities] = Capabilities(order=Order.PRIORITY)

    def __init__(self, attributes: Sequence[Attribute | str], n_buckets: int = 1_000) -> None:
        super().__init__(attributes, n_buckets)
        self._levels = SlotLists(N_LEVELS)

    def level(self, priority: int) -> Slots:
        """The slots of a priority, in the order in which their bits are read."""
        return self._levels.of(priority)

    def _add(self, slots: Slots) -> None:
        super()._add(slots)
        self._levels.extend(self.priority[slots].astype(np.int32), slots)

    def _remove(self, slots: Slots) -> None:
        super()._remove(slots)
        self._levels.discard_in_order(slots)

    def _match(self, event: Floats, out: Slots) -> int:
        self._mark(event)
        return int(write_unset_in_order(self._levels.arrays, 0, N_LEVELS, self._marked, out, 0))

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        self._mark(event)
        lists, n_out = self._levels.arrays, 0
        for level, size in enumerate(lists.size.tolist()):
            for start in range(0, max(1, size), _PART):
                end = min(size, start + _PART)
                n_out = int(
                    write_unset_of_level(lists, level, start, end, self._marked, out, n_out)
                )
                yield n_out

    def _memory_bytes(self) -> int:
        return super()._memory_bytes() + self._levels.n_bytes


class PriReinS(PriRein):
    """Pri-REIN-S: within a priority, whoever accepts the most events first (seed 2, 5.3.2).

    The selectivity of a subscription is estimated as the product of the shares of the domains
    that its constraints cover, as if values were uniform and independent.
    """

    def __init__(self, attributes: Sequence[Attribute | str], n_buckets: int = 1_000) -> None:
        super().__init__(attributes, n_buckets)
        self._levels = SlotLists(N_LEVELS, has_values=True)

    def _add(self, slots: Slots) -> None:
        Rein._add(self, slots)
        selectivity = np.empty(len(slots))
        estimate_selectivity(self.stored, slots, self.domains, selectivity)
        n_sorted = self._levels.arrays.size.copy()
        levels = self.priority[slots].astype(np.int32)
        self._levels.extend(levels, slots, selectivity)
        for level in np.unique(levels):
            sort_tail(self._levels.arrays, level, n_sorted[level])
