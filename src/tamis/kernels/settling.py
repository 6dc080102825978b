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

_NOTHING_SEEN: Array = np.zeros((3, 0), np.uint8)


def handle_of_rows(
    table: RowTable, slots: Array, found: Found, seen: Array = _NOTHING_SEEN
) -> Array:
    """i8[19]: seven sizes and the addresses of all arrays, which must outlive it.

    ``slots``: i4[...], where blocks write the slots that events satisfy. ``seen``: u1[3, bytes], a
    bit a row for each of the three that ``found`` has, zeros; needed where events have choices.
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
    """Which rows were found before, of the event that is settled."""
    return carray(u1_at(h[18]), (3, h[6]))


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
    have too little room for twice R rows.
    """
    table, slots, found = _open_rows(handle)
    row_of_slot, tests = _open_block(block)
    seen = _open_seen(handle)
    matrix, begins, decides = events
    event = first
    found.counts[0], found.counts[1] = ends[0, first], ends[1, first]
    while event < begins.size - 1 and found.counts[0] + 2 * table.birth.size <= found.rows.size:
        found.counts[2] = 0
        begin, end = begins[event], begins[event + 1]
        if end == begin + 1:
            found.counts[0] = settle(
                slots, starts[begin], starts[end], row_of_slot, tests, matrix[begin],
                table, version, found, found.counts[0],
            )  # fmt: skip
        else:
            n_rows, n_leaders = found.counts[0], found.counts[1]
            for choice in range(begin, end):
                before, led = found.counts[0], found.counts[1]
                settle_choice(
                    slots, starts[choice], starts[choice + 1], row_of_slot, tests,
                    matrix[begin:end], decides[event], table, version, found,
                )  # fmt: skip
                found.counts[0] = _drop_seen(found.rows, before, found.counts[0], seen, 0)
                found.counts[1] = _drop_seen(found.leaders, led, found.counts[1], seen, 1)
            _forget(found.rows, n_rows, found.counts[0], seen, 0)
            _forget(found.leaders, n_leaders, found.counts[1], seen, 1)
        if found.counts[2]:
            is_open[event] = 1
        event += 1
        ends[0, event], ends[1, event] = found.counts[0], found.counts[1]
    return event


@kernel
def settle_leaders_one(handle, version):
    """``settle_leaders`` of what one event found."""
    table, _, found = _open_rows(handle)
    settle_leaders(table, version, found)


@kernel
def settle_choice_one(handle, block, n_slots, choices, decides, version):
    """``settle_choice`` for the slots of one block; what other choices found as well counts once.

    Begin an event with ``found.counts`` at zero, and end it with ``forget_one``.
    """
    table, slots, found = _open_rows(handle)
    row_of_slot, tests = _open_block(block)
    seen = _open_seen(handle)
    n_rows, n_leaders, n_asked = found.counts
    settle_choice(slots, 0, n_slots, row_of_slot, tests, choices, decides, table, version, found)
    found.counts[0] = _drop_seen(found.rows, n_rows, found.counts[0], seen, 0)
    found.counts[1] = _drop_seen(found.leaders, n_leaders, found.counts[1], seen, 1)
    found.counts[2] = _drop_seen(found.asked, n_asked, found.counts[2], seen, 2)


@inlined
def _drop_seen(rows, first, last, seen, kind):
    """Keep those of rows[first:last] that were not seen, and note them; return where they end."""
    n = first
    for i in range(first, last):
        row = rows[i]
        at, bit = row >> 3, np.uint8(1 << (row & 7))
        rows[n] = row
        n += (seen[kind, at] & bit) == 0
        seen[kind, at] |= bit
    return n


@inlined
def _forget(rows, first, last, seen, kind):
    """Note that rows[first:last] were not seen."""
    for i in range(first, last):
        seen[kind, rows[i] >> 3] = 0


@kernel
def forget_one(handle):
    """Forget what was seen of an event. O(found)."""
    _, _, found = _open_rows(handle)
    seen = _open_seen(handle)
    _forget(found.rows, 0, found.counts[0], seen, 0)
    _forget(found.leaders, 0, found.counts[1], seen, 1)
    _forget(found.asked, 0, found.counts[2], seen, 2)
