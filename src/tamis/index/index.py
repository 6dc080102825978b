"""Index: the public face of matching."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import DuplicateSubscription, InvalidSubscription, UnknownSubscription, quoted
from tamis.index import snapshot
from tamis.index.archive import Archive, BoxBase
from tamis.index.asking import Asker, Asking
from tamis.index.batch import match_matrix
from tamis.index.boxes import check_boxes
from tamis.index.building import build_box_blocks
from tamis.index.compaction import Parts, compact
from tamis.index.engine import Engine
from tamis.index.matches import MatchSet
from tamis.index.matrix import Matrix, is_in_domains, matrix_of
from tamis.index.movers import is_mover, mover_of, slots_of_box, slots_of_mover
from tamis.index.outlines import outline_of
from tamis.index.places import check_place, check_places
from tamis.index.ranges import Box, Layouts, Ranges, ranges_of
from tamis.index.revision import Ask
from tamis.index.rows import Rows
from tamis.index.saved import Saved
from tamis.index.sharing import sharing_key
from tamis.index.state import State
from tamis.index.statistics import Observer, describe
from tamis.language import Conjunction, Explanation, explain, normal_form
from tamis.model import Schema, Subscription, attributes_of_batch
from tamis.model.event import LOCATION
from tamis.model.subscription import subscriptions_from_arrow
from tamis.slots.columns import LAT, LON, NUMBER, Columns, Encoded
from tamis.slots.slots import Slot, slots_of
from tamis.slots.texts import Texts
from tamis.values import Attributes, HasAttributes, attributes_of

MIN_BATCH = 8  # fewer events are matched one by one
N_RECENT_IDS = 4096  # that are kept as Python has them

_NOBODY: npt.NDArray[np.int32] = np.zeros(0, np.int32)
Prepared = tuple[Conjunction, ...] | Ranges  # a filter on its way to slots


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
        self._columns = Columns()
        self._layouts = Layouts(self._columns)
        self._engine = Engine()
        self._ids = Texts(n_recent=N_RECENT_IDS)
        self._archive = Archive()
        self._saved = Saved(self._engine, self._columns, self._ids, self._archive)
        self._leader_of_key: dict[Hashable, int] = {}
        self._key_of_leader: dict[int, Hashable] = {}
        self._n_living = 0
        self._observer = Observer()
        self._asking = Asking(self._observer)

    # -- saving subscriptions

    def add(self, subscription: Subscription) -> None:
        """Save a subscription; its id must be new."""
        prepared = self._prepare(subscription)
        with self._engine.lock:
            self._check_new(subscription.id)
            self._insert(subscription, prepared)
            self._engine.publish()

    def add_many(self, subscriptions: Iterable[Subscription] | pa.Table) -> None:
        """Save many: any iterable, or an Arrow table (id, filter, priority). All or nothing."""
        given = list(_subscriptions_in(subscriptions))
        prepared = [self._prepare(one) for one in given]
        with self._engine.lock:
            seen: set[str] = set()
            for one in given:
                self._check_new(one.id, seen)
                seen.add(one.id)
            for one, ready in zip(given, prepared, strict=True):
                self._insert(one, ready)
            self._engine.publish()

    def update(self, subscription: Subscription) -> None:
        """Replace the subscription of the same id, which must exist."""
        prepared = self._prepare(subscription)
        with self._engine.lock:
            self._bury(self._living_row(subscription.id))
            self._insert(subscription, prepared)
            self._engine.publish()

    def remove(self, id: str) -> None:
        """Forget a subscription, which must exist."""
        with self._engine.lock:
            self._bury(self._living_row(id))
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
        engine = self._engine
        with engine.lock:
            row = self._living_row(id)
            if engine.moving is not None and engine.moving.move(row, place, engine.next_version):
                engine.publish_moves()
            else:
                self._replace({row: self._wide(row).at(place)})

    def move_many(self, ids: Sequence[str], lon: npt.ArrayLike, lat: npt.ArrayLike) -> None:
        """``move`` for different ids, with arrays of places. All or nothing, and seen at once."""
        names = list(ids)
        lons, lats = check_places(names, lon, lat)
        engine = self._engine
        with engine.lock:
            rows = np.array([self._living_row(id) for id in names], np.int32)
            if not len(rows):
                return
            if len(set(names)) < len(names):
                raise InvalidSubscription("an id is given twice; a subscription is at one place")
            moving, version = engine.moving, engine.next_version
            if moving is not None and moving.move_many(rows, lons, lats, version):
                engine.publish_moves()
                return
            all_places = np.stack([lons, lats], axis=1).tolist()
            places = dict(zip(rows.tolist(), map(tuple, all_places), strict=True))
            wide = {
                row: self._wide(row).at(place)
                for row, place in places.items()
                if moving is None or moving.place_of(row) is None
            }
            for row in places.keys() - wide.keys():
                assert moving is not None
                moving.move(row, places[row], version)
            self._replace(wide)

    def __getitem__(self, id: str) -> Subscription:
        with self._engine.lock:
            return self._saved.subscription(self._living_row(id))

    def __contains__(self, id: object) -> bool:
        row = self._ids.number_of(id) if isinstance(id, str) else -1
        if row < 0 or self._engine.is_alive(row):
            return row >= 0
        with self._engine.lock:  # an update takes the old row away before the new one is there
            return self._engine.is_alive(self._ids.number_of(str(id)))

    def __len__(self) -> int:
        return self._n_living

    # -- matching

    def match(self, event: HasAttributes | Mapping[str, Any]) -> list[str]:
        """The ids of the subscriptions the event satisfies, highest priority first."""
        return self._ids.texts_of(self._match(self._engine.state, event))

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
        state = self._engine.state
        levels = self._engine.search.match_by_level(state, *self._encode(event))
        return (id for rows in levels for id in self._ids.texts_of(rows))

    def match_batch(self, events: Any) -> MatchSet:
        """Match an Arrow table, a pandas frame, a dict of arrays, or a list of dicts or Events."""
        state = self._engine.state
        if isinstance(events, list) and len(events) == 1:
            rows = self._match(state, *events).copy()
            return self._match_set(state, np.array([0, len(rows)]), rows)
        matrix = self._matrix(events)
        if matrix is None:
            return self._match_rows(state, attributes_of_batch(events))
        self._observer.notice_batch(matrix)
        batch = cache(lambda: attributes_of_batch(events))

        def match_one(e: int) -> npt.NDArray[np.int32]:
            asker = Asker(self._asking, self._saved, lambda: batch()[e])
            return self._engine.search.match(state, Encoded(matrix[e]), asker)

        if len(matrix) < MIN_BATCH:
            return self._gathered(state, [match_one(e).copy() for e in range(len(matrix))])
        return self._match_set(state, *match_matrix(state, matrix, match_one))

    def deliveries(self) -> list[tuple[str, dict[str, Any]]]:
        """The owners and delivery settings, in the order a saved index numbers its subscriptions.

        >>> index = Index()
        >>> index.add(Subscription("s1", "x < 1", owner="zoe", delivery={"schedule": "immediate"}))
        >>> index.deliveries()
        [('zoe', {'schedule': 'immediate'})]
        """
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
        """Write the index to a new directory."""
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
        names = list(attributes)
        is_named = all(isinstance(name, str) and name for name in names)
        if isinstance(attributes, str) or not is_named or len(set(names)) < len(names):
            raise InvalidSubscription(
                f"{quoted(attributes)} is not a list of different attribute names"
            )
        boxes = check_boxes(len(names), low, high, ids, low_open, high_open, priority)
        columns = Columns()
        for name in names:
            columns.column(name, NUMBER)
        rows = Rows.of_priorities(boxes.priority, boxes.leader)
        base = BoxBase(tuple(names), boxes.bounds, boxes.opened)
        if rows.n_followers:
            leaders, places = np.unique(boxes.leader, return_inverse=True)
            archive = Archive([base], places.astype(np.int32))
            blocks = build_box_blocks(boxes.bounds, leaders)
        else:
            archive, blocks = Archive([base]), build_box_blocks(boxes.bounds)
        return cls._of(Parts(columns, rows, blocks, Texts(boxes.ids), archive), None)

    # -- inside

    @classmethod
    def _of(cls, parts: Parts, schema: Schema | None) -> Index:
        index = cls(schema)
        index._columns, index._archive = parts.columns, parts.archive
        index._ids = Texts(parts.ids.stored(), N_RECENT_IDS)
        index._layouts = Layouts(parts.columns)
        held = parts.moving
        moving = None if held is None else (held, index._place_columns())
        index._engine = Engine(parts.rows, parts.blocks, moving)
        index._saved = Saved(index._engine, index._columns, index._ids, index._archive)
        index._n_living = parts.rows.n_rows
        return index

    def _parts(self) -> Parts:
        """All that the index is, without the dead."""
        with self._engine.lock:
            rows, table = self._engine.dump()
            blocks = self._engine.state.blocks
            parts = Parts(self._columns, rows, blocks, self._ids, self._archive)
            moving = self._engine.moving
            if table is not None:
                return compact(parts, table, moving)
            if moving is None:
                return parts
            return parts._replace(moving=moving.compacted(np.arange(rows.n_rows, dtype=np.int32)))

    def _place_columns(self) -> tuple[int, int]:
        """The columns of the event's longitude and latitude."""
        return self._columns.column(LOCATION, LON), self._columns.column(LOCATION, LAT)

    def _check_new(self, id: str, others: Collection[str] = ()) -> None:
        if id in others or id in self:
            raise DuplicateSubscription(
                f"the id {quoted(id)} is taken; use update() to change a subscription"
            )

    def _prepare(self, subscription: Subscription) -> Prepared:
        """All of a change that needs no lock; what cannot be saved is refused here."""
        if not isinstance(subscription, Subscription):
            raise InvalidSubscription(
                f"{type(subscription).__name__} is not a Subscription; make one: Subscription(id, "
                "filter)"
            )
        if self.schema is not None:
            self.schema.check_filter(subscription.condition)
        # Who is found by a place has slots of the filter alone.
        condition = subscription.filter if is_mover(subscription) else subscription.condition
        ranges = ranges_of(condition)
        if ranges is not None:
            return ranges
        if self.schema is None:
            return normal_form(condition)
        return normal_form(condition, is_single=self.schema.is_single)

    def _insert(self, subscription: Subscription, prepared: Prepared) -> None:
        if is_mover(subscription):
            self._insert_mover(subscription, prepared)
        else:
            self._insert_fixed(subscription, prepared)
        self._ids.append(subscription.id)
        self._n_living += 1

    def _replace(self, subscriptions: Mapping[int, Subscription]) -> None:
        """Put others with the same ids where some rows are."""
        prepared = [self._prepare(one) for one in subscriptions.values()]
        for (row, one), ready in zip(subscriptions.items(), prepared, strict=True):
            self._bury(row)
            self._insert(one, ready)
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

    def _insert_mover(self, subscription: Subscription, prepared: Prepared) -> None:
        columns = self._place_columns()
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

    def _bury(self, row: int) -> None:
        leader = self._engine.bury(row)
        self._n_living -= 1
        if self._engine.chain_is_dead(leader):
            key = self._key_of_leader.pop(leader, None)
            if key is not None and self._leader_of_key.get(key) == leader:
                del self._leader_of_key[key]
            self._asking.forget(leader)

    def _living_row(self, id: str) -> int:
        row = self._ids.number_of(id) if isinstance(id, str) else -1
        if row < 0 or not self._engine.is_alive(row):
            raise UnknownSubscription(f"no subscription {quoted(id)} in the index")
        return row

    def _match(
        self, state: State, event: HasAttributes | Mapping[str, Any]
    ) -> npt.NDArray[np.int32]:
        """The rows of an event; a view that this thread's next match overwrites."""
        if type(event) is dict and self.schema is None:
            vector = self._columns.encode_plain(event)
            if vector is not None:
                self._observer.notice(vector)
                asker = Asker(self._asking, self._saved, lambda: attributes_of(event))
                return self._engine.search.match_plain(state, vector, asker)
        return self._engine.search.match(state, *self._encode(event))

    def _encode(self, event: HasAttributes | Mapping[str, Any]) -> tuple[Encoded, Ask]:
        """An event as numbers, and who answers for a leader whether its filter accepts it."""
        attributes = attributes_of(event)
        if self.schema is not None:
            self.schema.check_event(attributes)
        encoded = self._columns.encode(attributes)
        self._observer.notice(encoded.vector)
        return encoded, Asker(self._asking, self._saved, lambda: attributes)

    def _match_rows(self, state: State, batch: list[Attributes]) -> MatchSet:
        """A batch whose events are not all plain: those that are at once, the others by one."""
        if self.schema is not None:
            for attributes in batch:
                self.schema.check_event(attributes)
        encoded = [self._columns.encode(attributes) for attributes in batch]

        def match_one(e: int) -> npt.NDArray[np.int32]:
            asker = Asker(self._asking, self._saved, lambda: batch[e])
            return self._engine.search.match(state, encoded[e], asker)

        if len(batch) < MIN_BATCH:
            for one in encoded:
                self._observer.notice(one.vector)
            return self._gathered(state, [match_one(e).copy() for e in range(len(batch))])
        # A column that was added meanwhile is none that this state asks for.
        n_columns = max(len(one.vector) for one in encoded)
        matrix = np.full((len(batch), n_columns), np.nan)
        for row, one in zip(matrix, encoded, strict=True):
            row[: len(one.vector)] = one.vector
        self._observer.notice_batch(matrix)
        is_rough = np.array([not one.is_plain for one in encoded], np.uint8)
        return self._match_set(state, *match_matrix(state, matrix, match_one, is_rough))

    def _matrix(self, events: Any) -> Matrix | None:
        """A batch as numbers, if all its events are plain."""
        if isinstance(events, list) and self.schema is None:
            vectors = []
            for event in events:
                vector = self._columns.encode_plain(event) if type(event) is dict else None
                if vector is None:
                    return None
                vectors.append(vector)
            # Their lengths differ where a column was added meanwhile.
            return np.stack(vectors) if len(set(map(len, vectors))) == 1 else None
        matrix = matrix_of(events, self._columns)
        if matrix is None or self.schema is None:
            return matrix
        # Otherwise event by event, which says what is wrong.
        return matrix if is_in_domains(matrix, self._columns, self.schema) else None

    def _gathered(self, state: State, found: list[npt.NDArray[np.int32]]) -> MatchSet:
        offsets = np.zeros(len(found) + 1, dtype=np.int64)
        np.cumsum([len(rows) for rows in found], out=offsets[1:])
        return self._match_set(state, offsets, np.concatenate([*found, _NOBODY]))

    def _match_set(
        self, state: State, offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int32]
    ) -> MatchSet:
        return MatchSet(offsets, rows, state.rows.priority, self._ids)


def _subscriptions_in(given: Iterable[Subscription] | pa.Table) -> Iterable[Subscription]:
    if isinstance(given, pa.Table | pa.RecordBatch):
        return subscriptions_from_arrow(given)
    if not isinstance(given, Iterable):
        what = type(given).__name__
        raise InvalidSubscription(f"{what} is not many; give an iterable or an Arrow table")
    return given
