"""Changes of an index that end in the middle: nothing of them is seen, and no others follow."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tamis import Index, Point, Subscription, col
from tamis.errors import DuplicateSubscription, InvalidSubscription, UnfinishedChange
from tamis.index.archive import Archive
from tamis.index.engine import Engine
from tamis.index.head import Head
from tamis.index.moving import Moving
from tamis.index.rows import Rows
from tamis.slots.texts import Texts

EVENT = {"x": 1, "location": Point(4.9, 52.4)}


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
]
PLACES = [
    (Archive, "append"), (Archive, "append_outline"), (Engine, "publish"), (Head, "_append"),
    (Engine, "publish_moves"), (Rows, "append"), (Rows, "bury"), (Rows, "chain"),
    (Moving, "add"), (Moving, "move"), (Moving, "move_many"), (Moving, "remove"), (Texts, "append"),
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join((place[0].__name__, place[1])))
@pytest.mark.parametrize("is_after", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_nothing_of_it_is_seen_and_no_other_follows(
    change: Callable[[Index], None],
    is_after: bool,
    place: tuple[type, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    index = _index()
    before = sorted(index.match(EVENT))
    held, n_calls = getattr(*place), []

    def broken(*given: object) -> object:
        n_calls.append(1)
        found = held(*given) if is_after else None
        raise KeyboardInterrupt(found)

    with monkeypatch.context() as patched:
        patched.setattr(*place, broken)
        try:
            change(index)
        except KeyboardInterrupt:
            assert n_calls
        else:
            assert not n_calls, "it does not go there"
            return
    if not is_after or place[1] not in ("publish", "publish_moves"):
        assert sorted(index.match(EVENT)) == before
        index._engine.wait_for_merging()
        assert sorted(index.match(EVENT)) == before
    if not index._engine._is_unfinished:  # before or after all of it
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
