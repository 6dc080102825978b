"""Errors: they travel between processes, and stay short whatever was given."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import tamis.errors
from scripts import error_page
from tamis import Event, Index, Polygon, Subscription
from tamis.errors import FilterSyntaxError, FilterTooComplex, TamisError, quoted
from tamis.language import from_json, parse_filter, parse_query, parse_sql

LONG = "a" * 90_000


def nested(make: Callable[[Any], Any], depth: int = 10_000) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = make(made)
    return made


@pytest.mark.parametrize("name", tamis.errors.__all__)
def test_every_error_can_be_pickled(name: str) -> None:
    kind = getattr(tamis.errors, name)
    made = {
        FilterTooComplex: lambda: FilterTooComplex("levels", 101, 100, "flatten it"),
        FilterSyntaxError: lambda: FilterSyntaxError("odd", text="a\nb", offset=2),
    }.get(kind, lambda: kind("what is wrong"))()
    made.add_note("a note")
    back = pickle.loads(pickle.dumps(made))
    assert (type(back), str(back), vars(back)) == (kind, str(made), vars(made))


@pytest.mark.parametrize("name", tamis.errors.__all__)
def test_a_docstring_says_when_it_is_raised_and_what_to_do(name: str) -> None:
    _, *told = inspect.getdoc(getattr(tamis.errors, name)).split("\n\n")
    assert [one.split()[0] for one in told[-2:]] == ["Raised", "What"]
    assert told[-1].startswith("What to do: ")


def test_the_catalogue_is_what_the_code_says() -> None:
    assert error_page.PAGE.read_text() == error_page.page(), "make docs writes it anew"


def test_the_catalogue_has_every_error_and_an_example_of_it() -> None:
    assert {kind.__name__ for kind in error_page._kinds()} | {"TamisError"} == set(
        tamis.errors.__all__
    )
    assert {*error_page.EXAMPLES, *error_page.ABSTRACT} == set(tamis.errors.__all__)


def predicate(**keys: Any) -> dict[str, Any]:
    return {"attribute": "x", **keys}


@pytest.mark.parametrize(
    "make",
    [
        lambda: from_json(predicate(op="box", box=LONG)),
        lambda: from_json(predicate(op=LONG)),
        lambda: from_json(predicate(op="=", value={"$timestamp": LONG})),
        lambda: from_json(predicate(op="=", value={"$number": LONG})),
        lambda: from_json(predicate(op="<", value=LONG)),
        lambda: from_json(predicate(op="within", polygon=LONG)),
        lambda: from_json(predicate(op="in", values=LONG)),
        lambda: from_json(predicate(op="=", value=1, **{LONG: 2})),
        lambda: from_json([LONG]),
        lambda: parse_filter("x", spelling=LONG),
        lambda: parse_sql(f"x = TIMESTAMP '{LONG}'"),
        lambda: parse_sql(f"x = DATE '{LONG}'"),
        lambda: parse_sql(f"x LIKE '%{LONG}'"),
        lambda: parse_sql(f"{LONG}(x)"),
        lambda: parse_sql(f"x {LONG}"),
        lambda: parse_sql(f"x = {LONG}"),
        lambda: parse_sql(f"x = '{LONG}' y"),
        lambda: parse_sql(f"within(x, 'POLYGON (({LONG}))')"),
        lambda: parse_query(f"a_from={LONG}"),
        lambda: parse_query(f"a_null={LONG}"),
        lambda: parse_query(f"a_box={LONG}"),
        lambda: parse_query(f"{LONG}_null=2"),
        lambda: Subscription("s", True, priority=LONG),  # type: ignore[arg-type]
        lambda: Subscription(LONG, True, priority=99),
        lambda: Subscription.from_json({"id": "s", "filter": True, LONG: 1}),
        lambda: Event("e", {"x": {"$timestamp": LONG}}),
        lambda: Event("e", {LONG: object()}),
        lambda: Event(LONG, {"x": object()}),
        lambda: Event("e", {}, location=LONG),  # type: ignore[arg-type]
        lambda: Event("e", {"x": 10**5000}),
        lambda: Event.from_json({"id": "e", "attributes": {}, "time": LONG}),
        lambda: Index(schema={"a": LONG}),
        lambda: Index(schema={"a": "text"}).add(Subscription("s", f"a = 1 OR a = '{LONG}'")),
        lambda: Index().remove(LONG),
        lambda: Polygon.from_wkt(f"POLYGON (({LONG}))"),
    ],
)
def test_messages_are_short_whatever_was_given(make: Callable[[], Any]) -> None:
    with pytest.raises(TamisError) as caught:
        make()
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("deep", [nested(lambda one: [one]), nested(lambda one: {"a": one})])
def test_what_is_nested_deep_is_refused_with_words(deep: Any) -> None:
    index = Index()
    index.add(Subscription("s", "c = 1"))
    for make in (
        lambda: from_json({"not": deep}),
        lambda: from_json(predicate(op="=", value=deep)),
        lambda: from_json(predicate(op=deep)),
        lambda: from_json(predicate(op="in", values={"a": deep})),
        lambda: Event("e", {"x": deep}),
        lambda: Event("e", {}, location=deep),
        lambda: index.match({"c": deep}),
        lambda: Index(schema={"a": deep}),
        lambda: Subscription("s", True, delivery={"x": deep}),
    ):
        with pytest.raises(TamisError) as caught:
            make()
        assert len(str(caught.value)) < 600


def test_what_is_quoted_is_its_repr_if_that_is_short() -> None:
    for given in ("it's", 5, -1.5, True, None, [1, "a"], {"a": 1}, (1,), b"x"):
        assert quoted(given) == repr(given)
