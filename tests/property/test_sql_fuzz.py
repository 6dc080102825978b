"""Hostile input: whatever is given, a filter that reads back or a FilterError, and quickly."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.dialects.postgres import Postgres

from tamis.errors import FilterError, FilterSyntaxError, FilterTooComplex
from tamis.language import Filter, parse_filter, parse_query, parse_sql, to_json, to_query, to_sql
from tamis.language.json import MAX_TEXT as MAX_JSON
from tamis.language.json import parse_json_text
from tamis.language.sql import MAX_TEXT
from tamis.language.tree import Equals, Missing, Present
from tests.property import strategies as some

TOKENS = [
    "x", "y.z", '"q"', '"a""b"', "5", "-3", "0.5", "1e9", ".5", "5.", "'t'", "''", "'a%'", "TRUE",
    "FALSE", "NULL", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "=", "!=", "<>",
    "<", "<=", ">", ">=", "(", ")", ",", ".", "-", "+", "*", "/", "%", "||", "::", ";", ":", "?",
    "$1", "@", "==", "!", "~", "{", "}", "[", "]", "--", "/*", "*/", "'", '"', "within", "box",
    "distance", "point", "infinity", "in_range", "TIMESTAMP", "DATE", "INTERVAL", "CASE", "WHEN",
    "THEN", "END", "SELECT", "FROM", "WHERE", "EXISTS", "CAST", "AS", "ANY", "ALL", "ARRAY", "ROW",
    "ILIKE", "SIMILAR", "TO", "ISNULL", "COLLATE", "AT", "TIME", "ZONE", "OVER", "FILTER", "E'x'",
    "N'x'", "U&'x'", "X'1F'", "b'01'", "$$x$$", "\n", "\t", "\x00", "\u00a0", "\u200b", "é", "🚗",
    "'POLYGON ((0 0, 1 0, 0 1, 0 0))'", "'[)'", "'2026-01-01'",
]  # fmt: skip


@contextmanager
def within_seconds(limit: float) -> Iterator[None]:
    """Of this thread's own work, however busy the machine is."""
    start = time.thread_time()
    yield
    assert time.thread_time() - start < limit


def check(read: Callable[[str], Filter], write: Callable[[Filter], str], text: str) -> None:
    with within_seconds(5):
        try:
            node = read(text)
        except FilterError:
            return
    assert read(write(node)) == node


def check_sql(text: str) -> None:
    check(parse_sql, to_sql, text)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(TOKENS), max_size=12), st.sampled_from(["", " "]))
def test_token_soup(tokens: list[str], between: str) -> None:
    check_sql(between.join(tokens))


@settings(max_examples=200)
@given(some.filters(max_leaves=4), st.data())
def test_mutated_filters(node: Filter, data: st.DataObject) -> None:
    text = to_sql(node)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 3))
        inserted = data.draw(st.sampled_from(["", *TOKENS]) | st.characters())
        text = text[:place] + inserted + text[place + cut :]
    check_sql(text)


@settings(max_examples=200)
@given(st.text(max_size=30))
def test_any_text(text: str) -> None:
    check_sql(text)
    check(parse_json_text, lambda node: json.dumps(to_json(node)), text)
    check(parse_query, to_query, text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda part: (
        st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=4), part, max_size=3)
    ),
    max_leaves=6,
)
KEYS = ["and", "or", "not", "attribute", "op", "value", "values", "low", "high", "ends", "polygon",
        "box", "center", "metres", "open", "$range", "$number", "$timestamp", "type",
        "coordinates"]  # fmt: skip
OPS = ["=", "!=", "<", ">=", "between", "in", "prefix", "is null", "within", "box", "distance"]


