"""Filters: arbitrary filters over a filter tree, by their normal form (seed 4, sections 2.4-2.6).

Each conjunction of a filter's normal form is a path of the tree. What a path cannot hold
(polygons, distances, negations, booleans, ...) is left out of it and revised: the filter is
asked for every event that came so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.algorithms.filter_tree import FilterTree
from tamis.errors import UnknownSubscription
from tamis.language import Conjunction, Filter, Literal, normal_form
from tamis.language.evaluate import accepts
from tamis.language.tree import And, Equals, In, InRange, Not, NotEquals, Or, Present
from tamis.matching import Attribute, Table
from tamis.matching.store import grown
from tamis.matching.table import Floats
from tamis.values import Attributes, HasAttributes, Value, attributes_of

_EXACT = 2**53


class Interval(NamedTuple):
    """A constraint as a table takes it."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False
    negated: bool = False


class Filters:
    """Which of many filters accept an event: candidates from a tree, then a revision.

    ``attributes`` are those that may take part in the tree, ``n_names`` how many of them do.

    >>> from tamis.language import parse_filter
    >>> filters = Filters([Attribute("mark", is_text=True), Attribute("year", 1950, 2050)])
    >>> filters.add(parse_filter("mark IN ('FORD', 'OPEL') AND NOT year < 2014"))
    0
    >>> filters.match({"mark": "OPEL", "year": 2016}), filters.match({"mark": "OPEL", "year": 2001})
    ([0], [])
    """

    def __init__(self, attributes: Sequence[Attribute | str], n_names: int | None = None) -> None:
        self.tree = FilterTree(attributes, n_names)
        self._numbers = {one.name: m for m, one in enumerate(self.tree.attributes)}
        self._filters: dict[int, Filter] = {}
        self._slots: dict[int, list[int]] = {}
        self._n_added = 0
        self._filter_of = np.zeros(0, np.int64)  # by slot
        self._is_whole = np.zeros(0, np.bool_)  # by slot: its path says all that it asks

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, node: Filter) -> int:
        """Save a filter; return its id."""
        return self.add_many([node])[0]

    def add_many(self, nodes: Iterable[Filter]) -> list[int]:
        """Save many filters, all or none; return their ids."""
        given = list(nodes)
        forms = [normal_form(self._spread(node), is_single=self._is_single) for node in given]
        ids = list(range(self._n_added, self._n_added + len(given)))
        owners = np.repeat(np.array(ids, np.int64), [len(form) for form in forms])
        table, is_whole = self._table([one for form in forms for one in form])
        slots = self.tree.add_many(table)
        n_slots = int(slots.max(initial=-1)) + 1
        self._filter_of = grown(self._filter_of, n_slots)
        self._is_whole = grown(self._is_whole, n_slots)
        self._filter_of[slots], self._is_whole[slots] = owners, is_whole
        self._n_added += len(given)
        self._filters.update(zip(ids, given, strict=True))
        for id, slot in zip(owners.tolist(), slots.tolist(), strict=True):
            self._slots.setdefault(id, []).append(slot)
        return ids

    def remove(self, id: int) -> None:
        """Forget a filter."""
        if id not in self._filters:
            raise UnknownSubscription(f"no filter has the id {id}")
        del self._filters[id]
        self.tree.remove_many(self._slots.pop(id, []))

    def match(self, event: HasAttributes | Mapping[str, Any]) -> list[int]:
        """The ids of the filters that accept an event, ascending."""
        attributes = attributes_of(event)
        row = self._row(attributes)
        if row is None:
            return [id for id, node in self._filters.items() if accepts(node, attributes)]
        slots = self.tree.match(row)
        is_whole = self._is_whole[slots]
        sure = np.unique(self._filter_of[slots[is_whole]])
        unsure = np.setdiff1d(self._filter_of[slots[~is_whole]], sure)
        revised = [id for id in unsure.tolist() if accepts(self._filters[id], attributes)]
        return sorted([*sure.tolist(), *revised])

    def row_of(self, event: HasAttributes | Mapping[str, Any]) -> Floats | None:
        """An event as the tree takes it; None if a path could be wrong about one of its values."""
        return self._row(attributes_of(event))

    # -- filters into paths

    def _is_single(self, name: str) -> bool:
        return name in self._numbers  # events with several values there do not use the tree

    def _spread(self, node: Filter) -> Filter:
        """The filter with IN as a disjunction where it may take part in the tree."""
        if isinstance(node, And | Or):
            return type(node)(tuple(self._spread(part) for part in node.parts))
        if isinstance(node, Not):
            return Not(self._spread(node.part))
        if isinstance(node, In) and node.attribute in self._numbers:
            return Or(tuple(Equals(node.attribute, value) for value in node.values))
        return node

    def _table(self, conjunctions: Sequence[Conjunction]) -> tuple[Table, npt.NDArray[np.bool_]]:
        start, names, intervals, is_whole = [0], [], [], []
        for conjunction in conjunctions:
            held: dict[int, Interval] = {}
            for literal in conjunction:
                m = self._numbers.get(literal.predicate.attribute, -1)
                interval = self._interval(m, literal) if m >= 0 and m not in held else None
                if interval is not None:
                    held[m] = interval
            is_whole.append(len(held) == len(conjunction))
            for m in sorted(held):
                names.append(m)
                intervals.append(held[m])
            start.append(len(names))
        columns = np.array(intervals, np.float64).reshape(-1, len(Interval._fields)).T
        table = Table.from_constraints(
            start,
            np.array(names, np.int64),
            columns[0],
            columns[1],
            low_open=columns[2].astype(bool),
            high_open=columns[3].astype(bool),
            negated=columns[4].astype(np.uint8),
            n_attributes=len(self._numbers),
        )
        return table, np.array(is_whole, np.bool_)

    def _interval(self, m: int, literal: Literal) -> Interval | None:
        """A literal as a constraint on attribute m; None if it cannot be one."""
        predicate, attribute = literal.predicate, self.tree.attributes[m]
        if literal.negated:
            return None
        if isinstance(predicate, Equals | NotEquals):
            point = self._code(attribute, predicate.value)
            if point is None:
                return None
            return Interval(point, point, negated=isinstance(predicate, NotEquals))
        if attribute.is_text:
            return None
        if isinstance(predicate, Present):
            return Interval(-np.inf, np.inf)
        if isinstance(predicate, InRange):
            wanted = predicate.range
            low, high = _number(wanted.low, -np.inf), _number(wanted.high, np.inf)
            if low is not None and high is not None:
                return Interval(low, high, wanted.low_open, wanted.high_open)
        return None

    def _code(self, attribute: Attribute, value: Value) -> float | None:
        if attribute.is_text:
            return self.tree.texts[attribute.name].add(value) if isinstance(value, str) else None
        return None if value is None else _number(value, np.nan)

    # -- events into rows

    def _row(self, attributes: Attributes) -> Floats | None:
        """An event as a row; None if a path could be wrong about one of its values."""
        row = np.full(len(self._numbers), np.nan)
        for name, m in self._numbers.items():
            values = attributes.get(name, ())
            if not values:
                continue
            held, is_text = values[0], self.tree.attributes[m].is_text
            if len(values) > 1 or is_text != isinstance(held, str):
                return None
            number = (
                self.tree.texts[name].code_of(held) if isinstance(held, str) else _number(held, 0.0)
            )
            if number is None:
                return None
            row[m] = number
        return row


def _number(value: object, absent: float) -> float | None:
    """A number that float64 holds exactly; ``absent`` for None; None for anything else."""
    if value is None:
        return absent
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, int) and abs(value) > _EXACT):
        return None
    return float(value)  # type: ignore[arg-type]
