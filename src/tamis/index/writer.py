"""Writer: subscriptions on their way to rows and slots, and rows that are let go."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tamis.errors import DuplicateSubscription, InvalidSubscription, UnknownSubscription, quoted
from tamis.index.asking import Asking
from tamis.index.movers import is_mover, mover_of, slots_of_box, slots_of_mover
from tamis.index.outlines import outline_of
from tamis.index.ranges import Box, Layouts, Ranges, ranges_of
from tamis.index.saved import Saved
from tamis.index.sharing import sharing_key
from tamis.language import Conjunction, normal_form
from tamis.model import Schema, Subscription
from tamis.model.event import LOCATION
from tamis.slots.columns import Columns
from tamis.slots.lanes import LAT, LON
from tamis.slots.slots import Slot, slots_of

Prepared = tuple[Conjunction, ...] | Ranges  # a filter on its way to slots
Floats = npt.NDArray[np.float64]


class Writer:
    """Who changes the subscriptions.

    All but ``prepare`` and ``has`` is called with the lock of the engine held; readers see a change
    when the caller, or a move, publishes it.
    """

    def __init__(
        self, schema: Schema | None, saved: Saved, asking: Asking, n_living: int = 0
    ) -> None:
        self.n_living = n_living
        self._schema, self._saved, self._asking = schema, saved, asking
        self._engine, self._columns = saved.engine, saved.columns
        self._ids, self._archive = saved.ids, saved.archive
        self._layouts = Layouts(saved.columns)
        self._leader_of_key: dict[Hashable, int] = {}
        self._key_of_leader: dict[int, Hashable] = {}

    # -- rows and their ids

    def has(self, id: object) -> bool:
        """Whether a subscription has this id."""
        row = self._ids.number_of(id) if isinstance(id, str) else -1
        if row < 0 or self._engine.is_alive(row):
            return row >= 0
        with self._engine.lock:  # an update takes the old row away before the new one is there
            return self._engine.is_alive(self._ids.number_of(str(id)))

    def check_new(self, id: str, others: Collection[str] = ()) -> None:
        """Refuse an id that is taken, or among others."""
        if id in others or self.has(id):
            raise DuplicateSubscription(
                f"the id {quoted(id)} is taken; use update() to change a subscription"
            )

    def living_row(self, id: str) -> int:
        """The row of an id; refuses one that nobody has."""
        row = self._ids.number_of(id) if isinstance(id, str) else -1
        if row < 0 or not self._engine.is_alive(row):
            raise UnknownSubscription(f"no subscription {quoted(id)} in the index")
        return row

    # -- saving

    def prepare(self, subscription: Subscription) -> Prepared:
        """All of a change that needs no lock; what cannot be saved is refused here."""
        if not isinstance(subscription, Subscription):
            raise InvalidSubscription(
                f"{type(subscription).__name__} is not a Subscription; make one: Subscription(id, "
                "filter)"
            )
        if self._schema is not None:
            self._schema.check_filter(subscription.condition)
        # Who is found by a place has slots of the filter alone.
        condition = subscription.filter if is_mover(subscription) else subscription.condition
        ranges = ranges_of(condition)
        if ranges is not None:
            return ranges
        if self._schema is None:
            return normal_form(condition)
        return normal_form(condition, is_single=self._schema.is_single)

    def insert(self, subscription: Subscription, prepared: Prepared) -> None:
        """Give a subscription a row."""
        if is_mover(subscription):
            self._insert_mover(subscription, prepared)
        else:
            self._insert_fixed(subscription, prepared)
        self._ids.append(subscription.id)
        self.n_living += 1

    def bury(self, row: int) -> None:
        """Let a row go."""
        leader = self._engine.bury(row)
        self.n_living -= 1
        if self._engine.chain_is_dead(leader):
            key = self._key_of_leader.pop(leader, None)
            if key is not None and self._leader_of_key.get(key) == leader:
                del self._leader_of_key[key]
            self._asking.forget(leader)

    def _insert_mover(self, subscription: Subscription, prepared: Prepared) -> None:
        columns = place_columns(self._columns)
        ranges = prepared if isinstance(prepared, Ranges) else None
        if isinstance(prepared, Ranges):
            slots = slots_of_box(self._layouts.box_of(prepared))
        else:
            slots = slots_of_mover(prepared, self._columns)
        outline = outline_of(subscription.filter, ranges)
        self._engine.add_mover(mover_of(subscription, slots), columns, subscription.priority)
        self._archive.append_outline(outline, subscription.owner, subscription.delivery)

    def _insert_fixed(self, subscription: Subscription, prepared: Prepared) -> None:
        slots: Box | list[Slot]
        if isinstance(prepared, Ranges):
            slots = self._layouts.box_of(prepared)
            key = slots.key
        else:
            n = len(prepared)
            slots = [slot for one in prepared for slot in slots_of(one, self._columns, n)]
            key = sharing_key(slots, subscription.condition)
        leader = self._leader_of_key.get(key, -1)
        if leader >= 0 and self._engine.can_lead(leader, subscription.priority):
            self._engine.share(leader, subscription.priority)
        else:
            row = self._engine.add(slots, subscription.priority)
            self._leader_of_key[key] = row
            self._key_of_leader[row] = key
        self._archive.append(subscription)

    # -- moving; both publish what they did

    def move(self, id: str, place: tuple[float, float]) -> None:
        """Let a subscription be at another place."""
        engine, row = self._engine, self.living_row(id)
        if engine.move(row, place):
            engine.publish_moves()
        else:
            self._replace({row: self._wide(row).at(place)})

    def move_many(self, ids: Sequence[str], lons: Floats, lats: Floats) -> None:
        """Let subscriptions of different ids be at other places."""
        engine = self._engine
        rows = np.array([self.living_row(id) for id in ids], np.int32)
        if not len(rows):
            return
        if len(set(ids)) < len(ids):
            raise InvalidSubscription("an id is given twice; a subscription is at one place")
        if engine.move_many(rows, lons, lats):
            engine.publish_moves()
            return
        all_places, moving = np.stack([lons, lats], axis=1).tolist(), engine.moving
        places = dict(zip(rows.tolist(), map(tuple, all_places), strict=True))
        wide = {
            row: self._wide(row).at(place)
            for row, place in places.items()
            if moving is None or moving.place_of(row) is None
        }
        for row in places.keys() - wide.keys():
            engine.move(row, places[row])
        self._replace(wide)

    def _replace(self, subscriptions: Mapping[int, Subscription]) -> None:
        """Put others with the same ids where some rows are."""
        prepared = [self.prepare(one) for one in subscriptions.values()]
        self._engine.begin()
        for (row, one), ready in zip(subscriptions.items(), prepared, strict=True):
            self.bury(row)
            self.insert(one, ready)
        self._engine.publish()

    def _wide(self, row: int) -> Subscription:
        """The subscription of a row that has a location, but is not found by it."""
        saved = self._saved.subscription(row)
        if saved.location is None:
            raise InvalidSubscription(
                f"subscription {quoted(saved.id)} has no location to move; update() it with "
                "location and radius_m"
            )
        return saved


def place_columns(columns: Columns) -> tuple[int, int]:
    """The columns of the event's longitude and latitude."""
    return columns.column(LOCATION, LON), columns.column(LOCATION, LAT)
