"""Settling: what events found, turned into rows behind handles.

A handle stands for many arrays: handing over one costs a twentieth of handing over them all, and
what is opened from it has no references that every call between kernels would count.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.emit import (
    Found,
    RowTable,
    settle,
    settle_choice,
    settle_leaders,
    settle_many,
)
from tamis.kernels.memory import f8_at, i4_at, i8_at, u1_at
from tamis.kernels.tests import Tests

_NOTHING_SEEN: Array = np.zeros((2, 0), np.uint8)


def handle_of_rows(
    table: RowTable, slots: Array, found: Found, seen: Array = _NOTHING_SEEN
) -> Array:
    """i8[19]: seven sizes and the addresses of all arrays, which must outlive it.

    ``slots``: i4[...], where blocks write the slots that events satisfy. ``seen``: u1[2, bytes], a
    bit for each slot of a block, and for each row; zeros but while an event is settled.
    """
    counted = (table.birth, table.flagged, slots, *found[:3], seen[0])
    addresses = (array.ctypes.data for array in (*table, slots, *found, seen))
    return np.array([*map(len, counted), *addresses], np.int64)


def handle_of_block(row_of_slot: Array, tests: Tests) -> Array:
    """i8[13]: five sizes and the addresses of all arrays, which must outlive it."""
    counted = (row_of_slot, tests.start, tests.operation, tests.list_start, tests.lists)
    sizes = map(len, counted)
    addresses = (array.ctypes.data for array in (row_of_slot, *tests))
    return np.array([*sizes, *addresses], np.int64)


@inlined
def _open_rows(h):
    """The rows, the slots, and where results are gathered."""
    n_rows, n_bytes = h[0], h[1]
    table = RowTable(
        carray(i8_at(h[7]), (n_rows,)),
        carray(i8_at(h[8]), (n_rows,)),
        carray(i4_at(h[9]), (n_rows,)),
        carray(u1_at(h[10]), (n_rows,)),
        carray(u1_at(h[11]), (n_bytes,)),
        carray(u1_at(h[12]), (n_bytes,)),
    )
    found = Found(
        carray(i4_at(h[14]), (h[3],)),
        carray(i4_at(h[15]), (h[4],)),
        carray(i4_at(h[16]), (h[5],)),
        carray(i8_at(h[17]), (3,)),
    )
    return table, carray(i4_at(h[13]), (h[2],)), found


@inlined
def _open_seen(h):
    """Which slots of a block, and which rows, were found before by the event that is settled."""
    return carray(u1_at(h[18]), (2, h[6]))


@inlined
def _open_block(h):
    """Whose a block's slots are, and their tests."""
    n_tests = h[2]
    tests = Tests(
        carray(i4_at(h[6]), (h[1],)),
        carray(u1_at(h[7]), (n_tests,)),
        carray(i4_at(h[8]), (n_tests,)),
        carray(f8_at(h[9]), (n_tests,)),
        carray(f8_at(h[10]), (n_tests,)),
        carray(i8_at(h[11]), (h[3],)),
        carray(f8_at(h[12]), (h[4],)),
    )
    return carray(i4_at(h[5]), (h[0],)), tests


@inlined
def _drop_seen(numbers, first, last, seen, kind):
    """Keep those of numbers[first:last] that were not seen, and note them; return their end."""
    n = first
    for i in range(first, last):
        number = numbers[i]
        at, bit = number >> 3, np.uint8(1 << (number & 7))
        numbers[n] = number
        n += (seen[kind, at] & bit) == 0
        seen[kind, at] |= bit
    return n


@inlined
def _forget(numbers, first, last, seen, kind):
    """Note that numbers[first:last] were not seen."""
    for i in range(first, last):
        seen[kind, numbers[i] >> 3] = 0


@kernel
def settle_one(handle, block, n_slots, vector, version, n_rows, is_first):
    """Turn the slots of one block into rows, beside the ``n_rows`` there are; see ``settle``.

    ``handle``, ``block``: as made above. ``is_first``: of this event. Returns how many rows there
    are now, or its complement (~) if leaders are left that ``found`` tells of.
    """
    table, slots, found = _open_rows(handle)
    row_of_slot, tests = _open_block(block)
    if is_first:
        found.counts[1] = found.counts[2] = 0
    n_rows = settle(
        slots, 0, n_slots, row_of_slot, tests, vector, table, version, found, n_rows
    )  # fmt: skip
    return ~n_rows if found.counts[1] or found.counts[2] else n_rows


