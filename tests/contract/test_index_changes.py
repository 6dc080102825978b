"""Heads that wait to become blocks, leaders that die, and ranges that take the quick way."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tamis import Index, Range, Subscription, evaluate, parse_filter
from tamis.index.engine import MANY_BURIED, MAX_WAITING, Engine
from tamis.index.head import HEAD_SLOTS

EVENTS: list[dict[str, Any]] = [
    {"x": 0.5, "kind": "a"}, {"x": 0.9}, {"x": [0.1, 0.8], "kind": ["a", "b"]},
    {"x": Range(0.4, 0.6)}, {"x": 0.25, "y": 1.0}, {},
]  # fmt: skip


def check(index: Index, saved: dict[str, Subscription]) -> None:
    together = index.match_batch(EVENTS)
    plain = index.match_batch([{"x": at / 16} for at in range(16)])
    for event, found in [*zip(EVENTS, together, strict=True)] + [
        ({"x": at / 16}, plain[at]) for at in range(16)
    ]:
        wanted = {id for id, one in saved.items() if evaluate(one.condition, event)}
        assert set(found) == wanted
        assert set(index.match(event)) == wanted


def filters(rnd: random.Random) -> str:
    low, high = sorted((rnd.random(), rnd.random()))
    return rnd.choice([
        f"x BETWEEN {low} AND {high}", f"x > {low} AND NOT kind = 'a'",
        f"x >= {low} AND x < {high}", f"x BETWEEN {low} AND {high} AND y < {high}",
        f"x < {low} OR kind IN ('a', 'b')",
    ])  # fmt: skip


def test_sealed_heads_are_read_and_saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Engine, "_start_merging", lambda self: None)
    rnd = random.Random(5)
    index, saved = Index(), {}
    while index.stats()["n_slots"] < (MAX_WAITING + 2) * HEAD_SLOTS:
        many = [Subscription(f"s{len(saved) + n}", filters(rnd)) for n in range(300)]
        index.add_many(many)
        saved.update({one.id: one for one in many})
    is_sealed = [not block.is_built for block in index._engine.state.blocks]
    assert sum(is_sealed) == MAX_WAITING
    assert not all(is_sealed)  # the writer went on by itself
    for id in rnd.sample(sorted(saved), 500):
        index.remove(id)
        del saved[id]
    check(index, saved)
    index.save(tmp_path / "saved")
    check(Index.open(tmp_path / "saved"), saved)


def test_heads_become_blocks_in_the_background() -> None:
    rnd = random.Random(6)
    saved = {f"s{n}": Subscription(f"s{n}", filters(rnd)) for n in range(3 * HEAD_SLOTS)}
    index = Index()
    for one in saved.values():
        index.add(one)
    index._engine.wait_for_merging()
    assert all(block.is_built for block in index._engine.state.blocks)
    check(index, saved)


def test_a_saved_chain_is_led_by_its_highest_priority(tmp_path: Path) -> None:
    index = Index()
    for n, priority in enumerate((5, 7, 9, 6, 2, 4)):
        index.add(Subscription(f"s{n}", "x < 1", priority))
    assert index.stats()["n_slots"] == 2  # a higher priority than the leader's leads anew
    assert index.stats()["n_shared"] == 4
    index.remove("s0")
    index.remove("s4")
    index.save(tmp_path / "saved")
    opened = Index.open(tmp_path / "saved")
    assert opened.match({"x": 0}) == ["s5", "s3", "s1", "s2"]
    assert list(opened.match_iter({"x": 0})) == ["s5", "s3", "s1", "s2"]
    rows = opened._engine.rows
    leaders = rows.leaders()
    assert (rows.table.priority[leaders] <= rows.table.priority[: len(leaders)]).all()


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("a BETWEEN 1.0 AND 2.0 AND b BETWEEN 0.0 AND 1.0",
         "b BETWEEN 0.0 AND 1.0 AND a BETWEEN 1.0 AND 2.0", True),
        ("a BETWEEN 1.0 AND 2.0", "a BETWEEN 1 AND 2", True),
        ("a BETWEEN 1.0 AND 2.0", "a >= 1.0 AND a <= 2.0", False),
        ("a BETWEEN 1.0 AND 2.0", "b BETWEEN 1.0 AND 2.0", False),
        ("a BETWEEN 1.0 AND 2.0", "a > 0.9999999999999999 AND a <= 2.0", False),
    ],
)  # fmt: skip
def test_what_is_shared_means_the_same(one: str, other: str, is_shared: bool) -> None:
    index = Index()
    index.add_many([Subscription("one", one), Subscription("other", other)])
    assert index.stats()["n_shared"] == int(is_shared)
    for event in ({"a": 1.0, "b": 0.5}, {"a": 1.5}, {"b": 1.0}, {"a": Range(0.5, 1.0)}):
        wanted = {
            id for id, text in (("one", one), ("other", other))
            if evaluate(parse_filter(text), event)
        }  # fmt: skip
        assert set(index.match(event)) == wanted


def test_what_died_is_dropped_before_others_come() -> None:
    rnd = random.Random(8)
    saved = {f"s{n}": Subscription(f"s{n}", f"x BETWEEN {n / 1000} AND 0.9") for n in range(700)}
    index = Index()
    index.add_many(saved.values())
    assert index.stats()["n_head_slots"] == 700
    for id in rnd.sample(sorted(saved), 600):
        index.remove(id)
        del saved[id]
    index._engine.wait_for_merging()
    check(index, saved)
    # At most as many of the dead are left as die between two looks.
    assert index.stats()["n_slots"] <= len(saved) + MANY_BURIED


def test_blocks_of_the_dead_go() -> None:
    rnd = random.Random(9)
    index = Index()
    older = {f"o{n}": Subscription(f"o{n}", filters(rnd)) for n in range(2 * HEAD_SLOTS)}
    index.add_many(older.values())
    newer = {f"n{n}": Subscription(f"n{n}", filters(rnd)) for n in range(HEAD_SLOTS)}
    index.add_many(newer.values())
    index._engine.wait_for_merging()
    n_slots = index.stats()["n_slots"]
    for id in newer:
        index.remove(id)
    index._engine.wait_for_merging()
    assert index.stats()["n_slots"] < n_slots - HEAD_SLOTS // 2
    check(index, older)
    for id in older:
        index.remove(id)
    index._engine.wait_for_merging()
    check(index, {})
    assert index.stats()["n_slots"] < HEAD_SLOTS