@settings(max_examples=300)
@given(
    st.dictionaries(st.sampled_from(KEYS), JSON | st.sampled_from(OPS), max_size=5),
    st.sampled_from(OPS),
    JSON,
)
def test_json_soup(raw: dict[str, object], op: str, held: object) -> None:
    def write(node: Filter) -> str:
        return json.dumps(to_json(node))

    check(parse_json_text, write, json.dumps(raw))
    keys = ("value", "values", "low", "high", "ends", "polygon", "box", "center", "metres", "open")
    for key in keys:
        check(parse_json_text, write, json.dumps({"attribute": "a", "op": op, key: held}))
    both = {"attribute": "a", "op": "distance", "center": held, "metres": held}
    check(parse_json_text, write, json.dumps(both))
    shape = {"type": "Polygon", "coordinates": held}
    check(parse_json_text, write, json.dumps({"attribute": "a", "op": "within", "polygon": shape}))


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "a_from", "a_to", "a_not", "a_null", "a_box", "a_near",
                             "a_within",
                             "a_nearer", "a_prefix", "a_where", "where", "_from", "a_", "", "%"]),
            st.sampled_from(["5", "'5'", "'", "true", "1,2,3", "1,2,3,4", "nan", "1e400", "%ff", "",
                             "a%20%3D%201", "2026-01-01", "é", "+5", "POLYGON((0 0,1 0,0 1,0 0))"]),
        ),
        max_size=4,
    )
)  # fmt: skip
def test_query_soup(pairs: list[tuple[str, str]]) -> None:
    check(parse_query, to_query, "&".join(f"{name}={value}" for name, value in pairs))


# -- nesting and size


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "x = 1" + ")" * 10_000,
        "(" * 10_000,
        ")" * 10_000,
        "NOT " * 10_000 + "x",
        "NOT (" * 10_000 + "x" + ")" * 10_000,
        "x = " + "- " * 10_000 + "1",
        "x = " + "+ " * 10_000 + "1",
        "x = 1" + " = 1" * 10_000,
        "x = 1" + " + 1" * 10_000,
        "x" + "[1]" * 10_000 + " = 1",
        "x" + "::int" * 10_000 + " = 1",
        "a" + ".b" * 10_000 + " IS 5",
        "CASE " * 10_000,
        "x IN (" * 10_000,
        "x LIKE " * 10_000,
        "x BETWEEN " * 9_000,
        "box(" * 10_000,
        "x = 1 AND NOT (" * 6_000,
        "/*" * 10_000,
        "'" * 9_999,
        '"' * 9_999,
        "{" * 10_000,
        "$" * 10_000,
        "within(x, '" + "GEOMETRYCOLLECTION (" * 4_900 + "')",
    ],
    ids=lambda text: text[:14],
)
def test_deep_nesting_is_refused_quickly(text: str) -> None:
    with within_seconds(10), pytest.raises(FilterError):
        parse_sql(text)


@pytest.mark.parametrize("levels", [500, 950, 990, 1_000, 10_000, 100_000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("[", "]"),
        ('{"not":', "}"),
        ('{"and":[', "]}"),
        ('{"attribute":"a","op":"=","value":[', "]}"),
    ],
)
def test_deep_json_is_refused(levels: int, opening: str, closing: str) -> None:
    text = opening * levels + "true" + closing * levels
    with within_seconds(5), pytest.raises(FilterError):
        parse_json_text(text)
    one = '{"attribute":"a","op":"within","polygon":{"type":"Polygon","coordinates":'
    with within_seconds(5), pytest.raises(FilterError):
        parse_json_text(one + "[" * levels + "]" * levels + "}}")


def test_nesting_does_not_depend_on_the_caller() -> None:
    text = "NOT (" * 90 + "x = 1" + ")" * 90

    def at_depth(levels: int) -> Filter:
        return parse_sql(text) if levels == 0 else at_depth(levels - 1)

    assert at_depth(500) == parse_sql(text)


@pytest.mark.parametrize("read", [parse_sql, parse_json_text, parse_query])
def test_one_megabyte_is_refused(read: Callable[[str], Filter]) -> None:
    text = "x = 1 OR " * 120_000
    with within_seconds(2), pytest.raises(FilterTooComplex) as caught:
        read(text)
    assert caught.value.size == len(text)
    assert caught.value.cap in (MAX_TEXT, MAX_JSON)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1" + " OR x = 1" * 11_110,
        "x IN (1" + ", 2" * 33_330 + ")",
        "a" + " AND b" * 16_660,
        "x = '" + "y" * 99_990 + "'",
    ],
    ids=["or", "in", "and", "text"],
)
def test_long_flat_filters_work(text: str) -> None:
    assert len(text) > 99_900
    with within_seconds(10):
        assert isinstance(parse_sql(text), Filter)


