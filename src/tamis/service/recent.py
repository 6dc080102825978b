"""The recent events, on which a filter can be tried before it is saved."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from tamis.language import Filter
from tamis.language.evaluate import accepts
from tamis.model import Event

__all__ = ["Preview", "RecentEvents"]

_BROAD_SHARE = 0.1
_FEW_EVENTS = 100  # of which no share means anything


@dataclass(frozen=True, slots=True)
class Preview:
    """What a filter does with the recent events: those it accepts, the newest as examples."""

    n_events: int
    n_matches: int
    examples: list[Event]

    @property
    def is_too_broad(self) -> bool:
        """Whether it accepts more than a tenth of them."""
        return self.n_events >= _FEW_EVENTS and self.n_matches > _BROAD_SHARE * self.n_events


class RecentEvents:
    """The last events, no more than ``most``."""

    def __init__(self, most: int, events: Iterable[Event] = ()) -> None:
        self._events: deque[Event] = deque(events, most)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._events)

    def extend(self, events: Iterable[Event]) -> None:
        """Add events, the oldest first."""
        with self._lock:
            self._events.extend(events)

    def newest(self, n: int) -> list[Event]:
        """The last ``n`` events, the newest first."""
        with self._lock:
            return list(islice(reversed(self._events), n))

    def preview(self, filter: Filter, n_events: int, n_examples: int) -> Preview:
        """Try a filter on the last ``n_events``."""
        chosen = self.newest(n_events)
        accepted = [event for event in chosen if accepts(filter, event.attributes)]
        return Preview(len(chosen), len(accepted), accepted[:n_examples])
