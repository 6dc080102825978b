"""Filters: arbitrary filters over a filter tree, by their normal form (seed 4, sections 2.4-2.6).

Each conjunction of a filter's normal form is a slot, as in the index (``tamis.slots``). What it
asks of the attributes of the tree is a path there; what a path cannot hold (polygons, distances,
negations, ...) is left out of it and revised: a kernel puts the slots that the tree found to
their tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from tamis.algorithms.filter_tree import FilterTree
from tamis.algorithms.kernels.filters import Owners, revise
from tamis.errors import UnknownSubscription
from tamis.kernels.tests import IN_RANGE
from tamis.language import Filter, normal_form
from tamis.language.evaluate import accepts
from tamis.language.tree import And, Equals, In, Not, Or
from tamis.matching import Attribute, Table
from tamis.matching.attributes import check_attributes
from tamis.matching.store import Slots, grown
from tamis.matching.table import Floats
from tamis.slots.columns import Columns
from tamis.slots.encoding import Encoded
from tamis.slots.growing_tests import GrowingTests
from tamis.slots.lanes import NUMBER, TEXT
from tamis.slots.slots import Slot, slot_of
from tamis.values import HasAttributes, attributes_of


class Filters:
    """Which of many filters accept an event: candidates from a tree, then a revision.

    ``attributes`` are those that may take part in the tree, ``n_names`` how many of them do.

    Both phases are kernels. Python asks a filter itself only where tests cannot tell: of a point
    on the border of a polygon or circle; of integers that float64 does not hold, lists of several
    kinds, points that are denied and boxes that are; and of an event that has several points, or
    several values in an attribute that filters ask for numbers or for more than one kind. It asks
    every filter about an event with a value that no path can take: several numbers, a Range or an
    integer that float64 does not hold, in a number attribute of the tree.

    >>> from tamis.language import parse_filter
    >>> filters = Filters([Attribute("mark", is_text=True), Attribute("year", 1950, 2050)])
    >>> filters.add(parse_filter("mark IN ('FORD', 'OPEL') AND NOT year < 2014"))
    0
    >>> filters.match({"mark": "OPEL", "year": 2016}), filters.match({"mark": "OPEL", "year": 2001})
    ([0], [])
    """

    def __init__(self, attributes: Sequence[Attribute | str], n_names: int | None = None) -> None:
        given = check_attributes(attributes)
        # The first columns are those of the tree, to which the codes of texts are numbers too.
        self.tree = FilterTree([replace(one, is_text=False) for one in given], n_names)
        self._names = {one.name for one in given}
        self._columns = Columns()
        for one in given:
            self._columns.column(one.name, TEXT if one.is_text else NUMBER)
        self._filters: dict[int, Filter] = {}
        self._slots: dict[int, list[int]] = {}
        self._n_added = 0
        self._owners = Owners(np.zeros(0, np.int64), np.zeros(0, np.int32))
        self._tests = GrowingTests(1024)
        self._n_gone = 0  # of the slots with tests

    def __len__(self) -> int:
        return len(self._filters)

    def memory_bytes(self) -> int:
        """The size of all arrays."""
        arrays = (*self._owners, *self._tests.tests)
        return self.tree.memory_bytes() + sum(array.nbytes for array in arrays)

    def add(self, node: Filter) -> int:
        """Save a filter; return its id."""
        return self.add_many([node])[0]

    def add_many(self, nodes: Iterable[Filter]) -> list[int]:
        """Save many filters, all or none; return their ids."""
        given = list(nodes)
        made = [self._slots_of(node) for node in given]
        ids = list(range(self._n_added, self._n_added + len(given)))
        flat = [slot for some in made for slot in some]
        numbers = self.tree.add_many(self._table(flat))
        n_slots = int(numbers.max(initial=-1)) + 1
        self._owners = Owners(*(grown(array, n_slots) for array in self._owners))
        self._owners.filter[numbers] = [
            id for id, some in zip(ids, made, strict=True) for _ in some
        ]
        self._enter(numbers, flat)
        self._n_added += len(given)
        self._filters.update(zip(ids, given, strict=True))
        left = iter(numbers.tolist())
        self._slots.update(
            (id, list(islice(left, len(some)))) for id, some in zip(ids, made, strict=True)
        )
        return ids

    def remove(self, id: int) -> None:
        """Forget a filter."""
        if id not in self._filters:
            raise UnknownSubscription(f"no filter has the id {id}")
        del self._filters[id]
        slots = self._slots.pop(id)
        self.tree.remove_many(slots)
        self._n_gone += int((self._owners.entry[slots] >= 0).sum())
        if 2 * self._n_gone > len(self._tests):
            self._pack()

    def match(self, event: HasAttributes | Mapping[str, Any]) -> list[int]:
        """The ids of the filters that accept an event, ascending."""
        simple = self._columns.encode_simply(event) if type(event) is dict else None
        if simple is not None and simple.is_plain:
            slots = self.tree.match(simple.vector[: self.tree.n_attributes])
            return self._revise(slots, simple.vector[np.newaxis], True, event)
        encoded = simple or self._columns.encode(attributes_of(event))
        rows = self._rows(encoded)
        if not rows:
            attributes = attributes_of(event)
            return [id for id, node in self._filters.items() if accepts(node, attributes)]
        slots = self.tree.match(rows[0])
        if len(rows) > 1:
            slots = np.unique(np.concatenate([slots, *map(self.tree.match, rows[1:])]))
        choices = np.array(encoded.choices or (encoded.vector,))
        return self._revise(slots, choices, encoded.decides, event)

    def row_of(self, event: HasAttributes | Mapping[str, Any]) -> Floats | None:
        """An event as the tree takes it; None if that is not one row."""
        rows = self._rows(self._columns.encode(attributes_of(event)))
        return rows[0] if len(rows) == 1 else None

    # -- filters into paths and tests

    def _slots_of(self, node: Filter) -> list[Slot]:
        """The slots of a filter; what the tree does not take of their constraints are tests."""
        made = []
        for conjunction in normal_form(self._spread(node)):
            slot = slot_of(conjunction, self._columns)
            if slot is not None:
                slot.tests[:0] = [
                    (IN_RANGE, column, low, high)
                    for column, (low, high) in slot.constraints.items()
                    if column >= self.tree.n_attributes
                ]
                made.append(slot)
        return made

    def _spread(self, node: Filter) -> Filter:
        """The filter with IN as a disjunction where it may take part in the tree."""
        if isinstance(node, And | Or):
            return type(node)(tuple(self._spread(part) for part in node.parts))
        if isinstance(node, Not):
            return Not(self._spread(node.part))
        if isinstance(node, In) and node.attribute in self._names:
            return Or(tuple(Equals(node.attribute, value) for value in node.values))
        return node

    def _table(self, made: Sequence[Slot]) -> Table:
        """What slots ask of the attributes of the tree."""
        start, names, bounds = [0], [], []
        for slot in made:
            for column in sorted(slot.constraints):
                if column < self.tree.n_attributes:
                    names.append(column)
                    bounds.append(slot.constraints[column])
            start.append(len(names))
        low, high = np.array(bounds, np.float64).reshape(-1, 2).T
        n_attributes = self.tree.n_attributes
        return Table.from_constraints(
            start, np.array(names, np.int64), low, high, n_attributes=n_attributes
        )

    def _enter(self, numbers: Slots | list[int], made: Sequence[Slot]) -> None:
        """Keep the tests of slots, which the tree has under these numbers."""
        entries = []
        for slot in made:
            entries.append(len(self._tests) if slot.tests else -1)
            if slot.tests:
                self._tests.append(slot)
        self._owners.entry[numbers] = entries

    def _pack(self) -> None:
        """Leave behind the tests of slots that are gone."""
        self._tests, self._n_gone = GrowingTests(1024), 0
        for id, node in self._filters.items():
            self._enter(self._slots[id], self._slots_of(node))

    # -- events into rows, slots into filters

    def _rows(self, encoded: Encoded) -> list[Floats]:
        """An event as rows of the tree, one of which a path must take; none if it would be wrong.

        Of several values each choice is a row; those of attributes outside the tree are not told
        apart here.
        """
        n_columns = self.tree.n_attributes
        if encoded.choices:
            rows = [choice[:n_columns] for choice in encoded.choices]
            return list({row.tobytes(): row for row in rows}.values())
        row, high = encoded.vector[:n_columns], encoded.hull_high
        if high is None or np.array_equal(row, high[:n_columns], equal_nan=True):
            return [row]
        return []

    def _revise(
        self,
        slots: Slots,
        choices: Floats,
        decides: bool,
        event: HasAttributes | Mapping[str, Any],
    ) -> list[int]:
        """The filters among those whose paths were found that accept an event, ascending."""
        accepted, asked = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64)
        n_accepted, n_asked = revise(
            slots, self._owners, self._tests.tests, choices, decides, accepted, asked
        )
        found: list[int] = accepted[:n_accepted].tolist()
        if n_asked:
            attributes = attributes_of(event)
            unsure = asked[:n_asked].tolist()
            found += [id for id in unsure if accepts(self._filters[id], attributes)]
            found.sort()
        return found
