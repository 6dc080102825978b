"""Changes of an index that end in the middle: nothing of them is seen, and no others follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tamis import Index, Point, Subscription, col
from tamis.errors import DuplicateSubscription, InvalidSubscription, UnfinishedChange
from tamis.index import moving, snapshot
from tamis.index.archive import Archive
from tamis.index.engine import Engine
from tamis.index.head import Head
from tamis.index.moving import Moving
from tamis.index.rows import Rows
from tamis.slots.columns import Columns
from tamis.slots.encoding import LanesOfAttribute
from tamis.slots.texts import Texts

EVENT = {"x": 1, "location": Point(4.9, 52.4)}
THERE = {"x": 1, "location": Point(5.9, 52.4)}


def _near(id: str, lon: float = 4.9) -> Subscription:
    return Subscription(id, col("x") > 0, location=(lon, 52.4), radius_m=500)


def _index() -> Index:
    index = Index()
    index.add_many([Subscription(f"s{number}", col("x") > -number) for number in range(1, 6)])
    index.add_many([_near("here"), _near("there", 5.9)])
    return index


CHANGES: list[Callable[[Index], None]] = [
    lambda index: index.add(Subscription("new", col("x") > 0)),
    lambda index: index.add(Subscription("same", col("x") > -1)),
    lambda index: index.add(_near("near")),
    lambda index: index.add_many([Subscription(f"n{number}", "x > 0") for number in range(9)]),
    lambda index: index.update(Subscription("s1", col("x") > 5)),
    lambda index: index.remove("s2"),
    lambda index: index.move("there", 4.9, 52.4),
    lambda index: index.move_many(["here", "there"], [1.0, 4.9], [1.0, 52.4]),
    lambda index: index.add(Subscription("text", "brand = 'xy' AND x > 0")),
    lambda index: index.update(Subscription("s1", col("brand").starts_with("xy"))),
]
ADD, SAME, NEAR, MANY, UPDATE, REMOVE, MOVE, MOVES, TEXT, PREFIX = CHANGES
# Where a change may be broken off, and the changes that go there.
PLACES: dict[tuple[type, str], list[Callable[[Index], None]]] = {
    (Archive, "append"): [ADD, SAME, MANY, UPDATE, TEXT, PREFIX],
    (Archive, "append_outline"): [NEAR],
    (Columns, "column"): [ADD, SAME, NEAR, MANY, UPDATE, TEXT],
    (Columns, "prefix"): [PREFIX],
    (Engine, "publish"): [ADD, SAME, NEAR, MANY, UPDATE, REMOVE, TEXT, PREFIX],
    (Engine, "publish_moves"): [MOVE, MOVES],
    (Head, "_append"): [ADD, MANY, UPDATE, TEXT, PREFIX],
    (Moving, "add"): [NEAR],
    (Moving, "move"): [MOVE],
    (Moving, "move_many"): [MOVES],
    (Moving, "remove"): [UPDATE, REMOVE, PREFIX],
    (Moving, "tidy"): CHANGES,
    (Rows, "append"): [ADD, SAME, NEAR, MANY, UPDATE, TEXT, PREFIX],
    (Rows, "bury"): [UPDATE, REMOVE, PREFIX],
    (Rows, "chain"): [SAME, MANY],
    (Texts, "append"): [ADD, SAME, NEAR, MANY, UPDATE, TEXT, PREFIX],
    (LanesOfAttribute, "notice"): [TEXT, PREFIX],
}


@pytest.mark.parametrize(
    ("place", "change"),
    [
        pytest.param(place, one, id=f"{place[0].__name__}.{place[1]}-{CHANGES.index(one)}")
        for place, some in PLACES.items()
        for one in some
    ],
)
@pytest.mark.parametrize("is_after", [True, False])
def test_nothing_of_it_is_seen_and_no_other_follows(
    place: tuple[type, str],
    change: Callable[[Index], None],
    is_after: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    index = _index()
    before = sorted(index.match(EVENT))
    held = getattr(*place)

    def broken(*given: object) -> object:
        found = held(*given) if is_after else None
        raise KeyboardInterrupt(found)

    with monkeypatch.context() as patched:
        patched.setattr(*place, broken)
        with pytest.raises(KeyboardInterrupt):
            change(index)
    if not is_after or place[1] not in ("publish", "publish_moves"):
        assert sorted(index.match(EVENT)) == before
        index._engine.wait_for_merging()
        assert sorted(index.match(EVENT)) == before
    is_done = is_after and place in ((Engine, "publish"), (Engine, "publish_moves"))
    assert index._engine._is_unfinished is not is_done
    if is_done:
        index.add(Subscription("another", "x > 0"))
        assert len(index.match(EVENT)) == len(set(index.match(EVENT)))
        assert "another" in index.match(EVENT)
        return
    for other in CHANGES:
        with pytest.raises(UnfinishedChange, match="make it anew"):
            other(index)
    with pytest.raises(UnfinishedChange):
        index.save(tmp_path / "index")
    with pytest.raises(UnfinishedChange):
        index["s1"]
    assert sorted(index.match(EVENT)) == before


@pytest.mark.parametrize("change", [UPDATE, REMOVE, MOVE, MOVES], ids=CHANGES.index)
def test_a_merge_that_ends_after_it_shows_nothing_of_it(
    change: Callable[[Index], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places are merged in a thread, which may come to its end when a change was broken off."""
    monkeypatch.setattr("tamis.index.moving.MIN_DELTA", 64)
    index, may_end = _index(), threading.Event()
    merge_all = moving.merge

    def merge(*given: Any) -> Any:
        made = merge_all(*given)
        may_end.wait(60)
        return made

    monkeypatch.setattr("tamis.index.moving.merge", merge)
    for _ in range(70):
        index.move("there", 5.9, 52.4)
    assert index._engine.moving is not None
    assert index._engine.moving._merging is not None
    before = [sorted(index.match(event)) for event in (EVENT, THERE)]
    place = (Engine, "publish_moves") if change in (MOVE, MOVES) else (Engine, "publish")

    def broken(engine: Engine) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(*place, broken)
        with pytest.raises(KeyboardInterrupt):
            change(index)
    may_end.set()
    index._engine.wait_for_merging()
    assert [sorted(index.match(event)) for event in (EVENT, THERE)] == before


