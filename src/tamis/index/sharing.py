"""Sharing: when two filters are found by the same slots."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence

from tamis.index.slots import Slot
from tamis.language import Filter


def sharing_key(slots: Sequence[Slot], condition: Filter) -> Hashable:
    """What two filters have in common exactly if they can share slots."""
    if len(slots) == 1 and not slots[0].tests and not slots[0].is_merged:
        return _key_of_box(slots[0])
    for slot in slots:
        if not slot.says_all:
            return condition
    return tuple(
        [
            (frozenset(slot.constraints.items()), tuple(slot.tests), tuple(slot.notes))
            for slot in slots
        ]
    )


def _key_of_box(slot: Slot) -> Hashable:
    """A key that is quick to make and small to keep: most filters are boxes."""
    constraints = slot.constraints
    columns = sorted(constraints)
    bounds = array("d", [bound for column in columns for bound in constraints[column]])
    return (bounds.tobytes(), *columns, *sorted(slot.notes))
