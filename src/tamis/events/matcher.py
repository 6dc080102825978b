"""The index and the event store behind the interface of the algorithms, to stand beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.events.store import MIN_TABLE, EventStore
from tamis.index import Index
from tamis.kernels.constraints import Stored
from tamis.language import Filter
from tamis.language.tree import InRange, NotEquals, Present, all_of
from tamis.matching import Attribute, Capabilities, EventMatcher, Order
from tamis.matching.store import Slots, grown
from tamis.matching.table import Floats
from tamis.model import Event, EventColumns, Subscription
from tamis.values import Range

_COLUMNS = EventColumns()
_OWN = frozenset(astuple(_COLUMNS))
MIN_BULK = 1_000  # so many subscriptions for an empty index are built from arrays


class TamisMatcher(EventMatcher):
    """``tamis.Index`` and ``EventStore``, the engines of this library (2026), as a matcher.

    An attribute is an attribute of the index, a text its code; subscriptions become boxes or
    filters, events dicts, as a user would hand them over. The first many subscriptions are built
    by ``Index.from_boxes``, others are added one by one; when more than half are dead it is
    built again. Events are kept in the store without an end, as time here is any number: those
    that are found too late are deleted then.

    >>> from tamis.values import Range
    >>> matcher = TamisMatcher(["x", "y"])
    >>> matcher.add({"x": Range(0.2, 0.4)}), matcher.add({"y": 0.5}, priority=0)
    (0, 1)
    >>> matcher.match({"x": 0.3, "y": 0.5}).tolist()
    [1, 0]
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        order=Order.PRIORITY, matches_subscriptions=True
    )

    def __init__(self, attributes: Sequence[Attribute | str]) -> None:
        super().__init__(attributes)
        self.index = Index()
        self.store = EventStore()
        self._names = [one.name for one in self.attributes]
        self._slot_of_row = np.zeros(0, np.int32)
        self._row_of_slot = np.zeros(0, np.int32)
        self._n_rows = 0

    def _add(self, slots: Slots) -> None:
        if not len(self.index) and len(slots) >= MIN_BULK:
            slots = self._build(slots)
        rows = self._number(slots)
        self.index.add_many(
            Subscription(str(row), self._filter(self.stored, slot), int(self.priority[slot]))
            for row, slot in zip(rows.tolist(), slots.tolist(), strict=True)
        )

    def _remove(self, slots: Slots) -> None:
        rows = self._row_of_slot[slots]
        for row in rows.tolist():
            self.index.remove(str(row))
        self._slot_of_row[rows] = -1
        if 2 * len(self.index) < self._n_rows:
            held = self._slot_of_row[: self._n_rows]
            left, self.index, self._n_rows = held[held >= 0], Index(), 0
            if len(left):
                self._add(left)

    def _match(self, event: Floats, out: Slots) -> int:
        rows = self.index.match_batch([self._dict(event)]).rows
        out[: len(rows)] = self._slot_of_row[rows]
        return len(rows)

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        n_out = 0
        for rows in self.index._reader.match_by_level(self._dict(event)):
            out[n_out : n_out + len(rows)] = self._slot_of_row[rows]
            n_out += len(rows)
            yield n_out

    def _memory_bytes(self) -> int:
        held = self._slot_of_row.nbytes + self._row_of_slot.nbytes
        index, store = self.index.stats(), self.store.stats()
        return held + int(index["memory"]["total"]) + int(store["memory"]) + self._event_bytes()

    def _add_events(self, slots: Slots) -> None:
        # In a table an attribute could not be told from what is the event's own.
        if len(slots) < MIN_TABLE or not _OWN.isdisjoint(self._names):
            self.store.insert_many(
                Event(str(slot), self._dict(self.events[slot])) for slot in slots.tolist()
            )
            return
        columns = {_COLUMNS.id: pa.array(slots).cast(pa.string())}
        for name, held in zip(self._names, self.events[slots].T, strict=True):
            columns[name] = pa.array(held, from_pandas=True)
        self.store.insert_many(pa.table(columns))

    def _remove_events(self, slots: Slots) -> None:
        for slot in slots.tolist():
            self.store.delete(str(slot))

    def _match_subscription(self, subscription: Stored, now: float, out: Slots) -> int:
        found = self.store.match(Subscription("asked", self._filter(subscription, 0)))
        slots = np.sort(np.array([*map(int, found)], np.int32))
        is_valid = self.until[slots] >= now
        self._remove_events(slots[~is_valid])
        self._forget_events(slots[~is_valid])
        n_valid = int(is_valid.sum())
        out[:n_valid] = slots[is_valid]
        return n_valid

    def _build(self, slots: Slots) -> Slots:
        """A new index of the slots that are boxes; the others are returned."""
        stored = self.stored
        lengths = stored.end[slots] - stored.start[slots]
        owner = np.repeat(np.arange(len(slots)), lengths)
        start = np.cumsum(lengths) - lengths
        entry = np.arange(len(owner)) - start[owner] + stored.start[slots][owner]
        is_box = np.ones(len(slots), np.bool_)
        is_box[owner[stored.negated[entry] != 0]] = False
        if not is_box.any():
            return slots
        low = np.full((len(slots), self.n_attributes), np.nan)
        high = low.copy()
        low[owner, stored.attribute[entry]] = stored.low[entry]
        high[owner, stored.attribute[entry]] = stored.high[entry]
        boxes = slots[is_box]
        self.index = Index.from_boxes(
            self._names, low[is_box], high[is_box], priority=self.priority[boxes]
        )
        self._number(boxes)
        return slots[~is_box]

    def _number(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Give slots the next rows, which are also their ids in the index."""
        rows = np.arange(self._n_rows, self._n_rows + len(slots))
        self._n_rows += len(slots)
        self._slot_of_row = grown(self._slot_of_row, self._n_rows, -1)
        self._row_of_slot = grown(self._row_of_slot, self.n_slots)
        self._slot_of_row[rows], self._row_of_slot[slots] = slots, rows
        return rows

    def _filter(self, stored: Stored, slot: int) -> Filter:
        parts: list[Filter] = []
        for k in range(stored.start[slot], stored.end[slot]):
            name = self._names[stored.attribute[k]]
            low, high = float(stored.low[k]), float(stored.high[k])
            if stored.negated[k]:
                parts.append(NotEquals(name, low))
            elif low == -np.inf and high == np.inf:
                parts.append(Present(name))
            else:
                parts.append(InRange(name, Range(low, high)))
        return all_of(parts)

    def _dict(self, event: Floats) -> dict[str, Any]:
        return {
            name: value
            for name, value in zip(self._names, event.tolist(), strict=True)
            if value == value
        }
