"""The filter tree: conjunctions as paths that are merged where they begin alike.

The paper's words and ours:

    term, term name              constraint, attribute
    Fixed, Range                 a point, an interval
    AndFilter                    subscription; its path
    node.value, node.filters     the constraint of a node, the entries that hang at it
    order on the term names      the most frequent attribute first
    candidates tree              a tree over ``n_names`` attributes
    final revision               the rest of a path, compared one by one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tamis.algorithms.kernels.filter_tree import (
    Groups,
    Nodes,
    Paths,
    Tree,
    count_nodes,
    descend,
    fill_paths,
    plant,
    sort_paths,
)
from tamis.kernels.constraints import Stored
from tamis.matching import Attribute, Capabilities, Matcher
from tamis.matching.parameters import check_count
from tamis.matching.store import Array, Slots, grown
from tamis.matching.table import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """A tree, and which of its entries are gone."""

    tree: Tree
    gone: Array  # u1[E]
    n_gone: int
    number: int  # tells trees apart

    @property
    def n_held(self) -> int:
        """How many subscriptions are there."""
        return len(self.gone) - self.n_gone

    @property
    def slots(self) -> Slots:
        """The slots that are not gone, in the order of their paths."""
        held: Slots = self.tree.slot[self.gone == 0]
        return held

    def without(self, places: Array) -> Self:
        """The same tree with some entries gone; this one stays as it is."""
        gone = self.gone.copy()
        gone[places] = 1
        return type(self)(self.tree, gone, self.n_gone + len(places), self.number)

    @property
    def n_bytes(self) -> int:
        """The size of its arrays."""
        slot, paths, rest, nodes, groups = self.tree
        arrays = (slot, *paths, rest, *nodes, *groups, self.gone)
        return sum(array.nbytes for array in arrays)


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """What a filter tree was at one moment: immutable, so descents need no lock.

    >>> tree = FilterTree(["x"])
    >>> _ = tree.add({"x": 0.5})
    >>> before = tree.forest
    >>> tree.remove(0)
    >>> before.match(np.array([0.5])).tolist(), tree.forest.match(np.array([0.5])).tolist()
    ([0], [])
    """

    trees: tuple[Planted, ...] = ()

    def match(self, event: Floats) -> Slots:
        """The slots that accepted an event (f8[M], NaN = missing) at that moment, ascending."""
        out = np.empty(sum(one.n_held for one in self.trees), np.int32)
        return out[: self.write(event, out)]

    def write(self, event: Floats, out: Slots) -> int:
        """Write these slots to the front of ``out``; return how many."""
        n_out = 0
        for one in self.trees:
            n_out = int(descend(one.tree, one.gone, event, out, n_out))
        out[:n_out].sort()
        return n_out


class FilterTree(Matcher):
    """The filter tree (Schitinin, Tsesko: Streaming matching of events, CEE-SECR 2016), seed 4.

    Subscriptions are paths of constraints, the most frequent attribute first, merged into a
    tree; an event descends it (Algorithm 1). ``n_names`` builds the candidates tree of the two
    phases (section 2.6): only so many attributes, the most frequent ones, take part, and what
    the descent finds is compared with the rest of its constraints; without it all take part.
    Arbitrary filters go through ``tamis.algorithms.filters``.

    Departs from the paper: a path that one subscription has to itself is not drawn out in
    nodes; siblings are sorted, so that equal values are found by a search, and ranges that
    begin beyond the value are not looked at; a subscription that constrains an attribute from
    both sides has one constraint there. Nothing changes once built, as in the paper: ``forest``
    is replaced as a whole. What is added becomes a tree of its own, and trees of about one size
    are built together again; what is removed is marked in a copy of one byte an entry.

    >>> from tamis.values import Range
    >>> tree = FilterTree([Attribute("mark", is_text=True), Attribute("year", 1950, 2050)])
    >>> tree.add({"mark": "FORD", "year": Range(2014, 2016)}), tree.add({"mark": "FORD"})
    (0, 1)
    >>> tree.match({"mark": "FORD", "year": 2017}).tolist()
    [1]
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, attributes: Sequence[Attribute | str], n_names: int | None = None) -> None:
        super().__init__(attributes)
        self.n_names = self.n_attributes
        if n_names is not None:
            self.n_names = min(self.n_names, check_count("n_names", n_names, least=0))
        self.forest = Forest()
        self._n_built = 0
        # Writers only: where a slot is.
        self._number_of = np.zeros(0, np.int32)
        self._place_of = np.zeros(0, np.int32)

    def _add(self, slots: Slots) -> None:
        self._number_of = grown(self._number_of, self.n_slots)
        self._place_of = grown(self._place_of, self.n_slots)
        kept = list(self.forest.trees)
        while kept and kept[-1].n_held <= len(slots):
            slots = np.concatenate([kept.pop().slots, slots])
        self.forest = Forest((*kept, self._build(slots)))

    def _remove(self, slots: Slots) -> None:
        kept = []
        for one in self.forest.trees:
            mine = slots[self._number_of[slots] == one.number]
            left = one.without(self._place_of[mine]) if len(mine) else one
            if 0 < left.n_held < left.n_gone:
                left = self._build(left.slots)
            if left.n_held:
                kept.append(left)
        self.forest = Forest(tuple(kept))

    def _match(self, event: Floats, out: Slots) -> int:
        return self.forest.write(event, out)

    def _memory_bytes(self) -> int:
        held = self._number_of.nbytes + self._place_of.nbytes
        return held + sum(one.n_bytes for one in self.forest.trees)

    def _build(self, slots: Slots) -> Planted:
        tree = build_tree(self.stored, slots, self.n_attributes, self.n_names)
        self._n_built += 1
        self._number_of[slots] = self._n_built
        self._place_of[tree.slot] = np.arange(len(slots), dtype=np.int32)
        return Planted(tree, np.zeros(len(slots), np.uint8), 0, self._n_built)


