"""EventStore: events that stay valid, and which of them a subscription asks for."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import (
    DuplicateEvent,
    InvalidEvent,
    InvalidSubscription,
    InvalidValue,
    UnknownEvent,
    quoted,
)
from tamis.events import files
from tamis.events.arrow import NotPlain, table_of_arrow
from tamis.events.collection import Collection, check_letters
from tamis.events.moments import LONG_AGO, micros_now
from tamis.events.question import Question
from tamis.events.ranking import ORDERS, check_limit, ranked
from tamis.events.state import Place, State, places_of
from tamis.events.table import EventTable
from tamis.kernels.event_scan import Moment
from tamis.model import Event, Subscription, events_from_arrow
from tamis.slots.texts import Stored

MIN_TABLE = 512  # rows of an Arrow table that becomes a segment as it is


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
        self._collection = Collection()

    # -- changing

    def insert(self, event: Event, now: datetime | None = None) -> None:
        """Keep an event; its id must be new."""
        if not isinstance(event, Event):
            raise _not_an_event(event)
        arrival = micros_now(now)
        with self._collection.lock:
            collection = self._collection
            state = collection.state
            clock = max(arrival, state.clock)
            place = state.place_of(event.id, LONG_AGO)
            if place is not None:
                _check_outdated((place,), clock)
            collection.begin()
            try:  # as in a ``change``, without half a microsecond that the context takes
                if place is not None:
                    collection.bury((place,))
                collection.append_one(event, arrival, clock)
                collection.finish(clock)
            except BaseException:
                collection.undo()
                raise

    def insert_many(self, events: Iterable[Event] | pa.Table, now: datetime | None = None) -> None:
        """Keep many events: any iterable, or an Arrow table as for ``events_from_arrow``.

        All or nothing.
        """
        arrival = micros_now(now)
        given = _read(events, arrival)
        ids = given.ids if isinstance(given, EventTable) else [event.id for event in given]
        check_letters(ids, "the id")
        with self._collection.lock:
            collection = self._collection
            clock = max(arrival, collection.state.clock)
            outdated = self._outdated(ids, clock)
            with collection.change(clock):
                collection.bury(outdated)
                if isinstance(given, EventTable):
                    collection.append_table(given, clock)
                else:
                    collection.append(given, arrival, clock)

    def delete(self, id: str) -> None:
        """Forget an event, which must be there and not have expired."""
        with self._collection.lock:
            collection = self._collection
            place = self._place_of(id)
            with collection.change(collection.state.clock):
                collection.bury([place])
                collection.thin()

    def expire(self, now: datetime | None = None, limit: int = 10_000) -> int:
        """Drop at most ``limit`` expired events; return how many."""
        check_limit(limit)
        moment = micros_now(now)
        with self._collection.lock:
            collection = self._collection
            clock = max(moment, collection.state.clock)
            with collection.change(clock):
                return collection.sweep(clock, limit)

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
            raise InvalidValue(f"order {order!r}; expected one of {', '.join(ORDERS)}")
        if limit is not None:
            check_limit(limit)
        try:
            asked = iter(subscriptions)
        except TypeError:
            raise InvalidSubscription(
                f"{type(subscriptions).__name__} is not many; give an iterable of Subscriptions, "
                "or use match() for one"
            ) from None
        state = self._collection.state
        moment = state.moment(micros_now(now))
        return [self._match(state, one, moment, order, limit) for one in asked]

    def __getitem__(self, id: str) -> Event:
        part, row = self._place_of(id)
        return part.event(row)

    def __contains__(self, id: object) -> bool:
        state = self._collection.state
        return isinstance(id, str) and state.place_of(id, state.clock) is not None

    def __len__(self) -> int:
        return len(self._collection)

    def stats(self) -> dict[str, Any]:
        """What the store holds and costs.

        >>> store = EventStore()
        >>> store.insert(Event("e1", {"price": 3}))
        >>> store.stats()["n_events"], store.stats()["n_head_events"]
        (1, 1)
        """
        with self._collection.lock:
            return self._collection.stats()

    # -- files

    def save(self, path: str | Path) -> None:
        """Write the store to a new directory."""
        with self._collection.lock:
            collection = self._collection
            with collection.change(collection.state.clock):
                collection.seal(collection.state.clock)
            state = collection.state
        files.write(Path(path), state.segments, state.version, state.clock)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> EventStore:
        """Open a store that was saved.

        Its arrays are mapped, not read, so that this takes little time. ``verify`` reads them and
        compares their checksums first: a damaged array may otherwise give wrong matches, or crash.
        """
        store = cls()
        store._collection = Collection(*files.read(Path(path), verify))
        return store

    # -- inside

    def _match(
        self,
        state: State,
        subscription: Subscription,
        moment: Moment,
        order: str,
        limit: int | None,
    ) -> list[str]:
        if not isinstance(subscription, Subscription):
            raise InvalidSubscription(
                f"{type(subscription).__name__} is not a Subscription; make one: "
                "Subscription(id, filter)"
            )
        question = Question(subscription.filter, subscription.surroundings)
        parts = state.parts
        if not parts:
            question.check_size()
        found = [(part, part.find(question, moment)) for part in parts]
        self._collection.asked.append(question)
        return ranked(found, subscription, order, limit)

    def _place_of(self, id: str) -> Place:
        state = self._collection.state
        place = state.place_of(id, state.clock) if isinstance(id, str) else None
        if place is None:
            raise UnknownEvent(f"no event {quoted(id)} in the store; it never came, or it expired")
        return place

    def _outdated(self, ids: list[str] | pa.Array, clock: int) -> list[Place]:
        """Where events of these ids stand that have expired; the others are refused."""
        try:
            places = places_of(self._collection.state, Stored.of(ids))
        except ValueError as error:
            raise DuplicateEvent(
                f"the id {error.args[0]!r} is given twice; nothing was inserted"
            ) from None
        _check_outdated(places, clock)
        return places


def _check_outdated(places: Iterable[Place], clock: int) -> None:
    for part, row in places:
        if part.until_of(row) > clock:
            (id,) = part.ids_of(np.array([row], np.int32))
            raise DuplicateEvent(f"the id {id!r} is taken; nothing was inserted")


def _not_an_event(given: object) -> InvalidEvent:
    return InvalidEvent(f"{type(given).__name__} is not an Event; make one: Event(id, …)")


def _read(given: Any, arrival: int) -> EventTable | list[Event]:
    """A large Arrow table as columns where it can be; otherwise events."""
    if isinstance(given, pa.Table | pa.RecordBatch):
        if given.num_rows >= MIN_TABLE:
            with suppress(NotPlain):
                return table_of_arrow(given, arrival)
        return events_from_arrow(given)
    if not isinstance(given, Iterable):
        raise InvalidEvent(
            f"{type(given).__name__} is not many; give an iterable of Events or an Arrow table"
        )
    events = list(given)
    for event in events:
        if not isinstance(event, Event):
            raise _not_an_event(event)
    return events
