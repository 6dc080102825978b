"""Lines of an import: the quick way to a row says what the long way says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import InvalidDelivery, TamisError
from tamis.language import normal_form, parse_filter, to_json
from tamis.storage.bulk import copy_text
from tamis.storage.drafts import Rules, plain_row, plain_row_of, read_draft
from tamis.storage.imports import LineReader
from tamis.storage.plain_filters import is_plain
from tamis.storage.saved import row_of
from tamis.values import load_json
from tests.property.strategies import filters

NOW = "2026-01-01T09:00:00.000000Z"


def refuse_mail(delivery: Mapping[str, Any]) -> None:
    if "mail" in delivery:
        raise InvalidDelivery("no mail")


RULES = Rules("zoe", most_conjunctions=16, check_transports=refuse_mail)
DELIVERIES = st.sampled_from(
    [None, {}, {"schedule": "every hour"}, {"mail": "a@b.example"}, {"shedule": "x"},
     {"schedule": "never"}, {"x": float("nan")}, {"x": "\ud800"}, {"x": "ü"}, {"x": [1, {}]}, [], 3]
)  # fmt: skip
IDS = st.sampled_from(["s1", "ü", "", "a\tb", "a\\b", "\ud800", "x" * 501, 7, None])
OWNERS = st.sampled_from([None, "zoe", "max", "", "\ud800", 7])
PRIORITIES = st.sampled_from([None, 0, 9, 10, -1, 1.0, True, "1"])


def long_way(draft: dict[str, Any], rules: Rules = RULES) -> tuple[Any, ...]:
    saved = replace(read_draft(draft, rules), created_at=NOW, updated_at=NOW)
    return row_of(saved)


@given(filters(), IDS, PRIORITIES, DELIVERIES, OWNERS, st.booleans())
def test_the_quick_way_to_a_row_is_the_long_way(
    filter: Any, id: Any, priority: Any, delivery: Any, owner: Any, may_choose: bool
) -> None:
    rules = replace(RULES, may_choose_owner=may_choose)
    draft = {"id": id, "filter": to_json(filter), "priority": priority, "delivery": delivery}
    if owner is not None:
        draft["owner"] = owner
    row = plain_row(draft, rules, NOW)
    if row is not None:
        assert row == long_way(draft, rules)


NAMES = st.sampled_from(["x", "", "ü", "\ud800", 7, None])
NUMBERS = [0, -1, 2**53, 2**53 + 1, -(2**70), 0.5, -0.0, 1e308, float("inf"), float("nan"), True]
VALUES = st.sampled_from(
    [*NUMBERS, "a", "", "2026-01-01", "\ud800", None, [], ["a"], ["a", "a"], [1], [None],
     ["a"] * 101, {"$number": "Infinity"}, {"$time": "x"}, [180, 0], [13.4, 52.5], [1, 2, 3],
     [0, 90], [True, 0], [1, 2, 3, 4], [3, 2, 1, 4], [0, 0, 0, 0], [1, 2, 3, 91], "[)", "][", False]
)  # fmt: skip
PREDICATES = st.dictionaries(
    st.sampled_from(["value", "values", "low", "high", "ends", "center", "metres", "open", "box"]),
    VALUES, max_size=3,
).flatmap(
    lambda keys: st.builds(
        lambda name, op: {"attribute": name, "op": op, **keys},
        NAMES,
        st.sampled_from(
            ["=", "!=", "<", ">=", "between", "in", "distance", "box", "prefix", "is null", 3]
        ),
    )
)  # fmt: skip
RIGHT = st.sampled_from(
    [
        {"attribute": "x", "op": "=", "value": True},
        {"attribute": "x", "op": "!=", "value": "a"},
        {"attribute": "x", "op": ">", "value": -0.0},
        {"attribute": "x", "op": "<=", "value": 2**53},
        {"attribute": "x", "op": "between", "low": -1, "high": 2.5},
        {"attribute": "x", "op": "in", "values": ["a", "a"]},
        {"attribute": "x", "op": "distance", "center": [13.4, 52.5], "metres": 500},
        {"attribute": "x", "op": "is not null"},
        {"attribute": "x", "op": "between", "low": 1, "high": 2, "ends": "()"},
        {"attribute": "x", "op": "distance", "center": [0, 0], "metres": 0.5, "open": True},
        {"attribute": "x", "op": "box", "box": [13.4, 52.5, 13.5, 52.6]},
        {"attribute": "x", "op": "prefix", "value": "a"},
    ]
)


def is_unicode(held: Any) -> bool:
    try:
        json.dumps(held, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


LITERALS = st.one_of(PREDICATES, RIGHT, RIGHT, st.builds(lambda one: {"not": one}, RIGHT))
CONJUNCTIONS = st.one_of(
    LITERALS, st.builds(lambda parts: {"and": parts}, st.lists(LITERALS, max_size=4))
)
DISJUNCTIONS = st.builds(lambda parts: {"or": parts}, st.lists(CONJUNCTIONS, max_size=4))
ODD = st.builds(lambda one, word: {word: one, **one}, RIGHT, st.sampled_from(["and", "or", "not"]))


@settings(max_examples=1_000)
@given(st.one_of(CONJUNCTIONS, DISJUNCTIONS, ODD), st.integers(1, 4))
def test_what_is_plain_can_be_read(filter: Any, most: int) -> None:
    if is_plain(filter, most) and is_unicode(filter):
        assert len(normal_form(parse_filter(filter), cap=most)) <= most


@given(st.lists(RIGHT, min_size=2, max_size=5))
def test_what_is_right_and_usual_is_plain(parts: list[Any]) -> None:
    assert is_plain({"and": parts})
    assert all(map(is_plain, parts))
    assert not is_plain({"and": parts[:1]})
    assert not is_plain({"and": parts, "or": parts})
    assert is_plain({"and": [{"not": one} for one in parts]})
    assert not is_plain({"not": parts[0], "and": parts})
    either = {"or": [{"and": parts}, *parts]}
    assert is_plain(either, len(parts) + 1)
    assert not is_plain(either, len(parts))


def test_plain_drafts_take_it() -> None:
    draft = {"id": "a\\b", "filter": {"attribute": "x", "op": "=", "value": 'q"\\'}}
    row = plain_row(draft, RULES, NOW)
    assert row == long_way(draft)
    assert row is not None
    assert copy_text([row]).decode().split("\t")[:3] == [
        r"a\\b", "zoe", r'{"attribute":"x","op":"=","value":"q\\"\\\\"}',
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": "a", "filter": {"attribute": "x", "op": "=", "value": "\\ud800"}}',
        b'{"id": "a", "filter": {"attribute": "\\ud800", "op": "=", "value": 1}}',
        b'{"id": "a", "filter": {"query": "x=1"}}',
        b'{"id": "a", "filter": true, "delivery": {"x": "\\ud800"}}',
        b'{"id": "a", "filter": true, "delivery": {"\\ud800": 1}}',
        b'{"id": "a", "filter": true, "owner": "\\ud800"}',
        b'{"id": "a", "filter": true, "location": [1, 2]}',
        b'{"id": "a", "filter": true, "is_paused": 1}',
        b'{"id": "a", "filter": "\\ud800 = 1"}',
        b'{"id": "a", "filter": "x = \'\\ud800\'"}',
        b"[]",
    ],
)
def test_what_no_database_could_hold_is_refused(line: bytes) -> None:
    read = LineReader(Rules("zoe", may_choose_owner=True)).read(1, [line])
    ((_, error),) = read.lines
    assert isinstance(error, TamisError)
    assert not read.owner_of
    assert not read.rows


def test_rows_are_texts_that_can_be_written() -> None:
    line = json.dumps({"id": "ü", "filter": "brand = 'Škoda\\u0000'"}).encode()
    batch = LineReader(RULES).read(1, [line, b"  "])
    assert batch.lines == [(1, "ü")]
    assert batch.owner_of == {"ü": "zoe"}
    copied = LineReader(RULES, spells_copies=True).read(1, [line]).rows
    assert isinstance(copied, bytes)
    assert b"\0" not in copied
    assert copied.count(b"\t") == len(batch.rows[0]) - 1
    assert copied.decode().startswith("ü\tzoe\t")


def test_of_an_id_that_is_there_twice_the_last_line_counts() -> None:
    lines = [b'{"id": "a", "filter": "x = %d"}' % number for number in (1, 2)]
    batch = LineReader(RULES).read(7, lines)
    assert batch.lines == [(7, "a"), (8, "a")]
    (row,) = batch.rows
    assert isinstance(row, tuple)
    assert row[3] == '"x = 2"'


KEYS = st.sampled_from(["id", "filter", "owner", "delivery", "priority", "a"])
FRAGMENTS = st.sampled_from(
    [
        '"a:b"', '"https://a.example"', '"\\u003a"', '"ü"', '"\\ud800"', "1", "-0", "1e999", "1e16",
        "0.1", "NaN", "null", "true", '{"a":1,"a":2}', '{"a": 1, "b:": ":"}', "[]", "{}", "1e-9",
        '{"webhook": "https://h.example/x"}', '{"attribute":"x","op":"=","value":1}', '"max"',
        '{"attribute":"x","op":"=","value":1e16}', '{"attribute":"x","op":"=","value":"a:b"}',
        '{"attribute":"x","op":"=","value":1,"value":2}', '"1e5 null"',
        '{"attribute":"x","op":"=","value":"1e-5"}', '{"attribute":"x","op":"=","value":0.00001}',
        '{"attribute":"x","op":"=","value":0.0001}', '{"attribute":"x","op":"=","value":1e15}',
        '{"attribute":"x","op":"<","value":1.5e-7}', '{"attribute":"x","op":"<","value":1e999}',
        '{"attribute":"x","op":"within","polygon":{"type":"Polygon","coordinates":'
        "[[[0,0],[1,0],[1e0,1],[0,0]]]}}",
        '{"attribute":"x","op":"within","polygon":{"type":"Polygon","coordinates":[[[0,0],[1,0]]]}}',
        '{"attribute":"x","op":"within","polygon":{"type":"Polygon","coordinates":[[[0,0],[1,0],'
        '[1,1]]],"bbox":[1e999]}}',
    ]
)  # fmt: skip


def outcome(read: Any) -> Any:
    try:
        return read()
    except (TamisError, ValueError) as error:
        return type(error), str(error)


@settings(max_examples=1_000)
@given(
    st.lists(st.tuples(KEYS, FRAGMENTS), min_size=1, max_size=5),
    st.sampled_from([":", " : "]), st.sampled_from([b"", b"", b"", b"x", b"\xff", b"\x00"]),
    st.booleans(),
)  # fmt: skip
def test_a_line_that_is_read_quickly_is_read_as_ever(
    pairs: list[tuple[str, str]], colon: str, end: bytes, is_whole: bool
) -> None:
    """Also with keys that are given twice, odd numbers and escapes."""
    if is_whole:
        pairs = [("id", '"s:1"'), ("filter", '{"attribute":"x","op":"=","value":1}'), *pairs]
    text = "{" + ",".join(f'"{key}"{colon}{held}' for key, held in pairs) + "}"
    line = text.encode() + end
    rules = replace(RULES, may_choose_owner=True)
    row = plain_row_of(line, rules, NOW)
    if row is not None:
        assert row == outcome(lambda: long_way(load_json(line), rules))


def test_plain_lines_are_read_quickly() -> None:
    line = (
        '{"id": "a:b", "owner": "o:p", "priority": 3, "delivery": {"webhook": "https://h.example"},'
        ' "filter": {"and": [{"attribute": "ü:", "op": "=", "value": "1:2"}, {"attribute": "x", '
        '"op": "<", "value": 2.5}]}}'
    ).encode()
    rules = replace(RULES, may_choose_owner=True)
    row = plain_row_of(line, rules, NOW)
    assert row == long_way(load_json(line), rules)
    assert row is not None
    assert plain_row_of(line.replace(b'"priority": 3', b'"id": "a:b"'), rules, NOW) is None
    assert plain_row_of(line.replace(b'"op": "<"', b'"op": "=", "op": "<"'), rules, NOW) is None
