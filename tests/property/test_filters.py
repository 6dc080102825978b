"""Filters over a tree say what the oracle says, whatever is added, removed and added again.

So does the index, of events with several values of one kind.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tamis.algorithms.filters import Filters
from tamis.errors import UnknownSubscription
from tamis.index import Index
from tamis.language import TRUE, Filter, evaluate
from tamis.language.tree import (
    Equals,
    InBox,
    InRange,
    Missing,
    Near,
    Not,
    NotEquals,
    Prefix,
    Present,
    Within,
    all_of,
    any_of,
    is_in,
)
from tamis.matching import Attribute
from tamis.model import Subscription
from tamis.values import Point, Polygon, Range
from tests.property import strategies as some

# Each attribute is asked for one kind, as in ads: so events with several texts, booleans or points
# are told by choices. The first two are in the tree.
TREE = [Attribute("mark", is_text=True), Attribute("price", 0, 10)]
NAMES = ["mark", "price", "tags", "note", "used", "place"]

TEXTS = ["", "FORD", "FORDÉ", "e\u0301", "é", "🚗", "5"]
PRICES = [0, -0.0, 5, 5.5, 2**53, 2**53 + 1, float(2**53 + 2), math.inf, -math.inf]
POINTS = [Point(x, y) for x, y in [(0, 0), (9, 4), (4, 4), (3, 5), (10, 1), (180, 0), (200, 95)]]
POLYGON = Polygon([(0, 0), (9, 0), (9, 9), (0, 9)], [[(3, 3), (6, 3), (6, 6), (3, 6)]])
text, price, place = (st.sampled_from(pool) for pool in (TEXTS, PRICES, POINTS))
ranges = st.builds(Range, price, price | st.none(), st.sampled_from(some.ENDS))


def about(name: str, value: st.SearchStrategy[Any]) -> st.SearchStrategy[Filter]:
    """Predicates that compare an attribute with values of one kind."""
    return st.one_of(
        st.builds(Equals, st.just(name), value),
        st.builds(NotEquals, st.just(name), value),
        st.builds(is_in, st.just(name), st.lists(value, min_size=1, max_size=3)),
    )


predicates = st.one_of(
    about("mark", text),
    about("price", price),
    st.builds(InRange, st.just("price"), ranges),
    about("tags", text),
    st.builds(Prefix, st.just("note"), st.sampled_from(["FORD", "\U0001f697 e\u0301", "ééé5"])),
    st.builds(Equals, st.just("used"), st.booleans()),
    about("place", place),
    st.just(Within("place", POLYGON)),
    st.builds(Near, st.just("place"), st.sampled_from(POINTS[:5]), st.sampled_from([0, 5e5, 1e7])),
    st.sampled_from([InBox("place", 0, 0, 4, 4), InBox("place", 170, -1, 5, 9)]),
    st.builds(Present, st.sampled_from(NAMES)),
    st.builds(Missing, st.sampled_from(NAMES)),
)
literals = predicates | st.builds(Not, predicates)
filters = st.one_of(
    literals,
    st.lists(literals, min_size=1, max_size=4).map(all_of),
    st.lists(st.lists(literals, min_size=1, max_size=3).map(all_of), max_size=3).map(any_of),
    st.builds(Not, st.lists(literals, max_size=3).map(any_of)),
)


def held(value: st.SearchStrategy[Any], *others: Any) -> st.SearchStrategy[Any]:
    """One value, several, or something else."""
    return st.one_of(value, value, st.lists(value, max_size=3), st.sampled_from([None, *others]))


events = st.fixed_dictionaries(
    {},
    optional={
        "mark": held(text, 5, True),
        "price": held(price, math.nan, "5", "FORD", Range(4, 6), False),
        "tags": held(text, 5.0),
        "note": held(st.sampled_from(["FORD", "FORDÉ", "🚗 e\u0301!", "ééé5", "FOR"])),
        "used": held(st.booleans(), "true"),
        "place": held(place, "here"),
    },
)


class FiltersMachine(RuleBasedStateMachine):
    """Filters next to a dict of them and the oracle."""

    @initialize(n_names=st.sampled_from([None, 0, 1]))
    def start(self, n_names: int | None) -> None:
        self.filters = Filters(TREE, n_names)
        self.saved: dict[int, Filter] = {}

    @rule(node=filters)
    def add(self, node: Filter) -> None:
        id = self.filters.add(node)
        assert id not in self.saved
        self.saved[id] = node

    @rule(nodes=st.lists(filters, max_size=6))
    def add_many(self, nodes: list[Filter]) -> None:
        self.saved.update(zip(self.filters.add_many(nodes), nodes, strict=True))

    @precondition(lambda self: self.saved)
    @rule(number=st.integers(0, 100))
    def remove(self, number: int) -> None:
        id = sorted(self.saved)[number % len(self.saved)]
        self.filters.remove(id)
        del self.saved[id]
        with pytest.raises(UnknownSubscription):
            self.filters.remove(id)

    @rule()
    def remove_most_and_add_some_again(self) -> None:
        ids = sorted(self.saved)
        for id in ids[1:]:
            self.filters.remove(id)
        again = [self.saved.pop(id) for id in ids[1:]][::2]
        self.add_many(again)

    @rule(event=events)
    def match(self, event: dict[str, Any]) -> None:
        accepting = [id for id in sorted(self.saved) if evaluate(self.saved[id], event)]
        assert self.filters.match(event) == accepting

    @invariant()
    def size(self) -> None:
        assert len(self.filters) == len(self.saved)


TestFiltersMachine = FiltersMachine.TestCase
TestFiltersMachine.settings = settings(max_examples=40, stateful_step_count=20)


@given(st.lists(filters, min_size=5, max_size=20), st.lists(events, min_size=5, max_size=10))
def test_the_index_says_the_same(nodes: list[Filter], batch: list[dict[str, Any]]) -> None:
    made, index = Filters(TREE), Index()
    made.add_many([TRUE, *nodes])
    index.add_many([Subscription(str(id), node) for id, node in enumerate([TRUE, *nodes])])
    for event in batch:
        accepting = [id for id, node in enumerate([TRUE, *nodes]) if evaluate(node, event)]
        assert made.match(event) == accepting
        assert sorted(map(int, index.match(event))) == accepting


@given(
    st.lists(some.filters(), min_size=5, max_size=20),
    st.lists(some.events(), min_size=5, max_size=10),
    st.sampled_from([None, 0, 1]),
)
def test_attributes_of_any_kind(
    nodes: list[Filter], batch: list[dict[str, Any]], n_names: int | None
) -> None:
    names = [Attribute("x"), Attribute("car.mark", is_text=True), Attribute("Ünï code")]
    made = Filters(names, n_names)
    made.add_many(nodes)
    for event in batch:
        assert made.match(event) == [id for id, one in enumerate(nodes) if evaluate(one, event)]
