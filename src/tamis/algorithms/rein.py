"""REIN: find who does not match, and what is left matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.kernels.rein import N_SIDES, count_bounds, fill_bounds, mark_unmatched
from tamis.kernels.bits import write_unset
from tamis.kernels.cells import cell_of
from tamis.matching import Attribute, Capabilities, Matcher, SlotLists
from tamis.matching.matcher import EventLike
from tamis.matching.parameters import check_count
from tamis.matching.store import Array, Slots, grown
from tamis.matching.table import Floats

_PART = 128  # words between two parts of a result
_ALL = np.uint64(2**64 - 1)


class Rein(Matcher):
    """REIN (Qian, Cao, Zhu, Li, INFOCOM 2014), as seeds 0 to 2 describe it.

    Two lists of buckets an attribute hold the subscriptions by their low and by their high
    bound (the paper's b = 1000, ``n_buckets``). For an event every subscription with a low
    bound above the value or a high bound below it is marked in a bit set; the bits that stay
    are the result. Departs from the paper: numbers stay float64 instead of becoming doubled
    integers; an attribute that the event lacks marks all who constrain it; a third list of
    buckets holds excluded values (not-equal).
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, attributes: Sequence[Attribute | str], n_buckets: int = 1_000) -> None:
        super().__init__(attributes)
        self.n_buckets = check_count("n_buckets", n_buckets)
        self._lists = SlotLists(self.n_attributes * N_SIDES * self.n_buckets, has_values=True)
        self._absent = np.zeros(0, np.uint64)  # bits of the slots that hold no subscription
        self._marked = np.zeros(0, np.uint64)

    def bucket_of(self, m: int, value: float) -> int:
        """The bucket that holds a value of attribute m."""
        return int(cell_of(self.domains, m, value, self.n_buckets))

    def bucket_counts(self, m: int, side: int) -> Array:
        """How many bounds each bucket of one side (0 low, 1 high) holds."""
        start = (m * N_SIDES + side) * self.n_buckets
        return self._lists.arrays.size[start : start + self.n_buckets]

    def marked_by(self, event: EventLike) -> Array:
        """b1[n_slots]: whose bit an event sets."""
        self._mark(self._row_of(event))
        bits = np.unpackbits(self._marked.view(np.uint8), bitorder="little")
        return bits[: self.n_slots].astype(np.bool_)

    def _add(self, slots: Slots) -> None:
        self._lists.extend(*self._entries(slots))
        self._absent = grown(self._absent, _n_words(self.n_slots), _ALL)
        self._marked = grown(self._marked, len(self._absent))
        np.bitwise_and.at(self._absent, slots >> 6, ~_bits_of(slots))

    def _remove(self, slots: Slots) -> None:
        keys, owners, _ = self._entries(slots)
        self._lists.discard(keys, owners)
        np.bitwise_or.at(self._absent, slots >> 6, _bits_of(slots))

    def _match(self, event: Floats, out: Slots) -> int:
        self._mark(event)
        return int(write_unset(self._marked, 0, _n_words(self.n_slots), out, 0))

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        self._mark(event)
        n_out, n_words = 0, _n_words(self.n_slots)
        for start in range(0, n_words, _PART):
            end = min(n_words, start + _PART)
            n_out = int(write_unset(self._marked, start, end, out, n_out))
            yield n_out

    def _memory_bytes(self) -> int:
        return self._lists.n_bytes + self._absent.nbytes + self._marked.nbytes

    def _mark(self, event: Floats) -> None:
        self._marked[:] = self._absent
        mark_unmatched(self._lists.arrays, self.domains, self.n_buckets, event, self._marked)

    def _entries(self, slots: Slots) -> tuple[Array, Array, Array]:
        """The buckets, slots and values of all bounds."""
        n = int(count_bounds(self.stored, slots))
        entries = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
        fill_bounds(self.stored, slots, self.domains, self.n_buckets, *entries)
        return entries


def _n_words(n_slots: int) -> int:
    return (n_slots + 63) // 64


def _bits_of(slots: Slots) -> Array:
    return np.uint64(1) << (slots.astype(np.uint64) & np.uint64(63))
