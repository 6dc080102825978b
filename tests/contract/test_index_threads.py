"""Readers and a writer at once: every reader sees all of a change or nothing of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tamis import Index, Subscription

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


def test_attributes_appear_while_others_match() -> None:
    index = Index()
    index.add(Subscription("always", "x < 5"))

    def known_ones_are_found() -> None:
        assert "always" in index.match({"x": 1.0, "new7": 1.0, "text3": "a"})

    with readers(known_ones_are_found, known_ones_are_found):
        for n in range(1_500):
            index.add(Subscription(f"n{n}", f"new{n} < 5 OR text{n} LIKE 'a%'"))
    assert index.match({"new1499": 1.0}) == ["n1499"]
