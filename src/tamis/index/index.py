"""Index: the public face of matching."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import InvalidSubscription
from tamis.index import snapshot
from tamis.index.archive import Archive
from tamis.index.asking import Asking
from tamis.index.boxes import parts_of_boxes
from tamis.index.compaction import Parts, compact
from tamis.index.engine import Engine
from tamis.index.matches import MatchSet
from tamis.index.places import check_ids, check_place, check_places
from tamis.index.reader import Reader
from tamis.index.saved import Saved
from tamis.index.statistics import Observer, describe
from tamis.index.writer import Writer, place_columns
from tamis.language import Explanation, explain
from tamis.model import Schema, Subscription
from tamis.model.subscription import subscriptions_from_arrow
from tamis.slots.columns import Columns
from tamis.slots.texts import Texts
from tamis.values import HasAttributes

N_RECENT_IDS = 4096  # that are kept as Python has them


class Index:
    """Subscriptions, and which of them an event satisfies.

    >>> index = Index()
    >>> index.add(Subscription("s1", "brand = 'Huawei' AND price < 3300", priority=0))
    >>> index.add(Subscription("s2", "price < 5000"))
    >>> index.match({"brand": "Huawei", "price": 3200})
    ['s1', 's2']
    >>> index.match_batch({"price": [4000, 6000]})[0]
    ['s2']

    Any number of threads may match while one changes the subscriptions: a match sees all of a
    change or nothing of it, and is never blocked.
    """

    def __init__(self, schema: Schema | Mapping[str, Any] | None = None) -> None:
        self.schema = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        ids = Texts(n_recent=N_RECENT_IDS)
        self._take(Saved(Engine(), Columns(), ids, Archive()), n_living=0)

    # -- saving subscriptions

    def add(self, subscription: Subscription) -> None:
        """Save a subscription; its id must be new."""
        prepared = self._writer.prepare(subscription)
        with self._engine.lock:
            self._engine.check_finished()
            self._writer.check_new(subscription.id)
            self._engine.begin()
            self._writer.insert(subscription, prepared)
            self._engine.publish()

    def add_many(self, subscriptions: Iterable[Subscription] | pa.Table) -> None:
        """Save many: any iterable, or an Arrow table (id, filter, priority). All or nothing."""
        given = list(_subscriptions_in(subscriptions))
        prepared = [self._writer.prepare(one) for one in given]
        with self._engine.lock:
            self._engine.check_finished()
            seen: set[str] = set()
            for one in given:
                self._writer.check_new(one.id, seen)
                seen.add(one.id)
            self._engine.begin()
            for one, ready in zip(given, prepared, strict=True):
                self._writer.insert(one, ready)
            self._engine.publish()

    def update(self, subscription: Subscription) -> None:
        """Replace the subscription of the same id, which must exist."""
        prepared = self._writer.prepare(subscription)
        with self._engine.lock:
            self._engine.check_finished()
            row = self._writer.living_row(subscription.id)
            self._engine.begin()
            self._writer.bury(row)
            self._writer.insert(subscription, prepared)
            self._engine.publish()

    def remove(self, id: str) -> None:
        """Forget a subscription, which must exist."""
        with self._engine.lock:
            self._engine.check_finished()
            row = self._writer.living_row(id)
            self._engine.begin()
            self._writer.bury(row)
            self._engine.publish()

    def move(self, id: str, lon: float, lat: float) -> None:
        """Let a subscription with a location be at another place; all else stays as it is.

        >>> from tamis.values import Point
        >>> index = Index()
        >>> index.add(Subscription("me", "price < 10", location=(4.9, 52.4), radius_m=500))
        >>> index.move("me", 13.4, 52.5)
        >>> index.match({"price": 5, "location": Point(13.401, 52.5)}), index["me"].location
        (['me'], Point(lon=13.4, lat=52.5))
        """
        place = check_place(lon, lat)
        with self._engine.lock:
            self._engine.check_finished()
            self._writer.move(id, place)

    def move_many(self, ids: Sequence[str], lon: npt.ArrayLike, lat: npt.ArrayLike) -> None:
        """``move`` for different ids, with arrays of places. All or nothing, and seen at once."""
        names = check_ids(ids)
        lons, lats = check_places(names, lon, lat)
        with self._engine.lock:
            self._engine.check_finished()
            self._writer.move_many(names, lons, lats)

    def __getitem__(self, id: str) -> Subscription:
        with self._engine.lock:
            self._engine.check_finished()
            return self._saved.subscription(self._writer.living_row(id))

    def __contains__(self, id: object) -> bool:
        return self._writer.has(id)

    def __len__(self) -> int:
        return self._writer.n_living

    # -- matching

    def match(self, event: HasAttributes | Mapping[str, Any]) -> list[str]:
        """The ids of the subscriptions the event satisfies, highest priority first."""
        return self._ids.texts_of(self._reader.match(self._engine.state, event))

    def match_iter(self, event: HasAttributes | Mapping[str, Any]) -> Iterator[str]:
        """The ids of ``match``, each as soon as it is determined, highest priority first.

        The high priorities are out before the others are looked for, and who stops early saves
        the rest; all of them take longer than with ``match``. What is matched is the index as
        it is now, whatever changes meanwhile.

        >>> index = Index()
        >>> index.add_many([Subscription("a", "x < 1"), Subscription("b", "x < 2", priority=0)])
        >>> next(index.match_iter({"x": 0}))
        'b'
        """
        levels = self._reader.match_by_level(event)
        return (id for rows in levels for id in self._ids.texts_of(rows))

    def match_batch(self, events: Any) -> MatchSet:
        """Match an Arrow table, a pandas frame, a dict of arrays, or a list of dicts or Events."""
        return self._reader.match_batch(events)

    def deliveries(self) -> list[tuple[str, dict[str, Any]]]:
        """The owners and delivery settings, in the order a saved index numbers its subscriptions.

        >>> index = Index()
        >>> index.add(Subscription("s1", "x < 1", owner="zoe", delivery={"schedule": "immediate"}))
        >>> index.deliveries()
        [('zoe', {'schedule': 'immediate'})]
        """
        with self._engine.lock:
            self._engine.check_finished()
            rows = range(self._engine.state.n_rows)
            return [self._archive.delivery(row) for row in rows if self._engine.is_alive(row)]

    def explain(self, id: str, event: HasAttributes | Mapping[str, Any]) -> Explanation:
        """Why a subscription matches an event, or does not, clause by clause."""
        return explain(self[id].condition, event)

    def stats(self) -> dict[str, Any]:
        """What the index holds and costs, how it is built, and which subscriptions stand out.

        ``n_shared`` subscriptions have the filter of another and cost no slots of their own,
        which saves about ``shared_bytes``; ``n_unbounded`` slots are checked against every
        event; ``broadest`` is counted over a sample of recent events, ``costliest`` are the
        filters that had to be asked most often.

        >>> index = Index()
        >>> index.add_many([Subscription("a", "x < 1"), Subscription("b", "x < 1")])
        >>> stats = index.stats()
        >>> stats["n_subscriptions"], stats["n_slots"], stats["n_shared"], stats["n_unbounded"]
        (2, 1, 1, 0)
        """
        return describe(
            self._engine, self._columns, self._ids, self._archive, self._observer, len(self)
        )

    # -- files

    def save(self, path: str | Path) -> None:
        """Write the index to a new directory. Changes wait meanwhile; who matches does not."""
        with self._engine.lock:
            snapshot.write(Path(path), self._parts(), self.schema)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> Index:
        """Open an index that was saved.

        Its files are mapped, not read, so that this takes no time. ``verify`` reads them and
        compares their checksums first: a damaged array may otherwise give wrong matches, or crash.
        """
        parts, schema = snapshot.read(Path(path), verify)
        return cls._of(parts, schema)

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

        A box that is open at its far infinity, and so holds no number, is refused.

        >>> nan = float("nan")
        >>> index = Index.from_boxes(["x", "y"], [[0, nan], [5, 1]], [[1, nan], [6, 2]], ["a", "b"])
        >>> index.match({"x": 1})
        ['a']
        """
        parts = parts_of_boxes(attributes, low, high, ids, low_open, high_open, priority)
        return cls._of(parts, None)

    # -- inside

    @classmethod
    def _of(cls, parts: Parts, schema: Schema | None) -> Index:
        index, held = cls(schema), parts.moving
        moving = None if held is None else (held, place_columns(parts.columns))
        engine = Engine(parts.rows, parts.blocks, moving)
        ids = Texts(parts.ids.stored(), N_RECENT_IDS)
        index._take(Saved(engine, parts.columns, ids, parts.archive), parts.rows.n_rows)
        return index

    def _take(self, saved: Saved, n_living: int) -> None:
        """Be the index of what was saved, for who matches and who changes it."""
        self._saved = saved
        self._engine, self._columns = saved.engine, saved.columns
        self._ids, self._archive = saved.ids, saved.archive
        self._observer = Observer()
        asking = Asking(self._observer)
        self._reader = Reader(self.schema, saved, asking, self._observer)
        self._writer = Writer(self.schema, saved, asking, n_living)

    def _parts(self) -> Parts:
        """All that the index is, without the dead."""
        with self._engine.lock:
            self._engine.check_finished()
            rows, table = self._engine.dump()
            blocks = self._engine.state.blocks
            parts = Parts(self._columns, rows, blocks, self._ids, self._archive)
            moving = self._engine.moving
            if table is not None:
                return compact(parts, table, moving)
            if moving is None:
                return parts
            return parts._replace(moving=moving.compacted(np.arange(rows.n_rows, dtype=np.int32)))


def _subscriptions_in(given: Iterable[Subscription] | pa.Table) -> Iterable[Subscription]:
    if isinstance(given, pa.Table | pa.RecordBatch):
        return subscriptions_from_arrow(given)
    if not isinstance(given, Iterable):
        what = type(given).__name__
        raise InvalidSubscription(f"{what} is not many; give an iterable or an Arrow table")
    return given
