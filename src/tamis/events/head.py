"""Head: the newest events, few enough to be looked at one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.events.moments import NEVER, micros_or
from tamis.events.question import Question
from tamis.model import Event

Rows = npt.NDArray[np.int32]
Moments = npt.NDArray[np.int64]

HEAD_EVENTS = 2048


class Head:
    """Events that are appended one by one; a reader looks at as many as there were.

    Appending writes only behind what any reader looks at; full arrays are replaced by longer
    ones, and a reader keeps those it began with.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.row_of_id: dict[str, int] = {}
        # i8[4, capacity]: until, moment, sequence, death of each event.
        self.figures = np.zeros((4, HEAD_EVENTS), np.int64)

    def append(self, event: Event, arrival: int, sequence: int) -> None:
        """Add an event that arrives at this moment."""
        row = len(self.events)
        if row >= self.figures.shape[1]:
            self.figures = np.concatenate([self.figures, np.zeros_like(self.figures)], axis=1)
        until, moment = micros_or(event.until, NEVER), micros_or(event.time, arrival)
        self.figures[:, row] = until, moment, sequence, 0
        self.events.append(event)
        self.row_of_id[event.id] = row


class HeadView:
    """The head as it was at some moment."""

    def __init__(self, head: Head) -> None:
        self.head, self.n_rows = head, len(head.events)
        self.until, self.moment, self.sequence, self.death = head.figures

    def find(self, question: Question, now: int, version: int) -> Rows:
        """The rows of the events that are valid and satisfy the question."""
        check, events = question.check, self.head.events
        n_rows, death = self.n_rows, self.death[: self.n_rows]
        is_there = (self.until[:n_rows] > now) & ((death == 0) | (death > version))
        rows = np.flatnonzero(is_there).astype(np.int32)
        return rows[[check(events[row].attributes) for row in rows.tolist()]]

    def number_of(self, id: str) -> int:
        """The row of the newest event of this id, or -1; it may have died."""
        row = self.head.row_of_id.get(id, -1)
        return row if row < self.n_rows else -1

    def ids_of(self, rows: Rows) -> Sequence[str]:
        """The ids of rows."""
        return [self.head.events[row].id for row in rows.tolist()]

    def event(self, row: int) -> Event:
        """The event of a row."""
        return self.head.events[row]

    def places(self, rows: Rows) -> list[Any]:
        """The values of ``location`` of each row."""
        return [self.head.events[row].attributes.get("location", ()) for row in rows.tolist()]
