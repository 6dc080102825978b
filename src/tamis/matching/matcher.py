"""Matcher: the one interface of all matching algorithms.

The public methods are final: they check what is given, number the subscriptions and keep their
constraints. An algorithm writes the hooks ``_add``, ``_match``, ``_memory_bytes``, if it can
remove, ``_remove``, and ``_update`` if it knows better than to remove and add. Hooks see
subscriptions as *slots*, whole numbers from 0 on without large gaps, and find their constraints
in ``self.stored``. A slot that was removed is given out again. A matcher belongs to one thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from tamis.errors import InvalidEvent, InvalidSubscription, NotSupported, UnknownSubscription
from tamis.kernels.constraints import Stored
from tamis.matching.attributes import Attribute, TextCodes, check_attributes, domains_of
from tamis.matching.capabilities import Capabilities, Kinds
from tamis.matching.matches import Ids, Matches
from tamis.matching.numbers import as_numbers
from tamis.matching.reading import Constraint, Reader
from tamis.matching.store import Slots, Store, grown
from tamis.matching.table import Floats, Table
from tamis.model.subscription import DEFAULT_PRIORITY, LOWEST_PRIORITY

EventLike = Mapping[str, float | str | None] | npt.ArrayLike


class Matcher(ABC):
    """Finds the subscriptions that accept an event.

    ``attributes`` are the columns: an ``Attribute`` each, or a name, whose domain is [0, 1].
    An id is the number that ``add`` returned; ids of removed subscriptions are given out again.

    >>> from tamis.algorithms import make
    >>> from tamis.values import Range
    >>> matcher = make("simple", ["x", "y"])
    >>> matcher.add({"x": Range(0.2, 0.4), "y": Range(high=0.5, ends="[)")})
    0
    >>> matcher.add({"y": 0.25})
    1
    >>> matcher.match({"x": 0.4, "y": 0.25}).tolist()
    [0, 1]
    >>> matcher.remove(0)
    >>> matcher.match([0.4, 0.25]).tolist()
    [1]
    """

    capabilities: ClassVar[Capabilities]

    def __init__(self, attributes: Sequence[Attribute | str]) -> None:
        self.attributes = check_attributes(attributes)
        self.domains = domains_of(self.attributes)
        self._reader = Reader(self.attributes)
        self._store = Store()
        self._is_alive = np.zeros(0, np.bool_)
        self._is_hollow = np.zeros(0, np.bool_)  # alive, but unknown to the hooks
        self._free: list[int] = []
        self._n_alive = 0
        self._out = np.zeros(0, np.int32)
        self._n_taken = 0  # slots that were ever given out, hollow ones included
        self.n_slots = 0  # what hooks know: above all slots of the last call of _add
        self.priority = np.zeros(0, np.uint8)

    # -- what hooks may read

    @property
    def stored(self) -> Stored:
        """The constraints of every slot, as kernels take them. A new tuple after every add."""
        return self._store.arrays

    @property
    def n_attributes(self) -> int:
        """The number of columns."""
        return len(self.attributes)

    @property
    def texts(self) -> Mapping[str, TextCodes]:
        """The codes of the texts of each text attribute."""
        return self._reader.texts

    # -- hooks

    @abstractmethod
    def _add(self, slots: Slots) -> None:
        """Take new slots (i4[n], each once) into the structure; their constraints are stored.

        ``self.n_slots`` is already above all of them, and changes only before a call of this.
        Priorities are in ``self.priority``.
        """

    def _remove(self, slots: Slots) -> None:
        """Take slots out of the structure; their constraints are still stored."""
        raise NotImplementedError

    def _update(self, slots: Slots, replace: Callable[[], None]) -> None:
        """Let slots ask something else: ``replace()`` stores what they ask from now on."""
        self._remove(slots)
        replace()
        self._add(slots)

    @abstractmethod
    def _match(self, event: Floats, out: Slots) -> int:
        """Write the slots that accept an event (f8[M], NaN = missing) to ``out`` (i4[n_slots]).

        Returns how many. They are unique and in the declared order.
        """

    def _match_parts(self, event: Floats, out: Slots) -> Iterator[int]:
        """Like ``_match``, but yields the number written so far whenever there are more.

        Slots are in the order in which they are determined, which is the declared one only if
        that is by priority.
        """
        yield self._match(event, out)

    @abstractmethod
    def _memory_bytes(self) -> int:
        """The size of the arrays of the structure, without the stored constraints."""

    # -- the public face

    def __len__(self) -> int:
        return self._n_alive

    def __contains__(self, id: object) -> bool:
        return isinstance(id, int | np.integer) and bool(
            0 <= id < self._n_taken and self._is_alive[id]
        )

    @final
    def add(self, constraints: Mapping[str, Constraint], priority: int = DEFAULT_PRIORITY) -> int:
        """Save a subscription: what it asks of each attribute it constrains. Returns its id."""
        table = self._reader.subscription(constraints)
        return int(self.add_many(table, np.array([priority]))[0])

    @final
    def add_many(self, table: Table, priority: npt.ArrayLike | None = None) -> Ids:
        """Save many subscriptions, all or none. Returns their ids, in the order of the table."""
        self._check_table(table)
        levels = _check_priority(priority, len(table))
        slots = self._take_slots(len(table))
        self._is_alive[slots], self._is_hollow[slots] = True, table.is_hollow
        self.priority[slots] = levels
        rows = np.flatnonzero(~table.is_hollow)
        self._store.put(slots[rows], rows, table, self._n_taken)
        self._n_alive += len(slots)
        if len(rows):
            self.n_slots = self._n_taken
            self._add(slots[rows])
        return slots

    @final
    def remove(self, id: int) -> None:
        """Forget a subscription."""
        self.remove_many([id])

    @final
    def remove_many(self, ids: Sequence[int] | Ids) -> None:
        """Forget many subscriptions, all or none."""
        slots = self._check_ids(ids)
        kept = slots[~self._is_hollow[slots]]
        if len(kept):
            self._remove(kept)
        self._store.clear(slots)
        self._is_alive[slots] = self._is_hollow[slots] = False
        self._free.extend(slots[::-1].tolist())
        self._n_alive -= len(slots)

    @final
    def update(self, id: int, constraints: Mapping[str, Constraint]) -> None:
        """Let a subscription ask something else; its id and priority stay."""
        self.update_many([id], self._reader.subscription(constraints))

    @final
    def update_many(self, ids: Sequence[int] | Ids, table: Table) -> None:
        """Let many subscriptions ask what the rows of a table do, all or none."""
        slots = self._check_ids(ids)
        self._check_table(table)
        if len(slots) != len(table):
            raise InvalidSubscription(f"{len(slots)} ids for {len(table)} rows of the table")
        was_hollow, is_hollow = self._is_hollow[slots], table.is_hollow
        leaving, coming = slots[is_hollow & ~was_hollow], slots[was_hollow & ~is_hollow]
        if len(leaving):
            self._remove(leaving)
        rows = np.flatnonzero(~is_hollow)

        def replace() -> None:
            self._store.clear(slots)
            self._store.put(slots[rows], rows, table, self._n_taken)
            self._is_hollow[slots] = is_hollow

        staying = slots[~(was_hollow | is_hollow)]
        if len(staying):
            self._update(staying, replace)
        else:
            replace()
        if len(coming):
            self.n_slots = self._n_taken
            self._add(coming)

    @final
    def match(self, event: EventLike) -> Ids:
        """The ids of the subscriptions that accept an event, in the declared order.

        An event is a mapping of names to values or a row of numbers, NaN where it has none.
        """
        row = self._row_of(event)
        out = self._room()
        return out[: self._match(row, out)].copy()

    @final
    def match_many(self, events: npt.ArrayLike) -> Matches:
        """Match each row of a matrix: a column an attribute, NaN where an event has no value."""
        matrix = self._check_events(events, 2)
        out = self._room()
        return Matches.of([out[: self._match(row, out)].copy() for row in matrix])

    @final
    def match_parts(self, event: EventLike) -> Iterator[Ids]:
        """The ids of ``match`` in parts, each as soon as the algorithm has determined it.

        Take all parts before the matcher is used for anything else.
        """
        row, out, n_before = self._row_of(event), np.empty(self._n_taken, np.int32), 0
        for n_found in self._match_parts(row, out):
            yield out[n_before:n_found].copy()
            n_before = n_found

    @final
    def memory_bytes(self, *, structure_only: bool = False) -> int:
        """The size of all arrays; or without the constraints, which every algorithm keeps."""
        structure = int(self._memory_bytes())
        kept = (self._is_alive, self._is_hollow, self.priority, self._out)
        others = self._store.n_bytes + sum(array.nbytes for array in kept)
        return structure if structure_only else structure + others

    # -- checks

    def _check_ids(self, ids: Sequence[int] | Ids) -> Slots:
        """The slots of subscriptions that are to be removed or updated."""
        if not self.capabilities.can_remove:
            raise NotSupported(f"{type(self).__name__} cannot remove; build a new one without it")
        slots, strangers = slots_of(ids, self._is_alive[: self._n_taken])
        if len(strangers):
            raise UnknownSubscription(f"no subscription has the id {strangers[0]!r}")
        if len(np.unique(slots)) < len(slots):
            raise UnknownSubscription("an id is given twice; it can be removed or updated once")
        return slots

    def _check_table(self, table: Table) -> None:
        if not isinstance(table, Table):
            raise InvalidSubscription(
                f"a {type(table).__name__}; expected a Table, or add them one by one"
            )
        n_named = int(table.attribute.max()) + 1 if len(table.attribute) else 0
        if n_named > self.n_attributes:
            raise InvalidSubscription(
                f"a table over {n_named} attributes or more; this matcher has {self.n_attributes}"
            )
        kinds = table.kinds
        if len(table.attribute) < len(table) * self.n_attributes:
            kinds |= Kinds.PARTIAL
        is_text = np.array([one.is_text for one in self.attributes])
        if is_text.any():
            kinds |= _check_texts(table, is_text)
        refused = kinds & ~self.capabilities.kinds
        if refused:
            raise NotSupported(
                f"{type(self).__name__} does not support {_spell(refused)}; "
                f"it supports {_spell(self.capabilities.kinds)}"
            )

    def _row_of(self, event: EventLike) -> Floats:
        if isinstance(event, Mapping):
            event = self._reader.event(event)
        return self._check_events(event, 1)

    def _check_events(self, given: npt.ArrayLike, n_dimensions: int) -> Floats:
        values = as_numbers(given, InvalidEvent)
        if n_dimensions == 2 and values.shape == (0,):  # an empty list: no events
            values = values.reshape(0, self.n_attributes)
        if values.ndim != n_dimensions or values.shape[-1] != self.n_attributes:
            raise InvalidEvent(
                f"events of shape {values.shape}; expected {self.n_attributes} columns, one an "
                f"attribute, in {n_dimensions} dimension(s)"
            )
        if values.dtype.kind not in "fiu":
            raise InvalidEvent(f"events of type {values.dtype}; expected numbers")
        matrix = np.ascontiguousarray(values, np.float64)
        if Kinds.MISSING not in self.capabilities.kinds and np.isnan(matrix).any():
            raise NotSupported(
                f"{type(self).__name__} does not support events that lack an attribute"
            )
        return matrix

    # -- slots

    def _take_slots(self, n: int) -> Slots:
        n_reused = min(n, len(self._free))
        reused = [self._free.pop() for _ in range(n_reused)]
        fresh = np.arange(self._n_taken, self._n_taken + n - n_reused, dtype=np.int32)
        self._n_taken += len(fresh)
        for name in ("_is_alive", "_is_hollow", "priority"):
            setattr(self, name, grown(getattr(self, name), self._n_taken))
        return np.concatenate([np.array(reused, np.int32), fresh])

    def _room(self) -> Slots:
        self._out = grown(self._out, self._n_taken)
        return self._out


def _check_priority(priority: npt.ArrayLike | None, n: int) -> npt.NDArray[np.uint8]:
    if priority is None:
        return np.full(n, DEFAULT_PRIORITY, np.uint8)
    levels = np.asarray(priority)
    is_fine = levels.shape == (n,) and levels.dtype.kind in "iu"
    if not is_fine or (n and not 0 <= levels.min() <= levels.max() <= LOWEST_PRIORITY):
        raise InvalidSubscription(
            f"priorities of shape {levels.shape} and type {levels.dtype}; expected {n} whole "
            f"numbers from 0 (highest) to {LOWEST_PRIORITY}"
        )
    return levels.astype(np.uint8)


def _check_texts(table: Table, is_text: npt.NDArray[np.bool_]) -> Kinds:
    on_text = is_text[table.attribute]
    if (on_text & (table.low != table.high)).any():
        raise InvalidSubscription("a range on a text attribute; texts are equal or not")
    return Kinds.TEXT if on_text.any() else Kinds(0)


def slots_of(ids: npt.ArrayLike, is_alive: npt.NDArray[np.bool_]) -> tuple[Slots, list[object]]:
    """Ids as slots, and those of them that are no number of a living one."""
    given = np.asarray(ids).reshape(-1)
    if len(given) and given.dtype.kind not in "iu":
        return np.zeros(0, np.int32), given.tolist()
    is_known = (given >= 0) & (given < len(is_alive))
    is_known[is_known] = is_alive[given[is_known].astype(np.int64)]
    return given.astype(np.int32), given[~is_known].tolist()


def _spell(kinds: Kinds) -> str:
    return ", ".join(str(kind.name).lower() for kind in kinds)
