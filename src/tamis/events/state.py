"""State: the events of a store as they are at one moment, and where one of them stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.events.head import Head
from tamis.events.part import Part
from tamis.events.segment import Segment
from tamis.kernels.event_scan import Moment
from tamis.kernels.texts import find_in_parts, find_texts
from tamis.slots.texts import Stored, letters_of


class State(NamedTuple):
    """What a reader works on."""

    version: int
    clock: int  # the latest moment that a change was made at; time never goes back
    segments: tuple[Segment, ...]  # oldest first
    directory: npt.NDArray[np.int64]  # of the ids of the segments
    head: Head
    n_head: int  # events of the head

    @property
    def parts(self) -> tuple[Part, ...]:
        """Where events are."""
        return (*self.segments, self.head.view(self.n_head)) if self.n_head else self.segments

    def moment(self, now: int) -> Moment:
        """What a reader sees at some time."""
        return Moment(max(now, self.clock), self.version)

    def place_of(self, id: str, now: int) -> Place | None:
        """Where the living event of an id stands, unless it has expired by then."""
        row = self.head.row_of(id, self.n_head)
        if row >= 0:
            view = self.head.view(self.n_head)
            if self._is_valid(view, row, now):
                return Place(view, row)
        number, letters = len(self.segments), letters_of(id)
        while number > 0:
            number, row = find_in_parts(self.directory, number, letters)
            if number >= 0 and self._is_valid(self.segments[number], row, now):
                return Place(self.segments[number], row)
        return None

    def _is_valid(self, part: Part, row: int, now: int) -> bool:
        return part.is_alive(row, self.version) and part.until_of(row) > now


class Place(NamedTuple):
    """A row in a part."""

    part: Part
    row: int


def places_of(state: State, ids: Stored) -> list[Place]:
    """Where the living events of many ids stand, also if they have expired."""
    found: list[Place] = []
    for part in state.segments:
        rows = np.empty(ids.n, np.int32)
        own = part.ids
        find_texts(own.letters, own.offsets, own.table, ids.letters, ids.offsets, rows)
        found += [Place(part, row) for row in rows[rows >= 0].tolist()]
    if state.n_head:
        view = state.head.view(state.n_head)
        rows_of = (state.head.row_of(id, state.n_head) for id in ids.array.to_pylist())
        found += [Place(view, row) for row in rows_of if row >= 0]
    return [place for place in found if place.part.is_alive(place.row, state.version)]
