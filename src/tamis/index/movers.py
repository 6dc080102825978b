"""Movers: what subscriptions with a place ask for beside it, as arrays that grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.index.columns import LAT, LON, Columns
from tamis.index.ranges import Box
from tamis.index.slots import Slot, Test, slot_of
from tamis.kernels.moving import CARD, FORM, LEVEL, TERM, Movers
from tamis.kernels.moving_cells import level_of
from tamis.kernels.tests import FIRST_WITH_LIST, IN_RANGE, NEGATED, Tests
from tamis.language import Conjunction
from tamis.model import Subscription
from tamis.model.event import LOCATION
from tamis.model.subscription import SQUARE
from tamis.values.shapes import EARTH_RADIUS_M

Array = npt.NDArray[Any]
Terms = list[tuple[int, float, float]]  # column, low, high

WIDE_M = 50_000.0  # a wider area excludes little: whoever has one is found by what else is asked

_SMALLEST = 64


class Growing:
    """An array that is appended to; readers keep the one that was there when they began."""

    def __init__(self, held: Array, notice: Callable[[], None]) -> None:
        self.array, self.n, self._notice = held, len(held), notice

    def extend(self, values: Sequence[float]) -> None:
        """Append values; ``notice`` is called if that makes a new array."""
        last = self.n + len(values)
        if last > len(self.array):
            self.array = grown(self.array, self.n, last)
            self._notice()
        self.array[self.n : last] = values
        self.n = last


def grown(array: Array, n: int, least: int) -> Array:
    """A longer array that begins with the first n of another, with room for at least so many."""
    larger = np.zeros(max(_SMALLEST, 2 * len(array), least), array.dtype)
    larger[:n] = array[:n]
    return larger


class MoverTable:
    """The movers of an index, numbered from 0 in the order of their rows."""

    def __init__(self, held: Movers | None = None) -> None:
        movers = held or _no_movers()
        self._parts = [Growing(array, self._notice) for array in (*movers[:-1], *movers.tests)]
        self.is_new = True  # whether there are arrays or levels that no handle knows
        self.levels = 0
        for level in np.unique(movers.card[LEVEL::CARD]).tolist():
            self.levels |= 1 << level

    def __len__(self) -> int:
        return self._parts[0].n // CARD

    def _notice(self) -> None:
        self.is_new = True

    @property
    def arrays(self) -> Movers:
        """The arrays as they are, with room at their ends."""
        return _movers_of([part.array for part in self._parts])

    def append(self, row: int, new: NewMover) -> int:
        """A new mover; its row is higher than all others."""
        slots, form = new.slots, new.form
        card, forms, slot_terms, terms, start, *tests = self._parts
        is_judged = len(slots) != 1 or bool(slots[0][1].tests)
        n_terms = len(slots[0][0]) if slots else 0
        mover, first_slot, first_term = len(self), slot_terms.n // 2, terms.n // TERM
        for own, slot in slots:
            slot_terms.extend((terms.n // TERM, len(own)))
            terms.extend([number for term in own for number in term])
            self._append_tests(slot.tests, slot.lists)
            start.extend((tests[0].n,))
        level = int(level_of(form.radius_m))
        card.extend(
            (row, first_slot, len(slots), first_term, n_terms, is_judged, level, form.is_square)
        )
        forms.extend(form.numbers)
        self.is_new |= not self.levels >> level & 1
        self.levels |= 1 << level
        return mover

    def _append_tests(self, tests: list[Test], lists: list[list[float]]) -> None:
        operation, column, low, high, list_start, numbers = self._parts[5:]
        first = list_start.n - 1
        for one in tests:
            has_list = (one[0] & ~NEGATED) >= FIRST_WITH_LIST
            operation.extend((one[0],))
            column.extend((one[1],))
            low.extend((one[2] + first if has_list else one[2],))
            high.extend((one[3],))
        for held in lists:
            numbers.extend(held)
            list_start.extend((numbers.n,))

    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        return sum(part.array.nbytes for part in self._parts)

    def select(self, movers: Array, rows: Array) -> MoverTable:
        """A table of some movers, in their order, under other rows."""
        held = self.trimmed
        card = held.card.reshape(-1, CARD)[movers].copy()
        card[:, 0] = rows
        slots = _ranges(card[:, 1], card[:, 2])
        terms = held.slots.reshape(-1, 2)[slots]
        tests = held.tests
        kept = _ranges(tests.start[slots], np.diff(tests.start)[slots])
        starts = [np.concatenate([[0], np.cumsum(n)]) for n in (card[:, 2], terms[:, 1])]
        chosen = held.terms.reshape(-1, TERM)[_ranges(terms[:, 0], terms[:, 1])]
        card[:, 1] = starts[0][:-1]
        has_slots = card[:, 2] > 0
        card[has_slots, 3] = starts[1][card[has_slots, 1]]
        n_tests = np.concatenate([[0], np.cumsum(np.diff(tests.start)[slots])])
        return MoverTable(
            Movers(
                card.ravel(),
                held.form.reshape(-1, FORM)[movers].ravel(),
                np.stack([starts[1][:-1], terms[:, 1]], axis=1).astype(np.int32).ravel(),
                chosen.ravel(),
                Tests(
                    n_tests.astype(np.int32),
                    tests.operation[kept],
                    tests.column[kept],
                    tests.low[kept],
                    tests.high[kept],
                    tests.list_start,
                    tests.lists,
                ),
            )
        )

    @property
    def trimmed(self) -> Movers:
        """The arrays without the room at their ends."""
        return _movers_of([part.array[: part.n] for part in self._parts])


class Form(NamedTuple):
    """The area around a mover: a radius, and whether it is a square."""

    radius_m: float
    is_square: bool

    @property
    def numbers(self) -> tuple[float, float, float]:
        """What kernels compare with: see ``kernels.moving``."""
        angle = min(self.radius_m / EARTH_RADIUS_M, math.pi)
        h = math.sin(angle / 2) ** 2
        # Angles are rounded to about 1e-15; what that makes of h stays far within this margin.
        return math.degrees(angle), h, 1e-12 * (math.sqrt(h) + h)


class NewMover(NamedTuple):
    """What a mover asks for and where it is."""

    slots: list[tuple[Terms, Slot]]
    form: Form
    place: tuple[float, float]


def is_mover(subscription: Subscription) -> bool:
    """Whether a subscription is found by its place: it has one, and its area is not wide."""
    return subscription.radius_m is not None and subscription.radius_m <= WIDE_M


def mover_of(subscription: Subscription, slots: list[tuple[Terms, Slot]]) -> NewMover:
    """A subscription that has a location, and the slots of its filter."""
    place, radius_m = subscription.location, subscription.radius_m
    assert place is not None
    assert radius_m is not None
    form = Form(radius_m, subscription.area == SQUARE)
    return NewMover(slots, form, (place.lon, place.lat))


def slots_of_box(box: Box) -> list[tuple[Terms, Slot]]:
    """The one slot of ranges."""
    return [(_in_order(zip(box.columns, box.lows, box.highs, strict=True)), Slot())]


def slots_of_mover(
    conjunctions: Iterable[Conjunction], columns: Columns
) -> list[tuple[Terms, Slot]]:
    """The slots of a filter beside a place, one a conjunction.

    What it asks of the event's location itself is tested: of several locations one may be near
    and another one what the filter asks for.
    """
    places = [columns.column(LOCATION, lane) for lane in (LON, LAT)]
    made = []
    for conjunction in conjunctions:
        slot = slot_of(conjunction, columns)
        if slot is None:
            continue
        for column in places:
            if column in slot.constraints:
                slot.tests.append((IN_RANGE, column, *slot.constraints.pop(column)))
        terms = ((column, low, high) for column, (low, high) in slot.constraints.items())
        made.append((_in_order(terms), slot))
    return made


def _in_order(terms: Iterable[tuple[int, float, float]]) -> Terms:
    """The terms that exclude most events first, as far as their numbers tell."""
    return sorted(terms, key=_breadth)


def _breadth(term: tuple[int, float, float]) -> float:
    _, low, high = term
    if low == high:
        return 0.0
    breadth = (high - low) / (abs(low) + abs(high))
    return breadth if breadth == breadth else 2.0  # infinite at both ends


def _ranges(first: Array, n: Array) -> Array:
    """All numbers from first[i] on, n[i] of them, one range after the other."""
    starts = np.cumsum(n) - n
    return np.repeat(first - starts, n) + np.arange(int(n.sum()))


def _movers_of(arrays: Sequence[Array]) -> Movers:
    card, form, slots, terms, *tests = arrays
    return Movers(card, form, slots, terms, Tests(*tests))


def _no_movers() -> Movers:
    none, numbers = np.zeros(0, np.int32), np.zeros(0)
    tests = Tests(
        np.zeros(1, np.int32), np.zeros(0, np.uint8), none, numbers, numbers,
        np.zeros(1, np.int64), numbers,
    )  # fmt: skip
    return Movers(none, numbers, none, numbers, tests)
