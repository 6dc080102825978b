"""Movers: what subscriptions with a place ask for beside it, as arrays that grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.index.ranges import Box
from tamis.kernels.moving import (
    CARD,
    FIRST,
    IS_JUDGED,
    IS_SQUARE,
    KIND,
    LEVEL_SHIFT,
    N_OWN,
    ROW,
    TERM,
    Movers,
)
from tamis.kernels.moving_cells import level_of
from tamis.kernels.tests import FIRST_WITH_LIST, IN_RANGE, NEGATED, Tests
from tamis.language import Conjunction
from tamis.model import Subscription
from tamis.model.event import LOCATION
from tamis.model.subscription import SQUARE
from tamis.slots.columns import Columns
from tamis.slots.lanes import LAT, LON
from tamis.slots.slots import Slot, Test, slot_of

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
        for level in np.unique(movers.card[KIND::CARD] >> LEVEL_SHIFT).tolist():
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
        card, radius_m, slots, terms, *_ = self._parts
        mover, level = len(self), int(level_of(new.radius_m))
        kind = level << LEVEL_SHIFT | (IS_SQUARE if new.is_square else 0)
        if len(new.slots) == 1 and not new.slots[0][1].tests:
            ((own, _),) = new.slots
            card.extend((row, terms.n // TERM, len(own), kind))
            terms.extend([number for term in own for number in term])
        else:
            card.extend((row, slots.n // 2, len(new.slots), kind | IS_JUDGED))
            self._append_slots(new.slots)
        radius_m.extend((new.radius_m,))
        self.is_new |= not self.levels >> level & 1
        self.levels |= 1 << level
        return mover

    def _append_slots(self, many: list[tuple[Terms, Slot]]) -> None:
        _, _, slots, terms, start, *tests = self._parts
        for own, slot in many:
            slots.extend((terms.n // TERM, len(own)))
            terms.extend([number for term in own for number in term])
            self._append_tests(slot.tests, slot.lists)
            start.extend((tests[0].n,))

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
        card[:, ROW] = rows
        is_judged = (card[:, KIND] & IS_JUDGED) > 0
        slots = _ranges(card[is_judged, FIRST], card[is_judged, N_OWN])
        of_slots = held.slots.reshape(-1, 2)[slots].copy()
        tests = held.tests
        kept = _ranges(tests.start[slots], np.diff(tests.start)[slots])
        # First the terms of those who have no slots, then those of the slots.
        firsts = np.concatenate([card[~is_judged, FIRST], of_slots[:, 0]])
        n_terms = np.concatenate([card[~is_judged, N_OWN], of_slots[:, 1]])
        starts, n_plain = _starts(n_terms), np.count_nonzero(~is_judged)
        card[~is_judged, FIRST], of_slots[:, 0] = starts[:n_plain], starts[n_plain:-1]
        card[is_judged, FIRST] = _starts(card[is_judged, N_OWN])[:-1]
        return MoverTable(
            Movers(
                card.ravel(),
                held.radius_m[movers],
                of_slots.ravel(),
                held.terms.reshape(-1, TERM)[_ranges(firsts, n_terms)].ravel(),
                Tests(
                    _starts(np.diff(tests.start)[slots]).astype(np.int32),
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


class NewMover(NamedTuple):
    """What a mover asks for, the area around it, and where it is."""

    slots: list[tuple[Terms, Slot]]
    radius_m: float
    is_square: bool
    place: tuple[float, float]


class Area(NamedTuple):
    """The area around a mover, and the intervals by column if it has one slot without tests."""

    radius_m: float
    is_square: bool
    bounds: dict[int, tuple[float, float]]


def area_of(movers: Movers, mover: int) -> Area:
    """What the arrays say of a mover."""
    _, first, n_own, kind = movers.card[mover * CARD : (mover + 1) * CARD].tolist()
    bounds: dict[int, tuple[float, float]] = {}
    if not kind & IS_JUDGED:
        terms = movers.terms[first * TERM : (first + n_own) * TERM].reshape(-1, TERM)
        bounds = {int(column): (low, high) for column, low, high in terms.tolist()}
    return Area(float(movers.radius_m[mover]), bool(kind & IS_SQUARE), bounds)


def is_mover(subscription: Subscription) -> bool:
    """Whether a subscription is found by its place: it has one, and its area is not wide."""
    return subscription.radius_m is not None and subscription.radius_m <= WIDE_M


def mover_of(subscription: Subscription, slots: list[tuple[Terms, Slot]]) -> NewMover:
    """A subscription that has a location, and the slots of its filter."""
    place, radius_m = subscription.location, subscription.radius_m
    assert place is not None
    assert radius_m is not None
    return NewMover(slots, radius_m, subscription.area == SQUARE, (place.lon, place.lat))


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


def _starts(n: Array) -> Array:
    """Where ranges of n[i] numbers begin, one after the other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(n)])


def _movers_of(arrays: Sequence[Array]) -> Movers:
    card, radius_m, slots, terms, *tests = arrays
    return Movers(card, radius_m, slots, terms, Tests(*tests))


def _no_movers() -> Movers:
    none, numbers = np.zeros(0, np.int32), np.zeros(0)
    tests = Tests(
        np.zeros(1, np.int32), np.zeros(0, np.uint8), none, numbers, numbers,
        np.zeros(1, np.int64), numbers,
    )  # fmt: skip
    return Movers(none, numbers, none, numbers, tests)