def build_tree(stored: Stored, slots: Slots, n_attributes: int, n_names: int) -> Tree:
    """The tree of some slots, its names ordered by how many of them ask for each."""
    paths = _paths_of(stored, slots, n_attributes, n_names)
    order, other = np.empty(len(slots), np.int32), np.empty(len(slots), np.int32)
    sort_paths(paths, order, other)
    slots = slots[order]
    paths = _paths_of(stored, slots, n_attributes, n_names)  # side by side as they are visited
    n_alike = np.empty(len(slots) + 1, np.int32)
    size = int(count_nodes(paths, n_alike))
    nodes = Nodes(np.zeros(size), np.zeros(size), *(np.zeros(size, np.int32) for _ in range(4)))
    groups = Groups(
        np.zeros(size, np.int32), np.zeros(size, np.uint8),
        np.zeros(size, np.int32), np.zeros(size, np.int32),
    )  # fmt: skip
    rest = np.empty(len(slots), np.int64)
    n_nodes, n_groups = plant(paths, n_alike, nodes, groups, rest)
    return Tree(
        slots,
        paths,
        rest,
        Nodes(*(array[:n_nodes].copy() for array in nodes)),
        Groups(*(array[:n_groups].copy() for array in groups)),
    )


def _paths_of(stored: Stored, slots: Slots, n_attributes: int, n_names: int) -> Paths:
    n_constraints = (stored.end[slots] - stored.start[slots]).astype(np.int64)
    start = np.zeros(len(slots) + 1, np.int64)
    np.cumsum(n_constraints, out=start[1:])
    size = int(start[-1])
    asked = np.repeat(stored.start[slots] - start[:-1], n_constraints) + np.arange(size)
    frequency = np.bincount(stored.attribute[asked], minlength=n_attributes)
    rank_of = np.empty(n_attributes, np.int32)
    rank_of[np.argsort(-frequency, kind="stable")] = np.arange(n_attributes, dtype=np.int32)
    paths = Paths(
        start, np.zeros(len(slots), np.int32), np.zeros(size, np.int32), np.zeros(size, np.uint8),
        np.zeros(size, np.int32), np.zeros(size), np.zeros(size),
    )  # fmt: skip
    fill_paths(stored, slots, rank_of, n_names, paths)
    return paths
