"""Simple: every subscription is looked at for every event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from tamis.algorithms.kernels.simple import Columns, fill_columns, scan_columns, scan_events
from tamis.kernels.constraints import Stored
from tamis.matching import Attribute, Capabilities, EventMatcher
from tamis.matching.store import Slots, grown
from tamis.matching.table import Floats

_PART = 8_192  # slots between two parts of a result


class Simple(EventMatcher):
    """The naive scan: the baseline of the Pri-REIN paper (Qian et al., DEBS 2015, section 4.3.1).

    Departs from it in the layout: the k-th constraints of all subscriptions stand side by side,
    and a block of subscriptions is narrowed constraint by constraint. Finds events for a
    subscription in the same way, one by one.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(matches_subscriptions=True)

    def __init__(self, attributes: Sequence[Attribute | str]) -> None:
        super().__init__(attributes)
        self._columns = _empty(0, 0)

    def _add(self, slots: Slots) -> None:
        n_constraints = self.stored.end[slots] - self.stored.start[slots]
        self._make_room(int(n_constraints.max()))
        fill_columns(self._columns, self.stored, slots)

    def _remove(self, slots: Slots) -> None:
        self._columns.n_asked[slots] = -1

    def _match(self, event: Floats, out: Slots) -> int:
        return int(scan_columns(self._columns, event, 0, self.n_slots, out, 0))

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        n_out = 0
        for start in range(0, self.n_slots, _PART):
            end = min(self.n_slots, start + _PART)
            n_out = int(scan_columns(self._columns, event, start, end, out, n_out))
            yield n_out

    def _memory_bytes(self) -> int:
        return sum(array.nbytes for array in self._columns) + self._event_bytes()

    def _add_events(self, slots: Slots) -> None:
        """The values are all there is."""

    def _remove_events(self, slots: Slots) -> None:
        """The values are all there is."""

    def _match_subscription(self, subscription: Stored, now: float, out: Slots) -> int:
        expired = np.flatnonzero(self.has_event & (self.until < now)).astype(np.int32)
        self._forget_events(expired)
        return int(scan_events(self.events, self.has_event, self.n_event_slots, subscription, out))

    def _make_room(self, n_constraints: int) -> None:
        n_columns, n_slots = self._columns.low.shape
        if n_constraints > n_columns or self.n_slots > n_slots:
            n_asked = grown(self._columns.n_asked, self.n_slots, -1)
            wider = _empty(max(n_constraints, n_columns), len(n_asked))
            wider.n_asked[:] = n_asked
            for new, old in zip(wider[1:], self._columns[1:], strict=True):
                new[:n_columns, :n_slots] = old
            self._columns = wider


def _empty(n_columns: int, n_slots: int) -> Columns:
    shape = n_columns, n_slots
    return Columns(
        np.full(n_slots, -1, np.int32),
        np.zeros(shape, np.uint16),
        np.zeros(shape),
        np.zeros(shape),
    )
