"""BEQ-Tree: events in a quadtree, and in each leaf in order of every attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from tamis.algorithms.kernels.beq_tree import (
    N_LEAVES,
    Quads,
    Space,
    add_events,
    find_events,
    remove_events,
    sort_stale,
)
from tamis.algorithms.simple import Simple
from tamis.errors import InvalidSchema
from tamis.kernels.constraints import Stored
from tamis.matching import Attribute, Capabilities
from tamis.matching.parameters import check_count, check_names
from tamis.matching.store import Slots, grown

_MAX_CAPACITY = 65_535
_FEW_LEAVES = 16
_SPARSE = 16  # so many times the room that events need is nearly all empty


class Leaf(NamedTuple):
    """A square of the plane, as places from 0 to 1, and its events in order of each attribute."""

    corner: tuple[float, float]
    width: float
    orders: tuple[Slots, ...]


class BEQTree(Simple):
    """BEQ-Tree (Guo, Zhang, Li, Tan, Bao, SIGMOD 2015), as the MO-Tree paper describes it.

    Its first layer is a quadtree over two attributes, ``space`` (the first two); a leaf with more
    than ``capacity`` events (E_max, 1,024) is split in four. Its second layer is in each leaf: for
    every attribute the events in order of their values. A subscription descends to the leaves
    its window touches, finds the events that meet each constraint by two searches and
    counts; an event that meets all is found.

    Built from what the MO-Tree paper says of it: that one names no capacity, so ``capacity`` is
    what was fast here, and lists it as unable to match events, so subscriptions are scanned for
    an event, as ``Simple`` does. Further choices of ours: orders are numbers of events within a
    leaf, whose values are looked up; events without a place are in leaves apart; a leaf that
    cannot be split gets another one behind it; leaves are not merged, but the tree is made anew
    when there are twice as many as then and nearly all of their room is empty; expired events
    leave when a subscription accepts them.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(matches_subscriptions=True)

    def __init__(
        self,
        attributes: Sequence[Attribute | str],
        capacity: int = 1_024,
        space: Sequence[str] | None = None,
    ) -> None:
        super().__init__(attributes)
        capacity = check_count("capacity", capacity, most=_MAX_CAPACITY)
        numbers = list(range(min(2, self.n_attributes)))
        if space is not None:
            numbers = check_names("space", space, self.attributes)
        if len(numbers) > 2:
            raise InvalidSchema(f"space={space!r}; expected one or two attributes of the matcher")
        self._space = Space(
            np.array([*numbers, -1][:2], np.int64),
            self.domains.low[[*numbers, 0][:2]],
            self.domains.width[[*numbers, 0][:2]],
        )
        self._quads = self._empty(capacity)
        self._n_in_tree = 0
        self._n_leaves_then = _FEW_LEAVES  # when the tree was last made anew

    @property
    def n_leaves(self) -> int:
        """How many leaves there are, those of events without a place included."""
        return int(self._quads.used[N_LEAVES])

    def leaves(self) -> list[Leaf]:
        """The leaves of events that have a place."""
        found, waiting = [], [(0, 0, 0.0, 0.0)]
        while waiting:
            node, depth, x, y = waiting.pop()
            width = 0.5**depth
            if self._quads.child[node] >= 0:
                first, half = int(self._quads.child[node]), width / 2
                waiting += [
                    (first + at, depth + 1, x + half * (at & 1), y + half * (at >> 1))
                    for at in range(4)
                ]
                continue
            leaf = int(self._quads.leaf[node])
            while leaf >= 0:
                found.append(Leaf((x, y), width, self._orders(leaf)))
                leaf = int(self._quads.behind[leaf])
        return found

    def _orders(self, leaf: int) -> tuple[Slots, ...]:
        quads = self._quads
        return tuple(
            quads.slots[leaf, quads.order[leaf, m, : quads.n_ordered[leaf, m]]]
            for m in range(self.n_attributes)
        )

    def _add_events(self, slots: Slots) -> None:
        n_room = self.n_leaves * self._quads.slots.shape[1]
        if self.n_leaves > 2 * self._n_leaves_then and _SPARSE * self._n_in_tree < n_room:
            self._make_anew(slots)
        self._put_events(slots)

    def _make_anew(self, coming: Slots) -> None:
        """The tree of those that are there without the leaves of those that were."""
        is_held = self.has_event[: self.n_event_slots].copy()
        is_held[coming] = False
        self._quads, self._n_in_tree = self._empty(self._quads.slots.shape[1]), 0
        self._put_events(np.flatnonzero(is_held).astype(np.int32))
        self._n_leaves_then = max(_FEW_LEAVES, self.n_leaves)

    def _put_events(self, slots: Slots) -> None:
        are_many = len(slots) > self._n_in_tree
        n_done = 0
        while True:
            n_done = add_events(self._quads, self._space, self.events, slots, n_done, are_many)
            if n_done == len(slots):
                break
            self._make_more_leaves()
        sort_stale(self._quads, self.events)
        self._n_in_tree += len(slots)

    def _remove_events(self, slots: Slots) -> None:
        remove_events(self._quads, self._space, self.events, slots)
        self._n_in_tree -= len(slots)

    def _match_subscription(self, subscription: Stored, now: float, out: Slots) -> int:
        n_found = int(find_events(self._quads, self._space, self.events, subscription, out))
        found = np.sort(out[:n_found])
        is_expired = self.until[found] < now
        expired, valid = found[is_expired], found[~is_expired]
        if len(expired):
            self._remove_events(expired)
            self._forget_events(expired)
        out[: len(valid)] = valid
        return len(valid)

    def _memory_bytes(self) -> int:
        return super()._memory_bytes() + sum(array.nbytes for array in self._quads)

    def _empty(self, capacity: int) -> Quads:
        """The root and the node of those without a place, a leaf each."""
        return Quads(
            np.array([2, 2], np.int64),
            np.full(2, -1, np.int32),
            np.arange(2, dtype=np.int32),
            np.full(2, -1, np.int32),
            np.zeros(2, np.int32),
            np.zeros((2, capacity), np.int32),
            np.zeros((2, self.n_attributes), np.int32),
            np.zeros((2, self.n_attributes, capacity), np.uint16),
            np.zeros(2, np.bool_),
        )

    def _make_more_leaves(self) -> None:
        """Room for four more nodes and leaves, and then some."""
        used, child, leaf, *leaves = self._quads
        n_nodes, n_leaves = used.tolist()
        self._quads = Quads(
            used,
            grown(child, n_nodes + 4),
            grown(leaf, n_nodes + 4),
            *(grown(array, n_leaves + 4) for array in leaves),
        )
