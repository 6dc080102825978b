"""The golden cases: a filter, an event and whether one accepts the other, in ``*.txt`` here.

A block is a filter (``filter:`` in SQL, or ``json:``, ``query:``, ``python:``) and lines of
events, ``+`` accepted and ``-`` rejected. What is expected comes from docs/filter-language.md,
never from what the code answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tamis.language import (
    FALSE,
    TRUE,
    Filter,
    col,
    evaluate,
    explain,
    from_json,
    normal_form,
    parse_filter,
    parse_query,
    parse_sql,
    to_json,
    to_query,
    to_sql,
)
from tamis.language.json import parse_json_text
from tamis.language.normal import to_filter

FOLDER = Path(__file__).parent
READERS = {
    "filter": parse_sql,
    "json": parse_json_text,
    "query": parse_query,
    "python": lambda text: eval(text, {"col": col, "TRUE": TRUE, "FALSE": FALSE}),
}


class Case(NamedTuple):
    spelling: str
    text: str
    event: str
    accepted: bool


def read_cases(path: Path) -> list[Case]:
    cases, spelling, text = [], "", ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        head, _, rest = line.partition(" ")
        if head in ("+", "-") and text:
            cases.append(Case(spelling, text, rest, head == "+"))
        elif head.rstrip(":") in READERS and head.endswith(":"):
            spelling, text = head[:-1], rest
        elif line and not line.startswith("#"):
            raise ValueError(f"{path.name}:{number}: {line!r} is neither a filter nor an event")
    return cases


def all_cases() -> list[object]:
    return [
        pytest.param(case, id=f"{path.stem}: {case.text} {'+-'[not case.accepted]} {case.event}")
        for path in sorted(FOLDER.glob("*.txt"))
        for case in read_cases(path)
    ]


@pytest.mark.parametrize("case", all_cases())
def test_filter_accepts_or_rejects_the_event(case: Case) -> None:
    node, event = READERS[case.spelling](case.text), json.loads(case.event)
    assert evaluate(node, event) is case.accepted
    assert explain(node, event).held is case.accepted
    assert evaluate(to_filter(normal_form(node)), event) is case.accepted
    assert evaluate(~node, event) is not case.accepted


@pytest.mark.parametrize(
    ("spelling", "text"),
    sorted({(c.spelling, c.text) for path in FOLDER.glob("*.txt") for c in read_cases(path)}),
)
def test_every_spelling_reads_back(spelling: str, text: str) -> None:
    node = READERS[spelling](text)
    assert parse_sql(to_sql(node)) == node
    assert from_json(json.loads(json.dumps(to_json(node), allow_nan=False))) == node
    assert parse_query(to_query(node)) == node
    assert parse_filter(node) is node
    assert isinstance(node, Filter)


def test_cars_are_one_tree_in_all_spellings() -> None:
    trees: dict[str, list[Filter]] = {}
    for case in dict.fromkeys((c.spelling, c.text) for c in read_cases(FOLDER / "cars.txt")):
        trees.setdefault(case[0], []).append(READERS[case[0]](case[1]))
    assert set(trees) == set(READERS)
    assert all(one == trees["filter"] for one in trees.values())


def test_there_are_enough_cases() -> None:
    assert len(all_cases()) >= 250
