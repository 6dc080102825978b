"""Readers and a writer at once: every reader sees all of a change or nothing of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tamis import Index, Subscription
from tamis.index import express
from tamis.index.head import HEAD_SLOTS

N_CHANGES = 6_000
LOW, HIGH = {"x": 1.0, "kind": "a"}, {"x": 9.0, "kind": "a"}


@contextmanager
def readers(*tasks: Callable[[], None]) -> Iterator[None]:
    """Run tasks again and again in threads of their own; raise what they raised."""
    stop = threading.Event()
    raised: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            while not stop.is_set():
                task()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert not raised, raised[0]


def test_an_update_is_seen_whole() -> None:
    index = Index()
    n_ids = 50
    sides = ("x < 5", "x > 5")
    index.add_many([Subscription(f"s{n}", sides[0]) for n in range(n_ids)])
    n_checks = 0

    def each_id_is_on_one_side() -> None:
        nonlocal n_checks
        low, high = index.match_batch([LOW, HIGH])
        assert len(low) == len(set(low))
        assert len(high) == len(set(high))
        assert sorted(low + high) == sorted(f"s{n}" for n in range(n_ids))
        n_checks += 1

    def one_event_alone() -> None:
        assert set(index.match({"x": [1.0, 9.0]})) == {f"s{n}" for n in range(n_ids)}

    with readers(each_id_is_on_one_side, one_event_alone):
        for change in range(N_CHANGES):
            # A bound of its own for each change, so that slots are not shared but grow in number.
            side = f"{sides[change // n_ids % 2]} AND x != {change + 1000}"
            index.update(Subscription(f"s{change % n_ids}", side, priority=change % 10))
    index._engine.wait_for_merging()
    each_id_is_on_one_side()
    assert n_checks > 1


def test_what_was_removed_never_matches_again() -> None:
    index = Index()
    removed: set[str] = set()

    def nothing_removed_is_found() -> None:
        gone = set(removed)
        assert not gone & set(index.match(LOW))

    with readers(nothing_removed_is_found, nothing_removed_is_found):
        for n in range(N_CHANGES):
            index.add(Subscription(f"s{n}", f"x < {5 + n} AND kind = 'a'"))
            if n >= 100:
                index.remove(f"s{n - 100}")
                removed.add(f"s{n - 100}")
    assert len(index) == 100
    assert len(index.match(LOW)) == 100


def test_a_match_by_priority_sees_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(express, "MIN_SLOTS", 256)
    index = Index()
    n_ids = 60
    n_fixed = HEAD_SLOTS  # so many are a block
    saved = [Subscription(f"s{n}", f"x < {2 + n}.5", priority=n % 10) for n in range(n_fixed)]
    index.add_many(saved)
    everybody = sorted(one.id for one in saved)
    n_checks = 0

    def everybody_is_told_once() -> None:
        nonlocal n_checks
        told = index.match_iter(LOW)
        first = [next(told) for _ in range(3)]
        index.match(HIGH)  # another match between two steps
        assert sorted([*first, *told]) == everybody
        n_checks += 1

    with readers(everybody_is_told_once, everybody_is_told_once):
        for change in range(N_CHANGES // 3):
            # Now and then the filter of another, so that chains form and dissolve.
            bound = 100 + change % 7 if change % 3 else 1000 + change
            one = Subscription(f"s{change % n_ids}", f"x < {bound}", priority=change * 7 % 10)
            index.update(one)
    index._engine.wait_for_merging()
    everybody_is_told_once()
    assert n_checks > 1
    assert index.stats()["memory"]["express"] > 0


def test_an_updated_filter_never_matches_again() -> None:
    index = Index()
    newest = [0]
    index.add(Subscription("s", "at BETWEEN 0.0 AND 0.5"))

    def the_past_is_gone() -> None:
        seen = newest[0]
        for version in range(max(0, seen - 5), seen):
            assert index.match({"at": version + 0.25}) == []
            assert list(index.match_iter({"at": version + 0.25})) == []

    with readers(the_past_is_gone, the_past_is_gone):
        for version in range(1, N_CHANGES // 2):
            index.update(Subscription("s", f"at BETWEEN {version}.0 AND {version}.5"))
            newest[0] = version
    assert index.match({"at": newest[0] + 0.25}) == ["s"]


def test_attributes_appear_while_others_match() -> None:
    index = Index()
    index.add(Subscription("always", "x < 5"))

    def known_ones_are_found() -> None:
        assert "always" in index.match({"x": 1.0, "new7": 1.0, "text3": "a"})

    with readers(known_ones_are_found, known_ones_are_found):
        for n in range(1_500):
            index.add(Subscription(f"n{n}", f"new{n} < 5 OR text{n} LIKE 'a%'"))
    assert index.match({"new1499": 1.0}) == ["n1499"]
