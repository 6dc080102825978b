"""Candidates: which conjunctions could hold for an event, by the one place each is kept at."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.language import Conjunction
from tamis.language.tree import Equals, In, Missing, Predicate
from tamis.values import Attributes, Kind

# ("value", attribute, text) for equality on text, ("attribute", name) for any other positive
# predicate, ("always",) for a conjunction without one.
Home = tuple[str, ...]


def homes_of(conjunction: Conjunction) -> tuple[Home, ...]:
    """The places a conjunction is kept at: it can hold only for events that visit one of them.

    A predicate that needs a value makes a home, equality on text the narrowest one.
    """
    positive = [
        literal.predicate
        for literal in conjunction
        if not literal.negated and not isinstance(literal.predicate, Missing)
    ]
    if not positive:
        return (("always",),)
    for predicate in positive:
        texts = _texts_of(predicate)
        if texts:
            return tuple(("value", predicate.attribute, text) for text in texts)
    return (("attribute", positive[0].attribute),)


def _texts_of(predicate: Predicate) -> tuple[str, ...]:
    if isinstance(predicate, Equals) and predicate.kind is Kind.TEXT:
        return (str(predicate.value),)
    if isinstance(predicate, In) and set(predicate.kinds) == {Kind.TEXT}:
        return tuple(map(str, predicate.values))
    return ()


class Homes:
    """The items kept at each home."""

    def __init__(self) -> None:
        self._items: dict[Home, dict[int, object]] = {}

    def put(self, home: Home, key: int, item: object) -> None:
        """Keep an item at a home."""
        self._items.setdefault(home, {})[key] = item

    def drop(self, home: Home, key: int) -> None:
        """Stop keeping it there."""
        items = self._items[home]
        del items[key]
        if not items:
            del self._items[home]

    def visited_by(self, attributes: Attributes) -> Iterator[object]:
        """Every item an event could satisfy; one kept at several homes may come more than once."""
        yield from self._items.get(("always",), {}).values()
        for name, values in attributes.items():
            yield from self._items.get(("attribute", name), {}).values()
            for value in values:
                if isinstance(value, str):
                    yield from self._items.get(("value", name, value), {}).values()

    @property
    def n_always(self) -> int:
        """How many items every event visits."""
        return len(self._items.get(("always",), {}))
