"""Emit: from the slots an event satisfies to the rows (subscriptions) that are told.

A *row* is a subscription. Rows with the same filter form a chain, of which the first, the
*leader*, owns the slots. A row of which nothing more is to be known than that it is there is
*plain*; any other has its bit set in ``flagged``: its slots have tests, or it has several
slots, or others follow it in its chain, or it is dead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import Array, inlined, kernel
from tamis.kernels.memory import prefetch
from tamis.kernels.tests import ask_for_tests, judge, judge_any
from tamis.kernels.verdicts import ACCEPTED, UNDECIDED

AT_ONCE = 64  # slots whose rows and tests are asked for before the first is settled


class RowTable(NamedTuple):
    """What is known of R rows."""

    birth: Array  # i8[R], the version that brought the row
    death: Array  # i8[R], the version that took it away, 0 while it lives
    follower: Array  # i4[R], one more than the next row of the chain, or 0
    priority: Array  # u1[R], below N_PRIORITIES of ``kernels.ordering``
    flagged: Array  # u1[R / 8], a bit a row: it is not plain
    has_many_slots: Array  # u1[R / 8], a bit a row


class Found(NamedTuple):
    """Where results are gathered; ``counts`` says how many there are of each."""

    rows: Array  # i4[>= R], rows that are told
    leaders: Array  # i4[...], accepted leaders with many slots, repeats possible
    asked: Array  # i4[...], leaders whose filter must be asked
    counts: Array  # i8[3], of the three above


@inlined
def _bit(bits, row):
    return (bits[np.uint64(row) >> np.uint64(3)] >> np.uint8(row & 7)) & np.uint8(1)


@kernel
def emit_chain(table, leader, version, found):
    """Add the living rows of a chain to ``found.rows``. O(length of the chain)."""
    n_rows = found.counts[0]
    row = leader
    while True:
        death = table.death[row]
        if table.birth[row] <= version and (death == 0 or death > version):
            found.rows[n_rows] = row
            n_rows += 1
        row = table.follower[row] - 1
        if row < 0:
            break
    found.counts[0] = n_rows


@inlined
def _is_over(table, row, version):
    """Whether a row is dead and nobody follows it."""
    return table.death[row] and table.death[row] <= version and table.follower[row] == 0


@inlined
def _has_tests(tests, slot):
    return tests.start.size and tests.start[slot + 1] > tests.start[slot]


@inlined
def _tell(row, verdict, table, version, found):
    """Add to ``found`` what the verdict on a slot tells of its row, which is not plain."""
    if verdict == UNDECIDED:
        found.asked[found.counts[2]] = row
        found.counts[2] += 1
    elif verdict == ACCEPTED:
        if _bit(table.has_many_slots, row):
            found.leaders[found.counts[1]] = row
            found.counts[1] += 1
        else:
            emit_chain(table, row, version, found)


@inlined
def settle_flagged(slot, row, tests, vector, table, version, found):
    """Add to ``found`` what a slot that holds tells of its row, which is not plain."""
    if _is_over(table, row, version):
        return  # before its tests, which may be long
    verdict = judge(tests, vector, slot) if _has_tests(tests, slot) else ACCEPTED
    _tell(row, verdict, table, version, found)


@kernel
def add_plain(slots, first, last, row_of_slot, flagged, rows, n_rows):
    """Add the rows of slots[first:last] to ``rows`` up to one that is not plain; return how many.

    Apart from ``settle``, so that the loop keeps its arrays in registers. O(last - first).
    """
    for i in range(last - first):
        slot = slots[first + i]
        row = row_of_slot[slot] if row_of_slot.size else slot
        if _bit(flagged, row):
            return i
        rows[n_rows + i] = row
    return last - first


@kernel
def ask_for_rows(slots, first, last, row_of_slot, tests, vector, table):
    """Ask for what settling slots[first:last] will look at, so that all wait at once. O(tests)."""
    for i in range(first, last):
        row = row_of_slot[slots[i]] if row_of_slot.size else slots[i]
        prefetch(table.flagged, np.uint64(row) >> np.uint64(3))
    n_flagged = 0
    for i in range(first, last):
        row = row_of_slot[slots[i]] if row_of_slot.size else slots[i]
        if _bit(table.flagged, row):
            at = np.uint64(row)
            prefetch(table.birth, at)
            prefetch(table.death, at)
            prefetch(table.follower, at)
            prefetch(table.has_many_slots, at >> np.uint64(3))
            n_flagged += 1
    if n_flagged and tests.start.size:
        ask_for_tests(tests, vector, slots, first, last)


@kernel
def settle(slots, first, last, row_of_slot, tests, vector, table, version, found, n_rows):
    """Turn slots[first:last] of one block into rows; return how many ``found.rows`` there are now.

    ``slots``: i4[...], slots whose constraints hold. ``row_of_slot``: i4[P], or empty where slot p
    belongs to row p. Adds to ``found``: rows of plain leaders at once, leaders with many slots and
    leaders to be asked for later. O(last - first + tests).
    """
    while True:
        n_plain = add_plain(slots, first, last, row_of_slot, table.flagged, found.rows, n_rows)
        first, n_rows = first + n_plain, n_rows + n_plain
        if first == last:
            return n_rows
        end = min(last, first + AT_ONCE)  # where one is not plain, more are not
        ask_for_rows(slots, first, end, row_of_slot, tests, vector, table)
        n_rows = _settle_some(
            slots, first, end, row_of_slot, tests, vector, table, version, found, n_rows
        )  # fmt: skip
        first = end


@kernel
def _settle_some(slots, first, last, row_of_slot, tests, vector, table, version, found, n_rows):
    """``settle`` for slots of which all was asked for."""
    while True:
        n_plain = add_plain(slots, first, last, row_of_slot, table.flagged, found.rows, n_rows)
        first, n_rows = first + n_plain, n_rows + n_plain
        if first == last:
            return n_rows
        slot = slots[first]
        row = row_of_slot[slot] if row_of_slot.size else slot
        found.counts[0] = n_rows
        settle_flagged(slot, row, tests, vector, table, version, found)
        n_rows = found.counts[0]
        first += 1


@kernel
def settle_choice(
    slots, first, last, row_of_slot, tests, choices, decides, table, version, found
):  # fmt: skip
    """``settle`` for what the choices of an event's values found.

    ``choices``: f8[C, M], as ``judge_any`` takes them. ``decides``: whether they tell what tests
    ask; otherwise a slot with tests is asked. O(last - first + tests x C).
    """
    for i in range(first, last):
        if (i - first) % AT_ONCE == 0:
            end = min(last, i + AT_ONCE)
            ask_for_rows(slots, i, end, row_of_slot, tests, choices[0], table)
        slot = slots[i]
        row = row_of_slot[slot] if row_of_slot.size else slot
        if not _bit(table.flagged, row):
            found.rows[found.counts[0]] = row
            found.counts[0] += 1
        elif not _is_over(table, row, version):
            verdict = ACCEPTED
            if _has_tests(tests, slot):
                verdict = judge_any(tests, choices, slot) if decides else UNDECIDED
            _tell(row, verdict, table, version, found)


@kernel
def settle_leaders(table, version, found, first):
    """Add the chains of the leaders from ``first`` on, of which none comes twice. O(chains)."""
    for i in range(first, found.counts[1]):
        at = np.uint64(found.leaders[i])
        prefetch(table.birth, at)
        prefetch(table.death, at)
        prefetch(table.follower, at)
    for i in range(first, found.counts[1]):
        emit_chain(table, found.leaders[i], version, found)


@kernel
def settle_many(slots, starts, first, block, matrix, table, version, found, ends, is_open):
    """``settle`` for plain events from ``first`` on; event e has slots[starts[e]:starts[e + 1]].

    ``block``: its row_of_slot and tests. Writes ``ends``: i8[2, E + 1], the
    ``found.rows`` of event e end at ``ends[0, e + 1]``, its ``found.leaders`` at
    ``ends[1, e + 1]``. Sets ``is_open``: u1[E] for events with questions left, which are to be
    matched one by one. Stops when ``found.rows`` might have too little room for R rows; returns
    the event to go on with. ``found.leaders`` and ``found.asked`` have room for all slots.
    O(slots + tests).
    """
    row_of_slot, tests = block
    n_rows, event = ends[0, first], first
    found.counts[1] = ends[1, first]
    while event < starts.size - 1 and n_rows + table.birth.size <= found.rows.size:
        found.counts[2] = 0
        n_rows = settle(
            slots, starts[event], starts[event + 1], row_of_slot, tests, matrix[event],
            table, version, found, n_rows,
        )  # fmt: skip
        if found.counts[2]:
            is_open[event] = 1
        event += 1
        ends[0, event], ends[1, event] = n_rows, found.counts[1]
    return event
