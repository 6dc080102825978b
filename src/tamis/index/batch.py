"""Batch: many events at once, in kernels that hold no GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tamis.index.asked_events import AskedEvents
from tamis.index.blocks import Array, Block, offsets_of
from tamis.index.state import State
from tamis.kernels.emit import Found
from tamis.kernels.ordering import handle_of_parts, join, order_events
from tamis.kernels.settling import (
    handle_of_rows,
    settle_choices,
    settle_events,
    settle_leaders_many,
)


class _Gathered(NamedTuple):
    """Rows by event: event e has ``rows[offsets[e]:offsets[e + 1]]``."""

    rows: Array  # i4[...]
    offsets: Array  # i8[E + 1]


class Vectors(NamedTuple):
    """E events as vectors: event e is any of ``matrix[begins[e]:begins[e + 1]]``."""

    matrix: Array  # f8[V, M]
    begins: Array  # i8[E + 1], ascending by at least 1
    decides: Array  # u1[E], whether its vectors say all that tests ask
    chosen: frozenset[int] = frozenset()  # the columns in which the vectors of an event differ

    @property
    def n_events(self) -> int:
        """How many events there are."""
        return len(self.decides)

    @property
    def has_choices(self) -> bool:
        """Whether some event has several vectors."""
        return len(self.matrix) > self.n_events


def plain_vectors(matrix: Array) -> Vectors:
    """Events of which each is a row of a matrix."""
    return Vectors(matrix, np.arange(len(matrix) + 1), np.ones(len(matrix), np.uint8))


def match_vectors(
    state: State,
    events: Vectors,
    one_by_one: Callable[[int], Array],
    is_rough: Array | None = None,
) -> tuple[Array, Array]:
    """The rows of every event, as offsets and rows, highest priority first.

    ``one_by_one`` matches an event by its number; it is asked for those that need more than
    kernels can decide, and for those that the vectors do not say all of, ``is_rough``. Where
    somebody has a place (``state.moving``), no event has choices.
    """
    n_events = events.n_events
    is_open = np.zeros(n_events, np.uint8) if is_rough is None else is_rough.copy()
    asked = AskedEvents(events.matrix, () if events.has_choices else state.parts)
    gathered, leaders = [], []
    for block in state.parts:
        slots, offsets = asked.slots_of(block) if asked.suit(block) else _slots_of(block, events)
        is_plain = state.is_plain or block.belongs_to_plain(state.rows)
        if is_plain and not events.has_choices:
            gathered.append(_Gathered(block.rows_of(slots), offsets))
        else:
            rows, led = _settle(state, block, events, slots, offsets, is_open)
            gathered.append(rows)
            leaders.append(led)
    if any(len(one.rows) for one in leaders):
        gathered.append(_settle_leaders(state, leaders, n_events))
    if state.moving is not None:
        found = state.moving.match_many(events.matrix, state.version, is_open)
        gathered.append(_Gathered(*found))
    opened = np.nonzero(is_open)[0]
    if len(opened):
        gathered = [_without(one, is_open) for one in gathered]
        gathered.append(_one_by_one(opened, n_events, one_by_one))
    return _in_order(state, gathered, n_events)


def _slots_of(block: Block, events: Vectors) -> tuple[Array, Array]:
    """The slots of each vector; those of an event's first where no slot tells them apart."""
    if not events.has_choices or block.asks_for(events.chosen):
        return block.slots_of(events.matrix)
    slots, offsets = block.slots_of(events.matrix[events.begins[:-1]])
    starts = np.repeat(offsets[1:], np.diff(events.begins))
    starts[events.begins[:-1]] = offsets[:-1]
    return slots, np.append(starts, len(slots))


