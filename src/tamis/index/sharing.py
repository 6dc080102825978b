"""Sharing: when two filters are found by the same slots."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence

from tamis.index.ranges import Box
from tamis.language import Filter
from tamis.slots.slots import Slot


def sharing_key(slots: Sequence[Slot], condition: Filter) -> Hashable:
    """What two filters have in common exactly if they can share slots."""
    if len(slots) == 1 and not slots[0].tests and not slots[0].is_merged:
        return _box_of(slots[0]).key
    if not all(slot.says_all for slot in slots):
        return condition
    return tuple(
        [
            (frozenset(slot.constraints.items()), tuple(slot.tests), tuple(slot.notes))
            for slot in slots
        ]
    )


def _box_of(slot: Slot) -> Box:
    """A slot without tests, as the box that equal ranges would be."""
    columns = sorted(slot.constraints)
    bounds = [slot.constraints[column] for column in columns]
    notes = dict(slot.notes)
    return Box(
        array("i", columns),
        array("d", [low for low, _ in bounds]),
        array("d", [high for _, high in bounds]),
        "".join([notes.get(column, "[]") for column in columns]),
    )
