"""EventMatcher: a matcher that also holds events and finds those a subscription accepts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidEvent, NotSupported
from tamis.kernels.constraints import Stored
from tamis.matching.attributes import Attribute
from tamis.matching.matcher import Matcher, slots_of
from tamis.matching.matches import Ids
from tamis.matching.reading import Constraint
from tamis.matching.store import Slots, Store, grown
from tamis.matching.table import Floats, Table


class EventMatcher(Matcher):
    """A matcher with subscription matching: events are kept until they expire.

    An event's id is the number that ``add_events`` returned. An event whose ``until`` is before
    ``now`` is expired: it is not found, and algorithms drop it when they meet it. Events are
    numbered apart from subscriptions.

    >>> from tamis.algorithms import make
    >>> from tamis.values import Range
    >>> matcher = make("simple", ["x", "y"])
    >>> matcher.add_events([[0.2, 0.9], [0.3, np.nan]], until=[10, 20]).tolist()
    [0, 1]
    >>> matcher.match_subscription({"x": Range(0, 0.5)}, now=5).tolist()
    [0, 1]
    >>> matcher.match_subscription({"x": Range(0, 0.5)}, now=15).tolist()
    [1]
    """

    def __init__(self, attributes: Sequence[Attribute | str]) -> None:
        super().__init__(attributes)
        self.events = np.zeros((0, self.n_attributes))  # f8[Q, M], a row an event slot
        self.until = np.zeros(0)  # f8[Q]
        self.has_event = np.zeros(0, np.bool_)
        self._free_events: list[int] = []
        self.n_event_slots = 0

    # -- hooks

    @abstractmethod
    def _add_events(self, slots: Slots) -> None:
        """Take new event slots into the structure; their values are in ``self.events``."""

    @abstractmethod
    def _remove_events(self, slots: Slots) -> None:
        """Take event slots out of the structure; their values are still there."""

    @abstractmethod
    def _match_subscription(self, subscription: Stored, now: float, out: Slots) -> int:
        """Write the event slots that slot 0 of ``subscription`` accepts, ascending, to ``out``.

        Only those with ``until >= now``. Expired ones that the structure has dropped on the way
        are to be given to ``self._forget_events``.
        """

    # -- the public face

    @property
    def n_events(self) -> int:
        """How many events are kept; expired ones count until they are dropped."""
        return self.n_event_slots - len(self._free_events)

    @final
    def add_events(self, values: npt.ArrayLike, until: npt.ArrayLike | None = None) -> Ids:
        """Keep events, a row each; NaN where a value is missing. Returns their ids.

        A text is the code that ``texts[name].add(text)`` gives; one that nobody added is found by
        no subscription that names it later.
        """
        matrix = self._check_events(values, 2)
        ends = _check_until(until, len(matrix))
        n_reused = min(len(matrix), len(self._free_events))
        reused = [self._free_events.pop() for _ in range(n_reused)]
        n_fresh = len(matrix) - n_reused
        fresh = np.arange(self.n_event_slots, self.n_event_slots + n_fresh, dtype=np.int32)
        slots = np.concatenate([np.array(reused, np.int32), fresh])
        self.n_event_slots += n_fresh
        for name in ("events", "until", "has_event"):
            setattr(self, name, grown(getattr(self, name), self.n_event_slots))
        self.events[slots], self.until[slots], self.has_event[slots] = matrix, ends, True
        if len(slots):
            self._add_events(slots)
        return slots

    @final
    def remove_events(self, ids: Sequence[int] | Ids) -> None:
        """Forget events, all or none."""
        given, strangers = slots_of(ids, self.has_event[: self.n_event_slots])
        slots = np.unique(given)
        if strangers or len(slots) < len(given):
            raise InvalidEvent("an id that no event has, or that is given twice; nothing removed")
        if len(slots):
            self._remove_events(slots)
            self._forget_events(slots)

    @final
    def match_subscription(
        self, subscription: Mapping[str, Constraint] | Table, now: float = -np.inf
    ) -> Ids:
        """The ids of the events, not expired at ``now``, that a subscription accepts, ascending.

        The subscription, a mapping as for ``add`` or a table of one row, is not saved.
        """
        table = subscription
        if not isinstance(table, Table):
            table = self._reader.subscription(table, is_saved=False)
        self._check_table(table)
        if not isinstance(now, int | float | np.number) or np.isnan(now):
            raise InvalidEvent(f"now is {now!r}; expected a number, as until is")
        if len(table) != 1:
            raise NotSupported(f"a table of {len(table)} subscriptions; expected one")
        if table.is_hollow[0]:
            return np.zeros(0, np.int32)
        store = Store()
        store.put(np.zeros(1, np.int32), np.zeros(1, np.int64), table, 1)
        out = np.empty(self.n_event_slots, np.int32)
        return out[: self._match_subscription(store.arrays, now, out)].copy()

    def _forget_events(self, slots: Slots) -> None:
        """Give back the numbers of events that the structure no longer holds."""
        self.has_event[slots] = False
        self._free_events.extend(slots[::-1].tolist())

    def _event_bytes(self) -> int:
        return sum(array.nbytes for array in (self.events, self.until, self.has_event))


def _check_until(until: npt.ArrayLike | None, n: int) -> Floats:
    if until is None:
        return np.full(n, np.inf)
    try:
        ends = np.asarray(until, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidEvent(f"until is no array of numbers: {error}") from None
    if ends.shape != (n,) or np.isnan(ends).any():
        raise InvalidEvent(f"until has shape {ends.shape}; expected {n} numbers, none of them NaN")
    return ends