def _settle(
    state: State, block: Block, events: Vectors, slots: Array, starts: Array, is_open: Array
) -> tuple[_Gathered, _Gathered]:
    """The rows of what a block found, and the leaders with many slots.

    Marks the events that must be matched one by one.
    """
    leaders = np.empty(len(slots), np.int32)
    ends = np.zeros((2, events.n_events + 1), np.int64)
    n_seen = block.n_slots // 8 + 1 if events.has_choices else 0
    seen = np.zeros((2, n_seen), np.uint8)

    def settle_some(first: int, found: Found, own: Array) -> int:
        both = np.stack([own, ends[1]])
        handle = handle_of_rows(state.rows, slots, found, seen)
        rest = (state.version, both, is_open)
        event: int
        if events.has_choices:
            event = settle_choices(handle, block.handle, starts, first, events[:3], *rest)
        else:
            event = settle_events(handle, block.handle, starts, first, events.matrix, *rest)
        own[:], ends[1] = both
        return event

    rows = _in_rooms(state, leaders, ends[0], len(slots), settle_some)
    return _Gathered(rows, ends[0]), _Gathered(leaders[: ends[1, -1]], ends[1])


def _settle_leaders(state: State, leaders: list[_Gathered], n_events: int) -> _Gathered:
    """The rows of leaders with many slots, which may lie in several parts."""
    every, offsets = _put_together(leaders)
    ends = np.zeros(n_events + 1, np.int64)
    scratch = np.empty(len(every), np.int32)
    seen = np.zeros((2, len(state.rows.flagged)), np.uint8)

    def settle_some(first: int, found: Found, own: Array) -> int:
        handle = handle_of_rows(state.rows, _NOTHING, found, seen)
        event: int = settle_leaders_many(handle, every, offsets, first, state.version, own)
        return event

    return _Gathered(_in_rooms(state, scratch, ends, len(every), settle_some), ends)


def _in_rooms(
    state: State,
    leaders: Array,
    ends: Array,
    n_expected: int,
    settle_some: Callable[[int, Found, Array], int],
) -> Array:
    """All rows that a kernel finds, which stops when the room it is given might be too small.

    Writes ``ends``: where the rows of each event end.
    """
    parts, event = [], 0
    room = n_expected + 2 * len(state.rows.birth)
    while event < len(ends) - 1:
        rows, asked = np.empty(room, np.int32), np.empty(len(leaders), np.int32)
        found = Found(rows, leaders, asked, np.zeros(3, np.int64))
        own = np.zeros(len(ends), np.int64)
        first = event
        event = settle_some(first, found, own)
        ends[first + 1 : event + 1] = ends[first] + own[first + 1 : event + 1]
        parts.append(found.rows[: own[event]])
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, _NOTHING])


_NOTHING = np.zeros(0, np.int32)


def _without(gathered: _Gathered, is_open: Array) -> _Gathered:
    """What was gathered, without the events that are matched one by one."""
    counts = np.diff(gathered.offsets)
    is_kept = np.repeat(is_open == 0, counts)
    counts[is_open != 0] = 0
    return _Gathered(gathered.rows[is_kept], offsets_of(counts))


def _one_by_one(opened: Array, n_events: int, match_one: Callable[[int], Array]) -> _Gathered:
    found = [match_one(event).copy() for event in opened.tolist()]
    counts = np.zeros(n_events, np.int64)
    counts[opened] = [len(rows) for rows in found]
    return _Gathered(np.concatenate(found), offsets_of(counts))


def _in_order(state: State, gathered: list[_Gathered], n_events: int) -> tuple[Array, Array]:
    if len(gathered) == 1 and state.has_one_priority:
        return gathered[0].offsets, gathered[0].rows
    if not gathered:
        return np.zeros(n_events + 1, np.int64), np.zeros(0, np.int32)
    rows, offsets = _put_together(gathered)
    if not state.has_one_priority:
        found, rows = rows, np.empty(len(rows) + 1, np.int32)
        order_events(found, offsets, state.rows.priority, rows)
        rows = rows[:-1]
    return offsets, rows


def _put_together(gathered: list[_Gathered]) -> _Gathered:
    """What several parts found, event by event."""
    if len(gathered) == 1:
        return gathered[0]
    rows = np.empty(sum(len(one.rows) for one in gathered), np.int32)
    offsets = np.zeros_like(gathered[0].offsets)
    join(handle_of_parts(gathered), rows, offsets)
    return _Gathered(rows, offsets)
