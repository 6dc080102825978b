"""Settling: what one event found, turned into rows behind handles.

A handle stands for many arrays: handing over one costs a twentieth of handing over them all.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.emit import Found, RowTable, settle, settle_leaders
from tamis.kernels.memory import f8_at, i4_at, i8_at, u1_at
from tamis.kernels.tests import Tests, ask_for_shapes


def handle_of_rows(table: RowTable, slots: Array, found: Found) -> Array:
    """i8[14]: three sizes and the addresses of all arrays, which must outlive it.

    ``slots``: i4[...], where blocks write the slots that an event satisfies.
    """
    sizes = (len(table.birth), len(table.flagged), len(slots))
    assert all(len(array) == len(slots) for array in found[:3])
    addresses = (array.ctypes.data for array in (*table, slots, *found))
    return np.array([*sizes, *addresses], np.int64)


def handle_of_block(row_of_slot: Array, tests: Tests) -> Array:
    """i8[13]: five sizes and the addresses of all arrays, which must outlive it."""
    counted = (row_of_slot, tests.start, tests.operation, tests.list_start, tests.lists)
    sizes = map(len, counted)
    addresses = (array.ctypes.data for array in (row_of_slot, *tests))
    return np.array([*sizes, *addresses], np.int64)


@inlined
def _open_rows(h):
    """The rows, the slots, and where results are gathered."""
    n_rows, n_bytes, n_room = h[0], h[1], h[2]
    table = RowTable(
        carray(i8_at(h[3]), (n_rows,)),
        carray(i8_at(h[4]), (n_rows,)),
        carray(i4_at(h[5]), (n_rows,)),
        carray(u1_at(h[6]), (n_rows,)),
        carray(u1_at(h[7]), (n_bytes,)),
        carray(u1_at(h[8]), (n_bytes,)),
    )
    found = Found(
        carray(i4_at(h[10]), (n_room,)),
        carray(i4_at(h[11]), (n_room,)),
        carray(i4_at(h[12]), (n_room,)),
        carray(i8_at(h[13]), (3,)),
    )
    return table, carray(i4_at(h[9]), (n_room,)), found


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
    if tests.lists.size:
        ask_for_shapes(tests, vector, slots, n_slots)
    if is_first:
        found.counts[1] = found.counts[2] = 0
    n_rows = settle(
        slots, 0, n_slots, row_of_slot, tests, vector, table, version, found, n_rows
    )  # fmt: skip
    return ~n_rows if found.counts[1] or found.counts[2] else n_rows


@kernel
def settle_leaders_one(handle, version):
    """``settle_leaders`` of what one event found."""
    table, _, found = _open_rows(handle)
    settle_leaders(table, version, found)
