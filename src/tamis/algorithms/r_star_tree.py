"""R*-Tree: subscriptions and events as boxes of one space, by libspatialindex."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from tamis.algorithms.kernels.r_star_tree import write_boxes
from tamis.errors import MissingExtra
from tamis.kernels.constraints import Stored, keep_accepted, keep_accepting
from tamis.matching import Attribute, Capabilities, EventMatcher
from tamis.matching.store import Slots
from tamis.matching.table import Floats

Boxes = tuple[Floats, Floats]  # low, high: f8[n, D]

# libspatialindex takes numbers that differ by 2.2e-16 for the same: a node may be smaller than what
# is in it by that, at each of its levels.
_MARGIN = 2.0**-46


class RStarTree(EventMatcher):
    """R*-Tree (Beckmann, Kriegel, Schneider, Seeger, SIGMOD 1990), as the MO-Tree paper used it.

    The tree is that of libspatialindex with its own settings, through the package ``rtree`` (of
    the extra ``bench``). A subscription is a box with a side for each attribute, the whole domain
    where it is free; an event is a point, or a box that spans the domain where it lacks a
    value. Subscriptions are in one tree, events in another; who intersects is verified, and
    expired events that are met leave.

    Departs from the paper: those that come first are packed at once, by libspatialindex's bulk
    load; what is beyond the domain lies at its border. The memory of the tree cannot be asked
    for: it is that of its boxes.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(matches_subscriptions=True)

    def __init__(self, attributes: Sequence[Attribute | str]) -> None:
        super().__init__(attributes)
        self._n_sides = max(2, self.n_attributes)  # libspatialindex has no fewer
        self._tree, self._event_tree = BoxTree(self._n_sides), BoxTree(self._n_sides)

    def leaves(self) -> list[tuple[list[int], list[float]]]:
        """The slots in each leaf, and its box: all low ends, then all high ends, from 0 to 1."""
        return self._tree.leaves()

    # -- subscriptions

    def _add(self, slots: Slots) -> None:
        self._tree.add(slots, self._boxes(self.stored, slots))

    def _remove(self, slots: Slots) -> None:
        self._tree.remove(slots, self._boxes(self.stored, slots))

    def _match(self, event: Floats, out: Slots) -> int:
        n_found = self._tree.find(self._event_boxes(event[None]), out)
        n_out = int(keep_accepting(self.stored, event, out, n_found))
        out[:n_out].sort()
        return n_out

    # -- events

    def _add_events(self, slots: Slots) -> None:
        self._event_tree.add(slots, self._event_boxes(self.events[slots]))

    def _remove_events(self, slots: Slots) -> None:
        self._event_tree.remove(slots, self._event_boxes(self.events[slots]))

    def _match_subscription(self, subscription: Stored, now: float, out: Slots) -> int:
        n_found = self._event_tree.find(self._boxes(subscription, np.zeros(1, np.int32)), out)
        is_expired = self.until[out[:n_found]] < now
        expired, valid = out[:n_found][is_expired], out[:n_found][~is_expired]
        if len(expired):
            self._remove_events(expired)
            self._forget_events(expired)
        out[: len(valid)] = valid
        n_out = int(keep_accepted(subscription, self.events, out, len(valid)))
        out[:n_out].sort()
        return n_out

    # -- boxes

    def _boxes(self, stored: Stored, slots: Slots) -> Boxes:
        shape = len(slots), self._n_sides
        low, high = np.empty(shape), np.empty(shape)
        write_boxes(self.domains, stored, slots, low, high)
        return low, high

    def _event_boxes(self, events: Floats) -> Boxes:
        low, high = np.zeros((len(events), self._n_sides)), np.ones((len(events), self._n_sides))
        with np.errstate(over="ignore"):  # what is far outside lies at the border
            places = np.clip((events - self.domains.low) / self.domains.width, 0.0, 1.0)
        n_attributes = self.n_attributes
        low[:, :n_attributes] = np.where(np.isnan(places), 0.0, places)
        high[:, :n_attributes] = np.where(np.isnan(places), 1.0, places)
        return low, high

    def _memory_bytes(self) -> int:
        return self._tree.n_bytes + self._event_tree.n_bytes + self._event_bytes()


class BoxTree:
    """An R*-tree of numbered boxes: the ``rtree`` package behind three methods."""

    def __init__(self, n_sides: int) -> None:
        self._rtree = _import_rtree()
        self._n_sides = n_sides
        self._n_boxes = 0
        self._tree = self._pack()

    @property
    def n_bytes(self) -> int:
        """The bytes of the boxes and their numbers; what the nodes take besides is not known."""
        return self._n_boxes * (16 * self._n_sides + 8)

    def add(self, slots: Slots, boxes: Boxes) -> None:
        """Insert boxes; if the tree is empty, pack them."""
        if self._n_boxes == 0:
            self._tree = self._pack((slots, *boxes))
        else:
            for slot, box in zip(slots.tolist(), np.hstack(boxes), strict=True):
                self._tree.insert(slot, box)
        self._n_boxes += len(slots)

    def remove(self, slots: Slots, boxes: Boxes) -> None:
        """Delete boxes, given as they were added."""
        self._n_boxes -= len(slots)
        if self._n_boxes == 0:
            self._tree = self._pack()
        else:
            for slot, box in zip(slots.tolist(), np.hstack(boxes), strict=True):
                self._tree.delete(slot, box)

    def find(self, box: Boxes, out: Slots) -> int:
        """Write the numbers of the boxes that intersect one box, in no order; how many.

        Some that lie very near it are among them.
        """
        if not self._n_boxes:
            return 0
        low, high = box
        found = np.fromiter(
            self._tree.intersection(np.hstack((low - _MARGIN, high + _MARGIN))[0]), np.int32
        )
        out[: len(found)] = found
        return len(found)

    def leaves(self) -> list[tuple[list[int], list[float]]]:
        """The numbers in each leaf, and its box: all low ends, then all high ends."""
        return [(slots, box) for _, slots, box in self._tree.leaves()] if self._n_boxes else []

    def _pack(self, *arrays: Any) -> Any:
        properties = self._rtree.Property(dimension=self._n_sides, variant=self._rtree.RT_Star)
        return self._rtree.Index(*arrays, properties=properties)


def _import_rtree() -> Any:
    try:
        return import_module("rtree.index")
    except ImportError as error:
        raise MissingExtra(
            "rtree is not installed, which has the R*-tree; run: pip install 'tamis[bench]'"
        ) from error
