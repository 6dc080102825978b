"""The normal form: a filter as a disjunction of conjunctions of literals.

A literal is a predicate or its negation. Only simplifications that stay true for every event
are made. Two predicates on one attribute may be satisfied by two different values, so
``x > 5 AND x < 3`` is kept; it goes only where a schema says that x has one value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain, product
from typing import NamedTuple

from tamis.errors import FilterTooComplex
from tamis.language.tree import (
    And,
    Equals,
    Filter,
    InRange,
    Missing,
    Not,
    Or,
    Predicate,
    Present,
    all_of,
    any_of,
)
from tamis.values import Kind, Range
from tamis.values.ranges import Bound

DEFAULT_CAP = 1024
LITERALS_A_CONJUNCTION = 32  # allowed on average; expanding costs by the literal


class Literal(NamedTuple):
    """A predicate, or the negation of one."""

    predicate: Predicate
    negated: bool = False

    def to_filter(self) -> Filter:
        """The literal as a filter."""
        return Not(self.predicate) if self.negated else self.predicate


Conjunction = tuple[Literal, ...]


def normal_form(
    node: Filter,
    *,
    cap: int = DEFAULT_CAP,
    is_single: Callable[[str], bool] = lambda attribute: False,
) -> tuple[Conjunction, ...]:
    """The conjunctions of which at least one must hold; none for a filter that accepts nothing.

    ``is_single`` tells which attributes never have more than one value, nor a Range (one Range
    can meet both ``x > 5`` and ``x < 3``).

    >>> from tamis.language import parse_filter
    >>> for conjunction in normal_form(parse_filter("a = 1 AND NOT (b = 2 AND c IS NULL)")):
    ...     print(to_filter([conjunction]))
    ((col('a') == 1) & ~(col('b') == 2))
    ((col('a') == 1) & col('c').is_not_null())
    >>> normal_form(parse_filter("x > 5 AND x < 3"), is_single=lambda attribute: True)
    ()
    """
    plain = _plain_conjunction(node)
    if plain is not None:
        return (plain,)
    pushed = _push_down(node, negated=False)
    _check_size(_size(pushed), cap)
    simplified = (_simplify(conjunction, is_single) for conjunction in _expand(pushed))
    return _absorb(one for one in simplified if one is not None)


def _plain_conjunction(node: Filter) -> Conjunction | None:
    """The filter, if it is a conjunction already in which nothing can be simplified."""
    parts = node.parts if isinstance(node, And) else (node,)
    for part in parts:
        if not isinstance(part, Predicate):
            return None
    if len({part.attribute for part in parts}) < len(parts):  # type: ignore[attr-defined]
        return None
    return tuple([Literal(part, False) for part in parts])  # type: ignore[arg-type]


def to_filter(conjunctions: Iterable[Conjunction]) -> Filter:
    """A normal form as a filter."""
    return any_of([all_of([literal.to_filter() for literal in one]) for one in conjunctions])


# Negation-free trees: a Literal, or ("and" | "or", parts).
_Pushed = Literal | tuple[str, tuple["_Pushed", ...]]


def _push_down(node: Filter, negated: bool) -> _Pushed:
    """The tree with negation only at its leaves."""
    if isinstance(node, Not):
        return _push_down(node.part, not negated)
    if isinstance(node, And | Or):
        word = "and" if isinstance(node, And) != negated else "or"
        return word, tuple(_push_down(part, negated) for part in node.parts)
    assert isinstance(node, Predicate)
    if negated and isinstance(node, Missing):
        return Literal(Present(node.attribute))
    if negated and isinstance(node, Present):
        return Literal(Missing(node.attribute))
    return Literal(node, negated)


class _Size(NamedTuple):
    """What a tree expands to, before anything is dropped."""

    n_conjunctions: int
    n_literals: int


def _size(node: _Pushed) -> _Size:
    if isinstance(node, Literal):
        return _Size(1, 1)
    word, parts = node
    sizes = [_size(part) for part in parts]
    if word == "or":
        return _Size(sum(one.n_conjunctions for one in sizes), sum(one.n_literals for one in sizes))
    n = math.prod(one.n_conjunctions for one in sizes)
    # Each conjunction of a part is in n / (its conjunctions) of the product.
    return _Size(n, sum(n // one.n_conjunctions * one.n_literals for one in sizes) if n else 0)


def _check_size(size: _Size, cap: int) -> None:
    advice = "split it into several subscriptions or raise the cap"
    if size.n_conjunctions > cap:
        what = "conjunctions in its normal form"
        raise FilterTooComplex(what, size.n_conjunctions, cap, advice)
    most = cap * LITERALS_A_CONJUNCTION
    if size.n_conjunctions > 1 and size.n_literals > most:
        what = "predicates in the conjunctions of its normal form"
        raise FilterTooComplex(what, size.n_literals, most, advice)


def _expand(node: _Pushed) -> list[Conjunction]:
    if isinstance(node, Literal):
        return [(node,)]
    if _size(node).n_conjunctions == 0:  # FALSE somewhere; its neighbours may be too large
        return []
    word, parts = node
    expanded = [_expand(part) for part in parts]
    if word == "or":
        return list(chain.from_iterable(expanded))
    return [tuple(chain.from_iterable(chosen)) for chosen in product(*expanded)]


def _simplify(conjunction: Conjunction, is_single: Callable[[str], bool]) -> Conjunction | None:
    """The same conjunction without what follows from the rest; None if it can never hold."""
    literals = tuple(dict.fromkeys(conjunction))
    positive = {one.predicate for one in literals if not one.negated}
    if any(one.negated and one.predicate in positive for one in literals):
        return None
    missing = {p.attribute for p in positive if isinstance(p, Missing)}
    implied = {p.attribute for p in positive if not isinstance(p, Missing | Present)}
    present = {p.attribute for p in positive if isinstance(p, Present)} | implied
    if missing & present:
        return None
    kept = tuple(one for one in literals if not _follows(one, missing, implied))
    return _merge_single(kept, is_single)


def _follows(literal: Literal, missing: set[str], implied: set[str]) -> bool:
    """Whether a literal follows from the others: negations from IS NULL, presence from a test."""
    attribute = literal.predicate.attribute
    if literal.negated:
        return attribute in missing
    return isinstance(literal.predicate, Present) and attribute in implied


def _merge_single(literals: Conjunction, is_single: Callable[[str], bool]) -> Conjunction | None:
    """Merge the intervals on each single-valued attribute into one."""
    merged: dict[tuple[str, bool], Range] = {}
    rest: list[Literal] = []
    points: dict[str, Equals] = {}
    for one in literals:
        predicate = one.predicate
        if one.negated or not is_single(predicate.attribute):
            rest.append(one)
        elif isinstance(predicate, InRange):
            key = (predicate.attribute, predicate.range.is_of_timestamps)
            merged[key] = _intersection(merged.get(key, Range()), predicate.range)
            if merged[key].is_empty:
                return None
        elif isinstance(predicate, Equals) and predicate.kind in (Kind.NUMBER, Kind.TEXT):
            known = points.setdefault(predicate.attribute, predicate)
            if known is predicate:
                rest.append(one)
            elif known.kind == predicate.kind and known != predicate:
                return None
            elif known != predicate:
                rest.append(one)
        else:
            rest.append(one)
    ranges = [Literal(InRange(attribute, r)) for (attribute, _), r in merged.items()]
    return (*rest, *ranges)


def _intersection(a: Range, b: Range) -> Range:
    low, low_open = _tighter(a.low, a.low_open, b.low, b.low_open, max)
    high, high_open = _tighter(a.high, a.high_open, b.high, b.high_open, min)
    return Range(low, high, ("(" if low_open else "[") + (")" if high_open else "]"))


def _tighter(
    a: Bound | None, a_open: bool, b: Bound | None, b_open: bool, pick: Callable[..., Bound]
) -> tuple[Bound | None, bool]:
    if a is None or b is None:
        return (b, b_open) if a is None else (a, a_open)
    if a == b:
        return a, a_open or b_open
    tighter = pick(a, b)
    return tighter, a_open if tighter is a else b_open


def _absorb(conjunctions: Iterable[Conjunction]) -> tuple[Conjunction, ...]:
    """Drop every conjunction that asks all that another one asks, and more."""
    by_length = sorted(
        {frozenset(one): one for one in conjunctions}.items(), key=lambda i: len(i[0])
    )
    kept: list[tuple[frozenset[Literal], Conjunction]] = []
    for literals, conjunction in by_length:
        if not any(smaller <= literals for smaller, _ in kept):
            kept.append((literals, conjunction))
    return tuple(conjunction for _, conjunction in kept)
