"""EventStore: events that stay valid, and which of them a subscription asks for."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import DuplicateEvent, InvalidEvent, InvalidSubscription, UnknownEvent
from tamis.events.head import Head, HeadView
from tamis.events.moments import LONG_AGO, micros_now
from tamis.events.question import Question
from tamis.events.ranking import ORDERS, ranked
from tamis.model import Event, Subscription, events_from_arrow

Place = tuple[HeadView, int]  # a part, and a row in it


class State(NamedTuple):
    """What a reader works on; published by one assignment."""

    version: int
    clock: int  # the latest moment the store was told of; its time never goes back
    parts: tuple[HeadView, ...]  # oldest first


class EventStore:
    """Events with a validity, found by subscriptions.

    >>> store = EventStore()
    >>> store.insert(Event("e1", {"kind": "sale", "price": 3}))
    >>> store.insert(Event("e2", {"kind": "sale", "price": 9}))
    >>> store.match(Subscription("s", "kind = 'sale' AND price < 5"))
    ['e1']
    >>> store.delete("e1")
    >>> store.match(Subscription("s", "kind = 'sale'"))
    ['e2']
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._head = Head()
        self._n_inserted = 0
        self._n_held = 0
        self._state = State(0, LONG_AGO, (HeadView(self._head),))

    # -- changing

    def insert(self, event: Event, now: datetime | None = None) -> None:
        """Keep an event; its id must be new."""
        self.insert_many((event,), now)

    def insert_many(self, events: Iterable[Event] | pa.Table, now: datetime | None = None) -> None:
        """Keep many events: any iterable, or an Arrow table as for ``events_from_arrow``.

        All or nothing.
        """
        given = _events_in(events)
        arrival = micros_now(now)
        with self._lock:
            clock = max(arrival, self._state.clock)
            outdated = self._check_new([event.id for event in given], clock)
            for part, row in outdated:
                self._bury(part, row)
            for event in given:
                self._head.append(event, arrival, self._n_inserted)
                self._n_inserted += 1
            self._n_held += len(given)
            self._publish(clock)

    def delete(self, id: str) -> None:
        """Forget an event, which must be there and not have expired."""
        with self._lock:
            self._bury(*self._place_of(id, self._state))
            self._publish(self._state.clock)

    def expire(self, now: datetime | None = None, limit: int = 10_000) -> int:
        """Drop at most ``limit`` expired events; return how many."""
        with self._lock:
            clock, version = max(micros_now(now), self._state.clock), self._state.version
            n_dropped = 0
            for part in self._state.parts:
                death = part.death[: part.n_rows]
                rows = np.flatnonzero((part.until[: part.n_rows] <= clock) & (death == 0))
                rows = rows[: limit - n_dropped]
                death[rows] = version + 1
                n_dropped += len(rows)
            self._n_held -= n_dropped
            self._publish(clock)
            return n_dropped

    # -- looking

    def match(
        self,
        subscription: Subscription,
        now: datetime | None = None,
        order: str = "newest",
        limit: int | None = None,
    ) -> list[str]:
        """The ids of the valid events that satisfy a subscription, in that order."""
        return self.match_batch((subscription,), now, order, limit)[0]

    def match_batch(
        self,
        subscriptions: Iterable[Subscription],
        now: datetime | None = None,
        order: str = "newest",
        limit: int | None = None,
    ) -> list[list[str]]:
        """``match`` for each of many, on the store as it is at one moment."""
        if order not in ORDERS:
            raise InvalidSubscription(f"order {order!r}; expected one of {', '.join(ORDERS)}")
        state = self._state
        moment = max(micros_now(now), state.clock)
        return [_match(state, one, moment, order, limit) for one in subscriptions]

    def __getitem__(self, id: str) -> Event:
        part, row = self._place_of(id, self._state)
        return part.event(row)

    def __contains__(self, id: object) -> bool:
        state = self._state
        return isinstance(id, str) and _find(id, state, state.clock) is not None

    def __len__(self) -> int:
        return self._n_held

    # -- inside

    def _place_of(self, id: str, state: State) -> Place:
        place = _find(id, state, state.clock)
        if place is None:
            raise UnknownEvent(f"no event {id!r} in the store")
        return place

    def _check_new(self, ids: list[str], clock: int) -> list[Place]:
        """Refuse ids that are taken; return where those stand that have expired."""
        outdated = []
        if len(set(ids)) < len(ids):
            twice = next(id for id in ids if ids.count(id) > 1)
            raise DuplicateEvent(f"the id {twice!r} is given twice; nothing was inserted")
        for id in ids:
            place = _find(id, self._state, LONG_AGO)
            if place is None:
                continue
            if place[0].until[place[1]] > clock:
                raise DuplicateEvent(f"the id {id!r} is taken; nothing was inserted")
            outdated.append(place)
        return outdated

    def _bury(self, part: HeadView, row: int) -> None:
        part.death[row] = self._state.version + 1
        self._n_held -= 1

    def _publish(self, clock: int) -> None:
        self._state = State(self._state.version + 1, clock, (HeadView(self._head),))


def _match(
    state: State, subscription: Subscription, now: int, order: str, limit: int | None
) -> list[str]:
    if not isinstance(subscription, Subscription):
        raise InvalidSubscription(
            f"{type(subscription).__name__} is not a Subscription; make one: Subscription(id, "
            "filter)"
        )
    question = Question(subscription.condition)
    found = [(part, part.find(question, now, state.version)) for part in state.parts]
    return ranked(found, subscription, order, limit)


def _find(id: str, state: State, clock: int) -> Place | None:
    """Where the living event of an id stands, unless it has expired by the clock."""
    for part in reversed(state.parts):
        row = part.number_of(id)
        if row >= 0 and not 0 < part.death[row] <= state.version and part.until[row] > clock:
            return part, row
    return None


def _events_in(given: Any) -> list[Event]:
    if isinstance(given, pa.Table | pa.RecordBatch):
        return events_from_arrow(given)
    if not isinstance(given, Iterable):
        raise InvalidEvent(
            f"{type(given).__name__} is not many; give an iterable of Events or an Arrow table"
        )
    events = list(given)
    for event in events:
        if not isinstance(event, Event):
            raise InvalidEvent(f"{type(event).__name__} is not an Event; make one: Event(id, …)")
    return events
