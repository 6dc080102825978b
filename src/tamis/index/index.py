"""Index: the public face of matching."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import DuplicateSubscription, InvalidSubscription, UnknownSubscription
from tamis.index import snapshot
from tamis.index.boxes import subscriptions_of_boxes
from tamis.index.homes import Home, Homes, homes_of
from tamis.index.matches import MatchSet
from tamis.language import Conjunction, Explanation, Filter, explain, normal_form
from tamis.language.evaluate import HasAttributes, accepts, attributes_of
from tamis.model import Schema, Subscription, attributes_of_batch
from tamis.values import Attributes


@dataclass(slots=True)
class _Shared:
    """A filter, and everybody who saved it."""

    conjunctions: tuple[Conjunction, ...]
    homes: tuple[Home, ...]
    priority_of: dict[str, int] = field(default_factory=dict)

    def holds_for(self, attributes: Attributes) -> bool:
        return any(
            all(accepts(one.predicate, attributes) != one.negated for one in conjunction)
            for conjunction in self.conjunctions
        )


class Index:
    """Subscriptions, and which of them an event satisfies.

    >>> index = Index()
    >>> index.add(Subscription("s1", "brand = 'Huawei' AND price < 3300", priority=0))
    >>> index.add(Subscription("s2", "price < 5000"))
    >>> index.match({"brand": "Huawei", "price": 3200})
    ['s1', 's2']
    >>> index.match_batch({"price": [4000, 6000]})[0]
    ['s2']
    """

    def __init__(self, schema: Schema | Mapping[str, Any] | None = None) -> None:
        self.schema = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        self._subscriptions: dict[str, Subscription] = {}
        self._shared: dict[Filter, _Shared] = {}
        self._homes = Homes()
        self._lock = threading.RLock()

    # -- saving subscriptions

    def add(self, subscription: Subscription) -> None:
        """Save a subscription; its id must be new."""
        self.add_many([subscription])

    def add_many(self, subscriptions: Iterable[Subscription] | pa.Table) -> None:
        """Save many: any iterable, or an Arrow table (id, filter, priority). All or nothing."""
        given = list(_subscriptions_in(subscriptions))
        compiled = [self._compile(one) for one in given]
        with self._lock:
            seen = set()
            for one in given:
                if one.id in self._subscriptions or one.id in seen:
                    raise DuplicateSubscription(
                        f"the id {one.id!r} is taken; use update() to change a subscription"
                    )
                seen.add(one.id)
            for one, conjunctions in zip(given, compiled, strict=True):
                self._insert(one, conjunctions)

    def update(self, subscription: Subscription) -> None:
        """Replace the subscription of the same id, which must exist."""
        conjunctions = self._compile(subscription)
        with self._lock:
            self.remove(subscription.id)
            self._insert(subscription, conjunctions)

    def remove(self, id: str) -> None:
        """Forget a subscription, which must exist."""
        with self._lock:
            subscription = self[id]
            del self._subscriptions[id]
            condition = subscription.condition
            shared = self._shared[condition]
            del shared.priority_of[id]
            if not shared.priority_of:
                del self._shared[condition]
                for home in shared.homes:
                    self._homes.drop(home, builtin_id(shared))

    def __getitem__(self, id: str) -> Subscription:
        try:
            return self._subscriptions[id]
        except KeyError:
            raise UnknownSubscription(f"no subscription {id!r} in the index") from None

    def __contains__(self, id: object) -> bool:
        return id in self._subscriptions

    def __len__(self) -> int:
        return len(self._subscriptions)

    # -- matching

    def match(self, event: HasAttributes | Mapping[str, Any]) -> list[str]:
        """The ids of the subscriptions the event satisfies, highest priority first."""
        return [id for _, id in self._match(attributes_of(event))]

    def match_batch(self, events: Any) -> MatchSet:
        """Match an Arrow table, a pandas frame, a dict of arrays, or a list of dicts or Events."""
        matches = [self._match(attributes) for attributes in attributes_of_batch(events)]
        offsets = np.zeros(len(matches) + 1, dtype=np.int64)
        np.cumsum([len(found) for found in matches], out=offsets[1:])
        flat = [pair for found in matches for pair in found]
        priorities = np.array([priority for priority, _ in flat], dtype=np.int8)
        return MatchSet(offsets, [id for _, id in flat], priorities)

    def explain(self, id: str, event: HasAttributes | Mapping[str, Any]) -> Explanation:
        """Why a subscription matches an event, or does not, clause by clause."""
        return explain(self[id].condition, event)

    # -- files

    def save(self, path: str | Path) -> None:
        """Write the index to a new directory."""
        with self._lock:
            snapshot.write(Path(path), list(self._subscriptions.values()), self.schema)

    @classmethod
    def open(cls, path: str | Path) -> Index:
        """Open an index that was saved."""
        subscriptions, schema = snapshot.read(Path(path))
        index = cls(schema)
        index.add_many(subscriptions)
        return index

    # -- bulk

    @classmethod
    def from_boxes(
        cls,
        attributes: Sequence[str],
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        ids: Sequence[str] | None = None,
        low_open: npt.ArrayLike | None = None,
        high_open: npt.ArrayLike | None = None,
        priority: npt.ArrayLike | None = None,
    ) -> Index:
        """Index N boxes over M attributes: float64 (N, M), NaN where unconstrained.

        >>> nan = float("nan")
        >>> index = Index.from_boxes(["x", "y"], [[0, nan], [5, 1]], [[1, nan], [6, 2]], ["a", "b"])
        >>> index.match({"x": 1})
        ['a']
        """
        index = cls()
        index.add_many(
            subscriptions_of_boxes(attributes, low, high, ids, low_open, high_open, priority)
        )
        return index

    # -- inside

    def _compile(self, subscription: Subscription) -> tuple[Conjunction, ...]:
        if not isinstance(subscription, Subscription):
            raise InvalidSubscription(
                f"{type(subscription).__name__} is not a Subscription; make one: Subscription(id, "
                "filter)"
            )
        condition = subscription.condition
        if self.schema is None:
            return normal_form(condition)
        self.schema.check_filter(condition)
        return normal_form(condition, is_single=self.schema.is_single)

    def _insert(self, subscription: Subscription, conjunctions: tuple[Conjunction, ...]) -> None:
        condition = subscription.condition
        shared = self._shared.get(condition)
        if shared is None:
            homes = tuple(dict.fromkeys(home for one in conjunctions for home in homes_of(one)))
            shared = self._shared[condition] = _Shared(conjunctions, homes)
            for home in homes:
                self._homes.put(home, builtin_id(shared), shared)
        shared.priority_of[subscription.id] = subscription.priority
        self._subscriptions[subscription.id] = subscription

    def _match(self, attributes: Attributes) -> list[tuple[int, str]]:
        if self.schema is not None:
            self.schema.check_event(attributes)
        found: list[tuple[int, str]] = []
        with self._lock:
            visited = {builtin_id(one): one for one in self._homes.visited_by(attributes)}
            for shared in visited.values():
                assert isinstance(shared, _Shared)
                if shared.holds_for(attributes):
                    found.extend((p, id) for id, p in shared.priority_of.items())
        found.sort(key=lambda pair: pair[0])
        return found


builtin_id = id


def _subscriptions_in(given: Iterable[Subscription] | pa.Table) -> Iterable[Subscription]:
    if not isinstance(given, pa.Table | pa.RecordBatch):
        return given
    absent = {"id", "filter"} - set(given.schema.names)
    if absent:
        raise InvalidSubscription(f"the table has no column {sorted(absent)[0]!r}")
    return (
        Subscription.from_json({name: held for name, held in row.items() if held is not None})
        for row in given.to_pylist()
    )
