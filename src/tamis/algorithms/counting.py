"""CountingMatcher: what the algorithms share that count satisfied constraints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tamis.kernels.counting import write_complete, write_newly_complete
from tamis.matching import Attribute, Matcher, SlotLists
from tamis.matching.matcher import EventLike
from tamis.matching.store import Array, Slots, grown
from tamis.matching.table import Floats

_KINDS = (np.uint8, np.uint16, np.uint32)  # of counts: the smallest that holds two more
_N_PARTS = 10  # at most; before each, all counters are looked through


class CountingMatcher(Matcher):
    """A matcher that counts, for each slot, what of it an event satisfies, attribute by attribute.

    A slot is found when its count is what it needs. Subclasses fill ``lists``, set ``needed``
    by ``_need`` and write ``_count``.
    """

    def __init__(
        self, attributes: Sequence[Attribute | str], max_needed: int, lists: SlotLists
    ) -> None:
        super().__init__(attributes)
        kind = next(kind for kind in _KINDS if max_needed < np.iinfo(kind).max - 1)
        self._never = int(np.iinfo(kind).max)
        self._counts = np.zeros(0, kind)
        self._needed = np.zeros(0, kind)  # _never for a slot that holds no subscription
        self._lists = lists

    def counts_of(self, event: EventLike) -> tuple[Array, Array]:
        """How much of each slot an event satisfies, and how much the slot needs."""
        self._counts[:] = 0
        self._count(self._row_of(event), 0, self.n_attributes)
        return self._counts[: self.n_slots].copy(), self._needed[: self.n_slots].copy()

    @abstractmethod
    def _count(self, event: Floats, first: int, last: int) -> None:
        """Add to ``self._counts`` what attributes first to last - 1 of an event satisfy."""

    def _need(self, slots: Slots, needed: npt.NDArray[np.int64]) -> None:
        """Say how much each of the new slots needs."""
        self._counts = grown(self._counts, self.n_slots)
        self._needed = grown(self._needed, self.n_slots, self._never)
        self._needed[slots] = needed

    def _need_no_more(self, slots: Slots) -> None:
        """These slots are not to be found."""
        self._needed[slots] = self._never

    def _match(self, event: Floats, out: Slots) -> int:
        self._counts[:] = 0
        self._count(event, 0, self.n_attributes)
        return int(write_complete(self._counts, self._needed, self.n_slots, out))

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        """What is complete after each attribute, or after some where there are many."""
        self._counts[:] = 0
        n_out, n_at_once = 0, -(-self.n_attributes // _N_PARTS)
        for m in range(0, self.n_attributes, n_at_once):
            self._count(event, m, min(self.n_attributes, m + n_at_once))
            n_out = int(write_newly_complete(self._counts, self._needed, self.n_slots, out, n_out))
            yield n_out

    def _memory_bytes(self) -> int:
        return self._lists.n_bytes + self._counts.nbytes + self._needed.nbytes