@kernel
def settle_events(handle, block, starts, first, matrix, version, ends, is_open):
    """``settle_many`` for the slots of one block."""
    table, slots, found = _open_rows(handle)
    held = _open_block(block)
    return settle_many(slots, starts, first, held, matrix, table, version, found, ends, is_open)


@kernel
def settle_choices(handle, block, starts, first, events, version, ends, is_open):
    """``settle_events`` for events of which some have choices.

    ``events``: the matrix f8[V, M], where the choices of each event begin in it (i8[E + 1]), and
    whether they say what tests ask (u1[E]). ``starts``: i8[V + 1]. Stops when ``found.rows`` might
    have too little room for R rows.
    """
    table, slots, found = _open_rows(handle)
    row_of_slot, tests = _open_block(block)
    seen = _open_seen(handle)
    matrix, begins, decides = events
    event = first
    found.counts[0], found.counts[1] = ends[0, first], ends[1, first]
    while event < begins.size - 1 and found.counts[0] + table.birth.size <= found.rows.size:
        found.counts[2] = 0
        begin, end = begins[event], begins[event + 1]
        if end == begin + 1:
            found.counts[0] = settle(
                slots, starts[begin], starts[end], row_of_slot, tests, matrix[begin],
                table, version, found, found.counts[0],
            )  # fmt: skip
        else:
            last = _drop_seen(slots, starts[begin], starts[end], seen, 0)
            _forget(slots, starts[begin], last, seen, 0)
            settle_choice(
                slots, starts[begin], last, row_of_slot, tests, matrix[begin:end], decides[event],
                table, version, found,
            )  # fmt: skip
        if found.counts[2]:
            is_open[event] = 1
        event += 1
        ends[0, event], ends[1, event] = found.counts[0], found.counts[1]
    return event


@kernel
def settle_leaders_one(handle, version):
    """Add the chains of the leaders with many slots that one event found, each once. O(chains)."""
    table, _, found = _open_rows(handle)
    seen = _open_seen(handle)
    found.counts[1] = _drop_seen(found.leaders, 0, found.counts[1], seen, 1)
    _forget(found.leaders, 0, found.counts[1], seen, 1)
    settle_leaders(table, version, found, 0)


@kernel
def settle_leaders_many(handle, leaders, offsets, first, version, ends):
    """``settle_leaders_one`` for events from ``first`` on; e found leaders from offsets[e] on.

    Writes ``ends``: i8[E + 1], ``found.rows`` of event e end at ``ends[e + 1]``. Stops when
    ``found.rows`` might have too little room for R rows; returns the event to go on with.
    """
    table, _, found = _open_rows(handle)
    seen = _open_seen(handle)
    found.counts[0], event = ends[first], first
    while event < ends.size - 1 and found.counts[0] + table.birth.size <= found.rows.size:
        n = 0
        for i in range(offsets[event], offsets[event + 1]):
            found.leaders[n] = leaders[i]
            n += 1
        found.counts[1] = _drop_seen(found.leaders, 0, n, seen, 1)
        _forget(found.leaders, 0, found.counts[1], seen, 1)
        settle_leaders(table, version, found, 0)
        event += 1
        ends[event] = found.counts[0]
    return event


@kernel
def keep_new(handle, first, last):
    """Keep those of slots[first:last] that no choice of the event has found; return their end."""
    _, slots, _ = _open_rows(handle)
    return _drop_seen(slots, first, last, _open_seen(handle), 0)


@kernel
def settle_choice_one(handle, block, n_slots, choices, decides, version):
    """``settle_choice`` for what all choices found in one block, which is forgotten."""
    table, slots, found = _open_rows(handle)
    row_of_slot, tests = _open_block(block)
    _forget(slots, 0, n_slots, _open_seen(handle), 0)
    settle_choice(slots, 0, n_slots, row_of_slot, tests, choices, decides, table, version, found)
