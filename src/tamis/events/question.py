"""Question: what a subscription asks, as intervals and tests over the columns of a part."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tamis.events.lanes import Name
from tamis.events.layout import Intervals
from tamis.index.ranges import Ranges, ranges_of
from tamis.index.revision import Check, check_of
from tamis.kernels.tests import IS_MISSING, IS_NEAR, NEGATED
from tamis.language import Conjunction, Filter, normal_form
from tamis.language.tree import Not, Predicate, all_of
from tamis.slots.columns import Columns
from tamis.slots.lanes import BOOLEAN, LAT, LON, NUMBER, PRESENT, TEXT, TIME
from tamis.slots.slots import ANY, Slot, require_place, slots_of

NO_READS: npt.NDArray[np.int32] = np.zeros((0, 2), np.int32)
_FIRST_PREFIX = 2**24  # the number of a column that stands for a prefix


class HasColumns(Protocol):
    """What a question must know of the part of a store that it is put to."""

    n_columns: int
    layout: tuple[Name, ...]  # the columns in order; empty if they may become more

    def column_of(self, name: Name) -> int:
        """The column of an attribute in a lane, or -1."""

    def code_of(self, attribute: str, text: str) -> float:
        """The code of a text, or -1 if no event holds it."""

    def codes_with(self, attribute: str, prefix: str) -> tuple[float, float] | None:
        """The first and last code of the texts that start so; None if codes have no order."""


class Tests(NamedTuple):
    """What a clause asks beside intervals, as ``judge_rows`` takes it."""

    given: npt.NDArray[np.float64]  # operations, columns, lows and highs: (4, T)
    list_start: npt.NDArray[np.int64]
    lists: npt.NDArray[np.float64]


NO_TESTS = Tests(np.zeros((4, 0)), np.zeros(1, np.int64), np.zeros(0))


class Clause(NamedTuple):
    """One of the ways to satisfy a question: intervals, and tests for what they cannot say."""

    wanted: npt.NDArray[np.float64]  # columns, lows and highs: (3, K)
    tests: Tests = NO_TESTS
    reads: npt.NDArray[np.int32] = NO_READS  # (R, 2), what tests read, see ``judge_rows``
    n_presences: int = 0  # attributes of which tests ask whether they are there

    @property
    def has_tests(self) -> bool:
        """Whether intervals do not say all."""
        return self.tests is not NO_TESTS


class Question:
    """A filter on its way to events, and the area that they have to be in, if there is one."""

    def __init__(self, filter: Filter, surroundings: Predicate | None = None) -> None:
        self._filter, self._surroundings = filter, surroundings
        self._ranges = ranges_of(filter)
        # Of segments with the same columns; not where the codes of texts matter. A list, as
        # comparing layouts, whose names are mostly the same objects, is quicker than hashing them.
        self._clauses: list[tuple[tuple[Name, ...], list[Clause]]] = []

    @cached_property
    def condition(self) -> Filter:
        """All that is asked."""
        area = self._surroundings
        return self._filter if area is None else all_of((self._filter, area))

    @cached_property
    def check(self) -> Check:
        """The filter as a function of an event's attributes."""
        return check_of(self.condition)

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The attributes that the filter speaks of."""
        return frozenset(_attributes_in(self.condition))

    @cached_property
    def conjunctions(self) -> tuple[Conjunction, ...]:
        """The normal form."""
        return normal_form(self.condition)

    def check_size(self) -> None:
        """Refuse a filter whose normal form is too large, which no part did if there was none."""
        if self._ranges is None:
            _ = self.conjunctions

    def clauses(self, part: HasColumns) -> list[Clause]:
        """The ways in which events of a part may satisfy the question."""
        layout = part.layout
        for known, held in self._clauses:
            if known == layout:
                return held
        if self._ranges is not None:
            made, is_for_all = self._clauses_of_ranges(self._ranges, part), True
        else:
            asked = _Asked(part)
            slots = (slot for one in self.conjunctions for slot in slots_of(one, asked))
            made = [clause for slot in slots if (clause := asked.clause(slot)) is not None]
            is_for_all = not asked.has_texts
        if is_for_all and layout:
            self._clauses.append((layout, made))
        return made

    def _clauses_of_ranges(self, ranges: Ranges, part: HasColumns) -> list[Clause]:
        """Ranges need no normal form, nor does an area beside them."""
        names, lows, highs, _ = ranges
        columns = [part.column_of((name, NUMBER)) for name in names]
        if -1 in columns:
            return []
        area = self._surroundings
        if area is None:
            return [Clause(np.array((columns, lows, highs), np.float64))]
        lon, lat = place = [part.column_of((area.attribute, lane)) for lane in (LON, LAT)]
        if -1 in place:
            return []
        slot = Slot()
        require_place(slot, area, lon, lat)
        (west, east), (south, north) = slot.constraints[lon], slot.constraints[lat]
        sides = [*lows, west, south], [*highs, east, north]
        wanted = np.array(([*columns, lon, lat], *sides), np.float64)
        if not slot.tests:
            return [Clause(wanted)]
        return [Clause(wanted, _tests_of(slot), np.array([(lon, lon), (lat, lat)], np.int32))]

    @cached_property
    def intervals(self) -> list[Intervals]:
        """What is asked of numbers, times and places, for the layout of events."""
        if self._ranges is not None and self._surroundings is None:
            names, lows, highs, _ = self._ranges
            sides = zip(lows, highs, strict=True)
            return [{(name, NUMBER): pair for name, pair in zip(names, sides, strict=True)}]
        columns = Columns()
        made = []
        for slot in (slot for one in self.conjunctions for slot in slots_of(one, columns)):
            pairs = {columns.names[column]: pair for column, pair in slot.constraints.items()}
            made.append({n: pair for n, pair in pairs.items() if n[1] in (NUMBER, TIME, LON, LAT)})
        return made


def _attributes_in(node: Filter) -> Iterator[str]:
    if isinstance(node, Predicate):
        yield node.attribute
        return
    parts = (node.part,) if isinstance(node, Not) else node.parts  # type: ignore[attr-defined]
    for part in parts:
        yield from _attributes_in(part)


class _Asked(Columns):
    """The columns of a part as ``slots_of`` asks for them.

    A column that no event fills has the number ``n_columns``. Whether an attribute is present is
    asked of columns after it, one an attribute; prefixes have numbers of their own.
    """

    def __init__(self, part: HasColumns) -> None:
        super().__init__()
        self._part, self._nobody = part, part.n_columns
        self._presences: dict[str, int] = {}
        self._prefixes: list[tuple[str, str]] = []
        self.has_texts = False  # whether codes of this part were asked for

    def column(self, attribute: str, lane: int) -> int:
        """The column of a lane."""
        if lane == PRESENT:
            next_one = self._nobody + 1 + len(self._presences)
            return self._presences.setdefault(attribute, next_one)
        column = self._part.column_of((attribute, lane))
        return self._nobody if column < 0 else column

    def code(self, attribute: str, text: str) -> float:
        """The code of a text, -1 if no event holds it."""
        self.has_texts = True
        return self._part.code_of(attribute, text)

    def prefix(self, attribute: str, prefix: str) -> tuple[int, float]:
        """A column that stands for the prefix."""
        self.has_texts = True
        self._prefixes.append((attribute, prefix))
        return _FIRST_PREFIX + len(self._prefixes) - 1, 0.0

    def clause(self, slot: Slot) -> Clause | None:
        """The intervals and tests of a slot over real columns; None if no event can pass."""
        plain = {column: one for column, one in slot.constraints.items() if column < self._nobody}
        made = Slot(plain, lists=slot.lists)
        for column, (low, high) in slot.constraints.items():
            if column >= self._nobody and not self._constrain(made, column, low, high):
                return None
        for test in slot.tests:
            self._test(made, *test)
        held = made.constraints
        sides = list(zip(*held.values(), strict=True)) or ((), ())
        wanted = np.array((tuple(held), *sides), np.float64)
        if not made.tests:
            return Clause(wanted)
        return Clause(wanted, _tests_of(made), self._reads(made), len(self._presences))

    def _reads(self, made: Slot) -> npt.NDArray[np.int32]:
        """The columns that the tests of a slot read, and where an event's vector has them."""
        tested = [column for _, column, _, _ in made.tests]
        # The list of a shape begins with the column of the latitude.
        shapes = [number for kind, _, number, _ in made.tests if kind & ~NEGATED >= IS_NEAR]
        tested += [int(made.lists[int(number)][0]) for number in shapes]
        reads = [(column, column) for column in {*tested} if column < self._nobody]
        for name, place in self._presences.items():
            reads += [(place, column) for column in self._lanes_of_presence(name)]
        return np.array(reads, np.int32).reshape(-1, 2)

    def _constrain(self, made: Slot, column: int, low: float, high: float) -> bool:
        """Add a constraint on more than a column; False if no event can meet it.

        Those on one column are merged: of a plain event one number must meet them all, and all
        others are only bounded.
        """
        if column >= _FIRST_PREFIX:
            attribute, prefix = self._prefixes[column - _FIRST_PREFIX]
            column, codes = self.column(attribute, TEXT), self._codes_with(attribute, prefix)
            if codes is None:
                made.ask()
            elif codes[0] > codes[1]:
                return False
            low, high = codes or ANY
        elif column > self._nobody:
            name = list(self._presences)[column - self._nobody - 1]
            lanes = self._lanes_of_presence(name)
            if len(lanes) > 1:
                made.tests.append((IS_MISSING | NEGATED, column, 0.0, 0.0))
                return True
            column, (low, high) = lanes[0] if lanes else self._nobody, ANY
        if column == self._nobody:
            return False
        made.constrain(column, low, high, is_ordered=True)
        return True

    def _test(self, made: Slot, operation: int, column: int, low: float, high: float) -> None:
        if column < _FIRST_PREFIX:
            made.tests.append((operation, column, low, high))
            return
        attribute, prefix = self._prefixes[column - _FIRST_PREFIX]
        codes = self._codes_with(attribute, prefix)
        if codes is None:
            made.ask()
        else:
            made.tests.append((operation, self.column(attribute, TEXT), *codes))

    def _codes_with(self, attribute: str, prefix: str) -> tuple[float, float] | None:
        return self._part.codes_with(attribute, prefix)

    def _lanes_of_presence(self, attribute: str) -> list[int]:
        lanes = (NUMBER, TIME, TEXT, BOOLEAN, LON, PRESENT)
        columns = [self._part.column_of((attribute, lane)) for lane in lanes]
        return [column for column in columns if column >= 0]


def _tests_of(slot: Slot) -> Tests:
    """The tests of a slot as arrays."""
    starts = list(accumulate(map(len, slot.lists), initial=0))
    lists = slot.lists[0] if len(slot.lists) == 1 else list(chain.from_iterable(slot.lists))
    given = np.array(list(zip(*slot.tests, strict=True)), np.float64)
    return Tests(given, np.array(starts, np.int64), np.array(lists, np.float64))