def test_long_filters_with_a_mistake_at_the_end_are_refused_quickly() -> None:
    for text in ("x = 1" + " OR x = 1" * 3_000 + " OR x < 'a'", "x IN (" + "1," * 9_000 + "y)"):
        with within_seconds(10), pytest.raises(FilterSyntaxError) as caught:
            parse_sql(text)
        assert caught.value.column == max(text.rfind("'a'"), text.rfind("y")) + 1


def test_long_queries_are_refused_or_read_quickly() -> None:
    with within_seconds(10), pytest.raises(FilterError):
        parse_query("a=1&" * 24_000 + "b=2")
    with within_seconds(10):
        parse_query("&".join(f"a{i}=1" for i in range(9_000)))


# -- names

WORDS = sorted(
    {
        part
        for word in [*Postgres.Tokenizer.KEYWORDS, *Postgres.Parser.FUNCTIONS]
        for part in [word, *word.split()]
    }
    | set(Postgres.Parser.NO_PAREN_FUNCTION_PARSERS)
    | set(Postgres.Parser.FUNCTION_PARSERS)
    | {
        "PRIOR",
        "NEXT",
        "SYMMETRIC",
        "UNKNOWN",
        "ESCAPE",
        "DIV",
        "XOR",
        "e",
        "n",
        "b",
        "x",
        "u",
        "r",
    }
    | {"within", "box", "distance", "point", "infinity", "in_range", "true", "false", "null"}
)


def test_every_word_of_sqlglot_works_as_a_name() -> None:
    for word in WORDS:
        for name in (word, word.lower(), f"part.{word.lower()}.{word}"):
            for node in (Equals(name, "v"), ~Present(name)):
                assert parse_sql(to_sql(node)) == node, name


@pytest.mark.parametrize(
    ("shape", "make"),
    [
        ("{} = 1", lambda name: Equals(name, 1)),
        ("{} IS NULL", Missing),
        ("{}", lambda name: Equals(name, True)),
        ("NOT {} IS NOT NULL", lambda name: ~Present(name)),
        ("1 = {}", lambda name: Equals(name, 1)),
    ],
    ids=["equals", "missing", "bare", "not present", "flipped"],
)
def test_a_bare_word_is_that_name_or_an_error(shape: str, make: Callable[[str], Filter]) -> None:
    for word in WORDS:
        try:
            node = parse_sql(shape.format(word.lower()))
        except FilterError:
            continue
        if word.lower() not in ("true", "false"):
            assert node == make(word.lower()), word


# -- what sqlglot would read in its own way


