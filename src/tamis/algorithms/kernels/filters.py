"""Filters: which of them accept an event, from the slots that a tree found."""

from __future__ import annotations

from typing import NamedTuple

from tamis.kernels.compiled import Array, kernel
from tamis.kernels.tests import judge_any
from tamis.kernels.verdicts import ACCEPTED, REJECTED, UNDECIDED


class Owners(NamedTuple):
    """What is known of P slots."""

    filter: Array  # i8[P], whose conjunction a slot is
    entry: Array  # i4[P], where its tests are, -1 if it has none


@kernel
def revise(slots, owners, tests, choices, decides, accepted, asked):
    """Put the slots that a tree found to their tests; write whose they are, ascending, each once.

    slots: i4[n]. choices: f8[C, M], as ``judge_any`` takes them; ``decides``: whether they tell
    all of the event, otherwise every slot with tests is undecided. Writes the filters that accept
    to ``accepted`` (i8[n]), those that must be asked to ``asked`` (i8[n]); returns how many of
    each. O(tests + n log n).
    """
    n_accepted = n_asked = 0
    for i in range(slots.size):
        slot = slots[i]
        verdict = ACCEPTED
        if owners.entry[slot] >= 0:
            verdict = judge_any(tests, choices, owners.entry[slot]) if decides else UNDECIDED
        if verdict == ACCEPTED:
            accepted[n_accepted] = owners.filter[slot]
            n_accepted += 1
        elif verdict != REJECTED:
            asked[n_asked] = owners.filter[slot]
            n_asked += 1
    n_accepted = _sort(accepted, n_accepted)
    return n_accepted, _drop(asked, _sort(asked, n_asked), accepted, n_accepted)


@kernel
def _sort(ids, n):
    """Put ids[:n] in order, each once; return how many are left. O(n log n)."""
    ids[:n].sort()
    n_kept = min(n, 1)
    for i in range(1, n):
        if ids[i] != ids[i - 1]:
            ids[n_kept] = ids[i]
            n_kept += 1
    return n_kept


@kernel
def _drop(ids, n, others, n_others):
    """Drop from ids[:n] what is in others[:n_others], both ascending; how many are left. O(n)."""
    n_kept = at = 0
    for i in range(n):
        while at < n_others and others[at] < ids[i]:
            at += 1
        if at == n_others or others[at] != ids[i]:
            ids[n_kept] = ids[i]
            n_kept += 1
    return n_kept
