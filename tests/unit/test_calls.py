"""Predicates that are spelt as a call: a class and two lines are a whole predicate."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tamis import Event, Index, Subscription
from tamis.errors import FilterError, FilterSyntaxError, SchemaViolation
from tamis.events import EventStore
from tamis.index import revision
from tamis.language import calls, col, evaluate, explain, parse_filter
from tamis.language.json import from_json, to_json
from tamis.language.query import parse_query
from tamis.language.sql_writer import to_sql
from tamis.language.tree import Not
from tamis.model import Schema
from tamis.values import Kind


@pytest.fixture
def longer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``longer_than``, as somebody would add it: its class, its meaning, how the index decides."""

    @dataclass(frozen=True, slots=True, repr=False)
    class LongerThan(calls.Call):
        """Some text has more letters than that."""

        word: ClassVar[str] = "longer_than"
        kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.TEXT})
        attribute: str
        letters: int

        def check(self) -> None:
            if isinstance(self.letters, bool) or not isinstance(self.letters, int):
                raise FilterError(f"{self.letters!r} is not a number of letters")

    monkeypatch.setitem(
        sys.modules["tamis.language.evaluate"]._TESTS,
        LongerThan,
        lambda node, held: isinstance(held, str) and len(held) > node.letters,
    )
    monkeypatch.setitem(
        revision._VALUE_CHECKS,
        LongerThan,
        lambda node: lambda held: type(held) is str and held[node.letters :] != "",
    )
    yield LongerThan
    del calls.CALLS["longer_than"]


def test_every_spelling_reads_and_writes_it(longer: Any) -> None:
    node = longer("title", 3)
    assert parse_filter("longer_than(title, 3)") == node
    assert from_json({"attribute": "title", "op": "longer_than", "letters": 3}) == node
    assert col("title").longer_than(3) == node
    assert parse_query("where=longer_than(title, 3)") == node
    assert parse_filter(to_sql(node)) == from_json(to_json(node)) == node
    assert repr(Not(node)) == "~col('title').longer_than(3)"
    assert {node, longer("title", 3)} == {node}


def test_index_store_and_oracle_agree(longer: Any) -> None:
    index, store = Index(), EventStore()
    index.add(Subscription("long", "longer_than(title, 3)"))
    index.add(Subscription("short", "NOT longer_than(title, 3) AND kind = 'flat'"))
    events = [
        {"title": "four"},
        {"title": "two"},
        {"title": ["two", "seven"], "kind": "flat"},
        {"title": 12345, "kind": "flat"},
        {"kind": "flat"},
        {},
    ]
    found = [index.match(event) for event in events]
    assert found == [["long"], [], ["long"], ["short"], ["short"], []]
    assert list(index.match_batch(events * 3)) == found * 3
    for number, event in enumerate(events):
        store.insert(Event(str(number), event))
        for subscription in (index["long"], index["short"]):
            is_found = subscription.id in found[number]
            assert evaluate(subscription.condition, event) is is_found
            assert explain(subscription.condition, event).held is is_found
    assert sorted(store.match(index["long"])) == ["0", "2"]


def test_bad_operands_are_refused(longer: Any) -> None:
    with pytest.raises(FilterSyntaxError, match="longer_than takes letters behind the attribute"):
        parse_filter("longer_than(title)")
    with pytest.raises(FilterSyntaxError, match="needs the attribute"):
        parse_filter("longer_than()")
    with pytest.raises(FilterSyntaxError, match="'x' is not a number of letters"):
        parse_filter("longer_than(title, 'x')")
    with pytest.raises(FilterSyntaxError, match="the key 'letters' is missing"):
        from_json({"attribute": "title", "op": "longer_than"})
    with pytest.raises(SchemaViolation, match="is number, the predicate is for text"):
        Index(Schema({"title": "number"})).add(Subscription("s", "longer_than(title, 3)"))


def test_words_that_are_none_are_refused() -> None:
    with pytest.raises(AttributeError, match="'longer_than'"):
        col("title").longer_than(3)
    with pytest.raises(FilterSyntaxError, match="unknown function 'longer_than'"):
        parse_filter("longer_than(title, 3)")
    with pytest.raises(FilterSyntaxError, match="is not one of"):
        from_json({"attribute": "title", "op": "longer_than", "letters": 3})