@pytest.mark.parametrize(
    "text",
    r"""
x = N'abc'
x = U&'d\0061'
x = X'1F'
x = b'01'
x = E'a\nb'
x = $$abc$$
x = $t$abc$t$
x = 'a' 'b'
x = "y"
x = 1_000
x = 0x1F
x = 0b11
x = 0o17
x = 1e400
x = 10abc
x = 10 abc
x = 10 AS abc
x == 5
x <=> 5
! x = 5
!x
x ~~ 'a%'
x !~~ 'a%'
x ~ 'a'
x ^@ 'a'
x ILIKE 'a%'
x SIMILAR TO 'a%'
x GLOB 'a*'
x RLIKE 'a'
x := 5
x => 5
x IS NOT DISTINCT FROM 5
x ISNULL
x NOTNULL
x IS UNKNOWN
x IS NOT UNKNOWN
x IS 5
x IS JSON
x BETWEEN SYMMETRIC 2 AND 1
x BETWEEN 1 AND TIMESTAMP '2026-01-01'
x BETWEEN 1 AND 2 BETWEEN 3 AND 4
x IN (1,)
x IN (,1)
x IN ((1,2))
x IN ()
x IN 1
x IN y
x IN (1, NULL)
x IN (SELECT 1)
x = (SELECT 1)
x = ANY(ARRAY[1,2])
x = ALL (1)
x LIKE ANY ('a%')
x LIKE 'a%b'
x LIKE 'a_'
x LIKE 'a\b%'
x LIKE 'a\%%'
x LIKE 5
x LIKE y
x LIKE 'a%' ESCAPE '!!'
x LIKE 'a!' ESCAPE '!'
x LIKE 'a%' ESCAPE ''
x LIKE 'a' || '%'
x = 1 = 2
5 < x < 10
x = 1 IS TRUE
x = 5 IS NULL
x < 5 = TRUE
x IN (1, 2) = TRUE
(x = 1) IS NOT TRUE
x = NULL
x != NULL
NULL
x = NaN
x < 'a'
x < TRUE
x < point(1, 2)
x = y
x < y
x = 'a' OR 'b'
1 = 1
'a' = 'a'
5
'a'
-x = 1
x = ~1
x + 1 = 2
x = 1 + 1
x % 2 = 0
x || 'a' = 'ab'
x && y
x XOR y
x OVERLAPS y
x @> y
x -> 'a' = 1
x ->> 'a' = '1'
x # 5 = 1
x ? 'a'
x = ?
x = :y
x = $1
x = @y
x = %s
x = {y}
x = {{ y }}
x = 5 {# AND y = 3 #} AND z = 1
{fn within(x, 'POLYGON ((0 0, 1 0, 0 1, 0 0))')}
x /*+ hint */ = 5
x = 5 /* /* nested */ AND y = 2 */ AND z = 1
x = 5 # AND y = 1
x = 5 // AND y = 1
x[1] = 1
[x] = 1
`x` = 1
x.* = 1
* = 1
x.5 = 1
5.x = 1
x:y = 1
"" = 1
(x, y) = (1, 2)
ROW(x) = 1
x = ARRAY[1]
x = TIMESTAMP '2026-01-01 10:00:00+02'
x = TIMESTAMP(0) '2026-01-01T10:00:00.6Z'
x = TIMESTAMP 'now'
x = DATE '2026-01-01T10:00:00Z'
x = DATE '2026-02-30'
x = DATE('2026-01-01')
x = '2026-01-01'::timestamp
x = TRY_CAST('2026-01-01' AS DATE)
x = CAST('5' AS INT)
CAST(x AS INT) = 5
x::int = 5
x = INTERVAL '1 day'
x = TIME '10:00'
x = CURRENT_DATE
x = NOW()
CURRENT_USER = 'a'
x AT TIME ZONE 'UTC' = 1
x = 'a' COLLATE "C"
x OPERATOR(pg_catalog.=) 5
true = 1
x = infinity
x = infinity(1)
x = "point"(1, 2)
foo.box(x, 1, 2, 3, 4)
upper(x) = 'A'
x = upper('a')
frobnicate(x)
point(1, 2)
box(x, 1, 2, 3)
box(x, 1, 2, 3, 4, 5)
box(x, 1, 5, 3, 4)
box(x, '1', 2, 3, 4)
box(x, NULL, 2, 3, 4)
box(DISTINCT x, 1, 2, 3, 4)
box(x, 1, 2, 3, 4) OVER ()
box(x, 1, 2, 3, 4) FILTER (WHERE y)
box(x, 1, 2, 3, 4 ORDER BY y)
box(x, 1, 2, 3, 4) = TRUE
box(x, 1, 2, 3, infinity())
within(x)
within(x, 5)
within(x, y)
within(x, '')
within(x, 'POINT (0 0)')
within(x, 'POLYGON EMPTY')
within(x, 'POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))')
within(x, 'POLYGON ((0 0, nan 2, 2 0, 0 2, 0 0))')
within(x, 'POLYGON ((0 0, inf 2, 2 0, 0 2, 0 0))')
within(x, 'POLYGON ((0 0, 1e400 2, 2 0, 0 2, 0 0))')
within(x, 'POLYGON ((0 0, 1 1, 2 0))')
within(x, 'POLYGON ((0 0, 1 1, 0 0))')
within(x, 'POLYGON ((0 0, 1 1, 2 2, 0 0))')
within(x, 'POLYGON ((0 0, 1 1, 1 0, 0 0')
within(x, 'POLYGON Z ((0 0 1, 1 0 1, 0 1 1, 0 0 1))')
within(x, 'POLYGON M ((0 0 1, 1 0 1, 0 1 1, 0 0 1))')
within(x, 'POLYGON ((0 0 1, 1 0 1, 0 1 1, 0 0 1))')
within(x, 'SRID=4326;POLYGON ((0 0, 1 0, 0 1, 0 0))')
within(x, 'POLYGON ((0 0, 1 0, 0 1, 0 0)) garbage')
within(x, 'MULTIPOLYGON (((0 0, 2 0, 0 2, 0 0)), ((0 0, 2 0, 0 2, 0 0)))')
distance(x, 1, 2)
distance(x, 1, 2) > 5
distance(x, 1, 2) = 5
distance(x, 1, 2) < -1
distance(x, 1, 2) < y
distance(x, 1, 2) < infinity()
distance(x, 1) < 5
distance(x, 200, 2) < 5
distance(x, 1, 2) BETWEEN 1 AND 5
in_range(x, 1, 2)
in_range(x, 1, 2, 'foo')
in_range(x, NULL, NULL, '[]')
in_range(x, 'a', 'b', '[]')
SELECT 1
SELECT * FROM t WHERE x = 1
DROP TABLE x
WHERE x = 1
x = 1; DROP TABLE x
x = 1;
;
x = 1 ORDER BY y
x = 1 LIMIT 5
x = 1 UNION SELECT 2
EXISTS (SELECT 1)
CASE WHEN x = 1 THEN TRUE END
IF(x, 1, 2)
TABLE x
VALUES (1)
x AND
AND x
x OR OR y
x =
= 5
x > = 5
x ! = 5
NOT
(x = 1
x = 1)
()
x y
x, y
x = 1, y = 2
x = 1 y = 2
x = 'abc
"x = 5
/* x = 5
x = 99999999999999999999
x = 9223372036854775808
PRIOR x = 1
'a' LIKE x
5 BETWEEN x AND y
5 IN (x, y)
NULL IS NULL
TRUE IS TRUE
""".strip().split("\n"),
)
def test_foreign_sql_is_refused(text: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_sql(text)
    assert caught.value.line == 1
    assert caught.value.column is not None
    assert 1 <= caught.value.column <= len(text) + 1


@pytest.mark.parametrize("text", ["", " ", "\n\t", "-- only a comment", "/* x = 1 */"])
def test_nothing_is_refused(text: str) -> None:
    with pytest.raises(FilterSyntaxError, match="write TRUE to accept every event"):
        parse_sql(text)


@pytest.mark.parametrize("text", ["x\u00a0= 1", "x\u200b = 1", "x = 1\u2028AND y", "x\ufeff = 1"])
def test_unusual_white_space_is_not_part_of_a_name(text: str) -> None:
    try:
        node = parse_sql(text)
    except FilterError:
        return
    assert to_sql(node) in ("x = 1", "x = 1 AND y = TRUE")


@pytest.mark.parametrize("text", ["x = '\ud800'", '"\udfff" = 1', "x LIKE '\ud800%'", "\ud800"])
def test_lone_surrogates_are_refused(text: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_sql(text)
    str(caught.value).encode()
    with pytest.raises(FilterError):
        parse_json_text(json.dumps({"attribute": "x", "op": "=", "value": "\ud800"}))


def test_nul_is_a_character_of_texts_only() -> None:
    assert parse_sql("x = 'a\x00b'") == Equals("x", "a\x00b")
    with pytest.raises(FilterError):
        parse_sql("x = 1 \x00 AND y = 2")


@pytest.mark.parametrize("given", [None, 5, 5.0, b"x = 1", ["x"], object()])
def test_what_is_no_filter_is_refused(given: object) -> None:
    with pytest.raises(FilterError, match="is not a filter"):
        parse_filter(given)  # type: ignore[arg-type]
