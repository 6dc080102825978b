"""Lines of an import: the quick way to a row says what the long way says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import InvalidDelivery, TamisError
from tamis.language import to_json
from tamis.storage.drafts import Rules, plain_row, read_draft
from tamis.storage.imports import LineReader, _copy_line
from tamis.storage.subscriptions import row_of
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
PRIORITIES = st.sampled_from([None, 0, 9, 10, -1, 1.0, True, "1"])


def long_way(draft: dict[str, Any]) -> tuple[Any, ...]:
    saved = replace(read_draft(draft, RULES), created_at=NOW, updated_at=NOW)
    return tuple(row_of(saved).values())


@given(filters(), IDS, PRIORITIES, DELIVERIES)
def test_the_quick_way_to_a_row_is_the_long_way(
    filter: Any, id: Any, priority: Any, delivery: Any
) -> None:
    draft = {"id": id, "filter": to_json(filter), "priority": priority, "delivery": delivery}
    row = plain_row(draft, RULES, NOW)
    if row is not None:
        assert row == long_way(draft)


def test_plain_drafts_take_it() -> None:
    draft = {"id": "a\\b", "filter": {"attribute": "x", "op": "=", "value": 'q"\\'}}
    row = plain_row(draft, RULES, NOW)
    assert row == long_way(draft)
    assert row is not None
    assert _copy_line(row).split("\t")[:3] == [
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
    ((_, row),) = LineReader(Rules("zoe", may_choose_owner=True)).read(1, [line])
    assert isinstance(row, TamisError)


def test_rows_are_texts_that_can_be_written() -> None:
    line = json.dumps({"id": "ü", "filter": "brand = 'Škoda\\u0000'"}).encode()
    ((_, row),) = LineReader(RULES).read(1, [line, b"  "])
    assert isinstance(row, tuple)
    assert "\0" not in _copy_line(row)
