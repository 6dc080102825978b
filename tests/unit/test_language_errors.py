"""Where and how a filter is refused: line, column, caret, path, and words that help."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tamis import Event
from tamis.errors import FilterError, FilterSyntaxError, FilterTooComplex, InvalidEvent
from tamis.language import col, from_json, parse_filter, parse_query, parse_sql
from tamis.language.json import parse_json_text
from tamis.language.sql_tokens import RESERVED
from tamis.language.tree import Near

# In each text the ⟦ marks where the caret must stand; it is taken out before parsing.
PLACES = [
    ("price < ⟦'cheap'", "has no order"),
    ("brand = 'a' AND\n  price < ⟦'a'", "has no order"),
    ("brand = 'x'\nAND (model = 'x'\n  OR year > ⟦'x')", "has no order"),
    ("x = 1\nAND y = ⟦z", "not the attribute 'z'"),
    ("x = 1 AND\n\n\ty ⟦== 2", "'==' is not part of the filter language"),
    ("x IN (1, 2,\n  ⟦y)", "not the attribute 'y'"),
    ("x IN (1, 2⟦, )", ""),
    ("a = 1\n  OR ⟦frobnicate(b)", "unknown function 'frobnicate'"),
    ("a = 1\n  OR ⟦box(b, 1, 2)", "box takes 5 arguments; 3 were given"),
    ("a = 1 AND\nb = 'never ⟦closed", ""),
    ("a = 1\nAND b = 2⟦; DROP TABLE c", "unexpected ';'"),
    ("a = 1 AND\n⟦AND b = 2", "something is missing before 'AND'"),
    ("⟦= 5", "something is missing before '='"),
    ("a = 1\n⟦OR", "something is missing after 'OR'"),
    ("a = 1\nAND b ⟦c", "unexpected 'c'"),
    ("a = 1\nAND b = ⟦NULL", "use IS NULL"),
    ("a LIKE\n ⟦'x%y%'", "'%' inside the pattern"),
    ("a BETWEEN 1 AND\n ⟦'b'", "has no order"),
    ("a = 5 AND b < 5 AND c > ⟦'5'", "has no order"),
    ("é = '🚗🚗' AND\n🚗x = 1", ""),
    ("a = ⟦99999999999999999999", "outside int64"),
    ("a = 1 OR\nb = ⟦1 + 2", "not '1 + 2'"),
    ("a = 1 OR\nb = ⟦(SELECT 1)", ""),
    ("a = 1 {⟦# hidden #} AND b = 2", ""),
    ("x = 1 AND\r\ny = ⟦z", "not the attribute 'z'"),
    ("x IN (2, ⟦1e)", "'1e' is not a number"),
    ("x = ⟦1e5.5", "'1e5.5' is not a number"),
    ("a = 1 OR +⟦b = 5", "unexpected 'b' after '+'"),
    ("+⟦(a = 1)", "unexpected '(' after '+'"),
    ("a LIKE +⟦'x%'", "after '+'"),
    ("a NOT ⟦NULL", "unexpected 'NULL' after 'NOT'"),
    ("a LIKE ⟦'x%' ESCAPE '%'", "followed by nothing"),
    ("a LIKE ⟦'x!a%' ESCAPE '!'", "followed by 'a'"),
    ("a AND ⟦point(1, 2)", "is a value"),
    ('⟦"within"(a, 1)', "unknown function 'within'"),
]


@pytest.mark.parametrize(("marked", "words"), PLACES, ids=[text for text, _ in PLACES])
def test_place_of_a_mistake(marked: str, words: str) -> None:
    text = marked.replace("⟦", "")
    with pytest.raises(FilterSyntaxError) as caught:
        parse_sql(text)
    error = caught.value
    assert words in str(error)
    if not words:
        assert error.line is not None
        return
    before = marked[: marked.index("⟦")]
    assert (error.line, error.column) == (before.count("\n") + 1, len(before.split("\n")[-1]) + 1)
    _, excerpt, caret = str(error).rsplit("\n", 2)
    at = caret.index("^")
    expected = marked[marked.index("⟦") + 1]
    assert excerpt[at] == expected


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a = 1 AND\nb = 'never closed", 2, 5),
        ('a = 1 AND\n "b = 1', 2, 2),
        ("a = 1 /* never\nclosed", 1, 7),
        ("(a = 1\nAND b = 2", 2, 10),
        ("a = 1 {# hidden #} AND b = 2", 1, 7),
        ("x IN (1, 2, )", 1, 13),
        ("", 1, 1),
        ("x = 'it''s", 1, 5),
        ("x = 'a'' -- b", 1, 5),
        ('x = \'a\' AND y = "b""c', 1, 17),
        ("x = $$abc", 1, 5),
        ("x = $tag$abc$$", 1, 5),
        ("-- it's\nx = 'a", 2, 5),
    ],
)
def test_place_of_what_is_not_closed(text: str, line: int, column: int) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_sql(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "word",
    [
        "range", "lock", "show", "all", "from", "array", "map", "struct", "object", "any", "call",
        "rlike", "glob", "join", "union", "fetch", "only", "if", "interval", "date", "timestamp",
        "time", "with", "as", "row", "values", "set", "desc", "order", "group", "limit", "table",
        "where", "user", "execute", "rename", "exists", "xor", "prior", "first",
    ],
)  # fmt: skip
def test_plain_words_are_names(word: str) -> None:
    square = "'POLYGON ((0 0, 1 0, 1 1, 0 0))'"
    for name in (word, word.upper(), f"{word}.{word}", f"a.{word}"):
        both = parse_sql(f"{name} < 3 AND NOT {name}")
        assert both == (col(name) < 3) & ~col(name).is_true()
        assert parse_sql(f"5 >= {name}") == (col(name) <= 5)
        assert parse_sql(f"{name} IN (1, 2)") == col(name).is_in(1, 2)
        assert parse_sql(f"({name}) IS NULL") == col(name).is_null()
        assert parse_sql(f"within({name}, {square})").attribute == name  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", sorted(RESERVED - {"NOT", "NULL", "TRUE", "FALSE", "AND", "OR"}))
def test_reserved_words_are_names_in_double_quotes(word: str) -> None:
    for text in (f"x = 1 AND {word} > 5", f"x = 1 AND {word.lower()} IN (1)"):
        with pytest.raises(FilterSyntaxError, match=r"reserved; .* double quotes") as caught:
            parse_sql(text)
        assert caught.value.column == 11
    assert parse_sql(f'"{word}" > 5') == (col(word) > 5)


def test_reserved_words_are_those_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/filter-language.md").read_text()
    (listed,) = re.findall(r"reserved words are (.*?)\. ", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == RESERVED


def test_message_shows_line_and_caret() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_sql("price < 3300 AND\n  brand < 'Huawei'")
    assert str(caught.value).endswith("(line 2, column 11)\n    brand < 'Huawei'\n            ^")


def test_long_line_is_cut_around_the_caret() -> None:
    text = "x = 1 AND " * 50 + "y < 'a' AND " + "z = 1 AND " * 50 + "z = 2"
    with pytest.raises(FilterSyntaxError) as caught:
        parse_sql(text)
    *_, excerpt, caret = str(caught.value).split("\n")
    assert len(excerpt) <= 80
    assert excerpt[caret.index("^") :].startswith("'a'")


@pytest.mark.parametrize(
    ("raw", "path", "words"),
    [
        (5, "$", "is not a filter"),
        (None, "$", "is not a filter"),
        ([], "$", "is not a filter"),
        ({}, "$", "attribute"),
        ({"and": []}, "$.and", "list of filters"),
        ({"and": {}}, "$.and", "list of filters"),
        ({"and": [True, {"not": 5}]}, "$.and[1].not", "is not a filter"),
        ({"or": [True], "and": [True]}, "$", "unknown key"),
        ({"attribute": "a", "op": "~"}, "$.op", "is not one of"),
        ({"attribute": "a", "op": ["="]}, "$.op", "is not one of"),
        ({"attribute": "", "op": "is null"}, "$", "non-empty"),
        ({"attribute": 5, "op": "is null"}, "$", "attribute"),
        ({"attribute": "a", "op": "="}, "$", "'value' is missing"),
        ({"attribute": "a", "op": "=", "value": 1, "vlaue": 2}, "$", "unknown key 'vlaue'"),
        ({"attribute": "a", "op": "=", "value": None}, "$", "use IS NULL"),
        ({"attribute": "a", "op": "=", "value": [1]}, "$", "is not a value"),
        ({"attribute": "a", "op": "=", "value": {"$range": [1, 2]}}, "$", "BETWEEN"),
        ({"attribute": "a", "op": "=", "value": {"type": [], "x": 1}}, "$", "is not a value"),
        ({"attribute": "a", "op": "<", "value": "b"}, "$", "cannot bound"),
        ({"attribute": "a", "op": "<", "value": True}, "$", "cannot bound"),
        ({"attribute": "a", "op": "between", "low": 1, "high": None}, "$", "cannot bound"),
        ({"attribute": "a", "op": "in", "values": []}, "$", "at least one"),
        ({"attribute": "a", "op": "in", "values": "abc"}, "$", "not a list"),
        ({"attribute": "a", "op": "prefix", "value": 5}, "$", "a prefix is text"),
        ({"attribute": "a", "op": "box", "box": [1, 2, 3]}, "$", "not a box"),
        ({"attribute": "a", "op": "box", "box": [1, 2, 3, 10**400]}, "$", "int64"),
        ({"attribute": "a", "op": "distance", "center": [0, 0], "metres": -1}, "$", "0 or more"),
        ({"attribute": "a", "op": "distance", "center": [0, 99], "metres": 1}, "$", "not a place"),
        ({"attribute": "a", "op": "within", "polygon": "POLYGON"}, "$", "GeoJSON"),
    ],
    ids=lambda given: repr(given)[:60],
)
def test_path_of_a_mistake_in_json(raw: Any, path: str, words: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        from_json(raw)
    assert caught.value.path == path
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: col("a") == col("b"),
        lambda: col("a") != col("b"),
        lambda: col("a") < col("b"),
        lambda: col("a").between(1, col("b")),
        lambda: col("a").is_in(col("b"), 1),
        lambda: col("a") == col("b").distance(1, 2),
        lambda: col("a") < math.nan,
        lambda: col("a") < True,
        lambda: col("a") < 2**63,
        lambda: col("a").between(1, 2, "[["),
        lambda: col("a").between(1, datetime(2026, 1, 1)),
        lambda: col("a").in_box(1, 2, math.nan, 3),
        lambda: col("a").in_box(1, 2, "3", 4),  # type: ignore[arg-type]
        lambda: col("a").distance(1, math.inf),
        lambda: col("a").distance(1, 2) < 10**30,
        lambda: Near("a", (1, 2), 5),  # type: ignore[arg-type]
        lambda: col("\ud800") == 1,
        lambda: col("\ud800").is_null(),
        lambda: col("a") == "\ud800",
    ],
)
def test_what_python_expressions_refuse_is_a_filter_error(make: Callable[[], Any]) -> None:
    with pytest.raises(FilterError):
        make()


def test_an_attribute_is_no_value() -> None:
    with pytest.raises(InvalidEvent, match=r"attribute 'x': Column Column.* is not a value"):
        Event("e", {"x": col("a")})


@pytest.mark.parametrize("value", ["Infinity", "-Infinity", "NaN"])
def test_json_has_no_infinity_of_its_own(value: str) -> None:
    for text in (
        f'{{"attribute": "x", "op": "<", "value": {value}}}',
        f'{{"attribute": "x", "op": "=", "value": {value}}}',
        f'{{"attribute": "x", "op": "!=", "value": {value}}}',
        f'{{"attribute": "x", "op": "in", "values": [1, {value}]}}',
        f'{{"attribute": "x", "op": "between", "low": {value}, "high": 1}}',
    ):
        with pytest.raises(FilterSyntaxError, match="is not JSON; infinity is"):
            parse_json_text(text)


def test_json_text_says_line_and_column() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_json_text('{"not":\n  nope}')
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_repeated_keys_in_json_are_refused() -> None:
    with pytest.raises(FilterSyntaxError, match="'op' is given twice"):
        parse_json_text('{"attribute": "a", "op": "is null", "op": "is not null"}')


def test_numbers_beyond_float64_in_json_are_refused() -> None:
    with pytest.raises(FilterSyntaxError, match="1e400 is beyond float64"):
        parse_json_text('{"attribute": "a", "op": "<", "value": 1e400}')


def test_what_sqlglot_finds_unsupported_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(FilterSyntaxError):
        parse_sql("if x")
    assert not caplog.records


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write where=TRUE"),
        ("a=100%", "written %25"),
        ("a=%zz", "written %25"),
        ("a", "parameter=value"),
        ("=5", "no name"),
        ("a=%ff", "not UTF-8"),
        ("a_from=1&a_above=2", "two low borders"),
        ("a_from=x", "is not a border"),
        ("a_from=1e400", "is not a border"),
        ("a_null=maybe", "true or false"),
        ("a_box=1,2,3", "not 4 numbers"),
        ("a_near=1,2", "not 3 numbers"),
        ("a_prefix=x&a_prefix=y", "given 2 times"),
        ("where=a&where=b", "^where is given 2 times"),
        ("where=a %3D", "something is missing"),
        ("a_within=POINT(0 0)", "POLYGON"),
    ],
)
def test_mistakes_in_queries(text: str, words: str) -> None:
    with pytest.raises(FilterSyntaxError, match=words):
        parse_query(text)


@pytest.mark.parametrize(
    "marked",
    [
        "xa=1&⟦a_from=z",
        "b=2&⟦%61_from=z",
        "a_from=1&b=2&⟦a_to=z",
        "a_from=1&b=2&⟦a_above=2",
        "a=1&⟦=5",
        "a=1&⟦&b=2",
        "a=1&⟦b",
        "a=1&⟦",
        "a=1&b=x⟦%ff",
        "⟦%ff=%fe",
        "a=1&b=⟦%f",
        "x+a=1&⟦a_null=5",
        "a_prefix=x&b=1&⟦a_prefix=y",
        "b=1&⟦a_box=1,2,3",
    ],
)
def test_place_of_a_mistake_in_a_query(marked: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_query(marked.replace("⟦", ""))
    assert (caught.value.line, caught.value.column) == (1, marked.index("⟦") + 1)


def test_parameters_have_a_limit() -> None:
    assert len(parse_query("&".join(f"a{i}=1" for i in range(10_000))).parts) == 10_000  # type: ignore[attr-defined]
    with pytest.raises(FilterTooComplex, match="10,001 parameters, more than the 10,000"):
        parse_query("&".join(f"a{i}=1" for i in range(10_001)))


def test_unknown_spelling() -> None:
    with pytest.raises(FilterError, match="'xml' is not one of sql, json, query"):
        parse_filter("x", spelling="xml")


def test_query_given_as_sql_gets_a_hint() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter("mark=FORD&year_from=2014")
    assert any('spelling="query"' in note for note in caught.value.__notes__)


def test_too_complex_says_size_and_cap() -> None:
    with pytest.raises(
        FilterTooComplex, match=r"200,001 characters, more than the 100,000"
    ) as caught:
        parse_sql("x" * 200_001)
    assert (caught.value.size, caught.value.cap) == (200_001, 100_000)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"and": [{"attribute": "x", "op": "is null"},\n  {"attribute": "x", "op": "~"}]}', 2, 28),
        ('{"attribute": "x", "op": "between", "low": 1}', 1, 1),
        ('{"not": {"or": [true,\n\n  {"attribute": "x", "op": "<", "value": "a"}]}}', 3, 3),
        ('{"or": [ ]}', 1, 8),
        ('{"or": [true, 5]}', 1, 15),
        ('{"not": {"attribute": "x", "op": "=",\n "value": 1,\n  "value": 2}}', 3, 3),
        ('{"and": [{"attribute": "a", "op": "="}, true],\n"and": []}', 2, 1),
        ('{"attribute": "{\\"", "op": "=",\n "value": 1e999}', 2, 11),
        ('{"attribute": "x", "op": "=",\n "value": ' + "9" * 5000 + "}", 2, 11),
        ('{"attribute": "1e999",\n "op": "in", "values": [-1e999]}', 2, 25),
        ('{"attribute": 5, "op": "="}', 1, 1),
        ('{"attribute": "x", "op": "=", "value": 1, "extra": {"a": [1, "}"]}}', 1, 1),
    ],
)
def test_place_of_a_mistake_in_json_text(text: str, line: int, column: int) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).splitlines()[-1].endswith("^")