def test_matching_goes_on_after_an_interrupt_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    index = _index()
    index.add_many([Subscription(f"m{n}", "x > 0") for n in range(1_500)])
    index.match(EVENT)
    scratch = index._engine.search._own.scratch
    while scratch.table is index._engine.state.rows:  # until there are other arrays of rows
        index.add(Subscription(f"n{len(index)}", "x > 0"))
    assert len(index) < scratch.size

    def broken(*given: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tamis.index.search.handle_of_rows", broken)
        with pytest.raises(KeyboardInterrupt):
            index.match(EVENT)
    assert scratch.table is not index._engine.state.rows
    assert len(index.match(EVENT)) == len(index) - 1


def test_others_may_ask_while_a_change_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    index, held = _index(), Engine.publish
    with ThreadPoolExecutor(1) as other:
        asked = []

        def publish(engine: Engine) -> None:
            asked.append(other.submit(index.deliveries))
            time.sleep(0.05)
            held(engine)

        monkeypatch.setattr(Engine, "publish", publish)
        index.add(Subscription("new", "x > 0"))
        assert len(asked[0].result()) == 8


def test_a_change_waits_while_the_index_is_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index, write, changed = _index(), snapshot.write, []
    with ThreadPoolExecutor(1) as other:

        def write_slowly(*given: Any) -> None:
            changed.append(other.submit(index.add, Subscription("late", "x > 0")))
            time.sleep(0.05)
            assert not changed[0].done()
            write(*given)

        monkeypatch.setattr(snapshot, "write", write_slowly)
        index.save(tmp_path / "index")
        changed[0].result()
    opened = Index.open(tmp_path / "index")
    assert "late" not in opened
    assert sorted(opened.match(EVENT)) == sorted(set(index.match(EVENT)) - {"late"})


def test_what_is_refused_leaves_no_change_unfinished() -> None:
    index = _index()
    for change, error in [
        (lambda: index.add(Subscription("s1", "x > 0")), DuplicateSubscription),
        (lambda: index.add_many([Subscription("a", "x > 0")] * 2), DuplicateSubscription),
        (lambda: index.move("s1", 1.0, 1.0), InvalidSubscription),
        (lambda: index.move_many(["here", "s1"], [1.0, 1.0], [1.0, 1.0]), InvalidSubscription),
        (lambda: index.remove("nobody"), KeyError),
    ]:
        with pytest.raises(error):
            change()
    index.add(Subscription("new", "x > 0"))
    assert "new" in index.match(EVENT)


def test_a_refusal_leaves_the_lock_free() -> None:
    index = _index()
    index._engine._is_unfinished = True
    with pytest.raises(UnfinishedChange):
        index.remove("s1")
    with ThreadPoolExecutor(1) as other:
        assert other.submit(index._engine.lock.acquire, timeout=5).result()


@pytest.mark.parametrize("name", ["tamis-merge", "tamis-moving"])
def test_merging_is_tried_again_where_no_thread_could_be_had(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, start, refused = Index(), threading.Thread.start, []

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    is_moving = name == "tamis-moving"
    monkeypatch.setattr(moving, "MIN_DELTA", 20)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    n = 0
    while not refused:
        index.add(_near(f"s{n}") if is_moving else Subscription(f"s{n}", f"x > {-n}"))
        n += 1
    index._engine.wait_for_merging()
    monkeypatch.setattr(threading.Thread, "start", start)
    started: list[str] = []
    monkeypatch.setattr(
        threading.Thread, "start", lambda thread: (started.append(thread.name), start(thread))
    )
    while name not in started:
        index.add(_near(f"s{n}") if is_moving else Subscription(f"s{n}", f"x > {-n}"))
        n += 1
    index._engine.wait_for_merging()
    assert len(index.match(EVENT)) == len(index) == n
