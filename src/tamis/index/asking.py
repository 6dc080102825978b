"""Asking: filters put to events, for what the index cannot decide by numbers."""

from __future__ import annotations

from collections.abc import Callable

from tamis.index.revision import Check, Place, check_of
from tamis.index.saved import Saved
from tamis.index.statistics import Observer
from tamis.values import Attributes


class Asking:
    """The filters of rows as functions, made when they are first asked."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._check_of_leader: dict[int, Check] = {}

    def is_accepted(
        self, leader: int, there: Place | None, attributes: Attributes, saved: Saved
    ) -> bool:
        """Whether a leader's filter accepts an event, of one that moves when it is there."""
        self._observer.n_asked[leader] += 1
        check = self._check_of_leader.get(leader)
        if check is None:
            check = check_of(saved.condition(leader) if there is None else saved.filter(leader))
            self._check_of_leader[leader] = check
        if not check(attributes):
            return False
        return there is None or check_of(saved.area(leader, there))(attributes)

    def forget(self, leader: int) -> None:
        """Let go of the filter of a row that nobody will ask about."""
        self._check_of_leader.pop(leader, None)


class Asker:
    """Who answers for one event, whose attributes are read when first needed."""

    __slots__ = ("_asking", "_attributes", "_read", "_saved")

    def __init__(self, asking: Asking, saved: Saved, read: Callable[[], Attributes]) -> None:
        self._asking = asking
        self._saved = saved
        self._read = read
        self._attributes: Attributes | None = None

    def __call__(self, leader: int, there: Place | None = None) -> bool:
        """Whether the leader's filter accepts the event, of one that moves when it is there."""
        if self._attributes is None:
            self._attributes = self._read()
        return self._asking.is_accepted(leader, there, self._attributes, self._saved)
