"""Events with several texts in an attribute: each subscription once, alone and in batches."""

from __future__ import annotations

from typing import Any

import pytest

from tamis import Index, Point, Polygon, Subscription, col, evaluate
from tamis.bench.mixed import generate_events, generate_subscriptions
from tamis.index.blocks import Block

TAGS = [f"tag{number}" for number in range(6)]
EVENT = {"tags": TAGS[:3], "colors": ["red", "blue"], "price": 5}


def _check(index: Index, saved: list[Subscription], events: list[dict[str, Any]]) -> int:
    """Compare what is found with the oracle; how many matches there are."""
    n_matches = 0
    for event, found in zip(events, index.match_batch(events), strict=True):
        wanted = sorted(one.id for one in saved if evaluate(one.condition, event))
        assert sorted(found) == wanted == sorted(index.match(event)), event
        n_matches += len(found)
    return n_matches


def _saved() -> list[Subscription]:
    tags, color, price = col("tags"), col("colors"), col("price")
    area = Polygon([(0, 0), (4, 0), (4, 4), (0, 4)])
    filters = [
        price > 0,  # found by every choice
        price < 0,
        *(tags == tag for tag in TAGS),
        (tags == TAGS[0]) & (tags == TAGS[1]),  # by two values together
        (tags == TAGS[0]) & ~(tags == TAGS[1]),
        (tags == TAGS[0]) | (color == "blue") | (price > 3),  # several slots of one subscription
        (tags == TAGS[1]) & (color == "red") & (price < 9),
        (tags != TAGS[1]) & (color != "red"),
        ~tags.is_in(*TAGS[:2]),
        color.is_in("red", "green") & col("at").within(area),
    ]
    return [
        Subscription(f"s{number}-{copy}", filter, number % 10)
        for number, filter in enumerate(filters)
        for copy in range(3)
    ]


def _events() -> list[dict[str, Any]]:
    more = [
        {
            "tags": TAGS[k : k + 3],
            "colors": ["red", "blue"][: k % 3],
            "price": k - 1,
            "at": Point(k, 1),
        }
        for k in range(7)
    ]
    return [EVENT, *more, {"tags": TAGS, "colors": TAGS}, {"tags": TAGS[0]}, {}]


@pytest.mark.parametrize("is_built", [True, False])
@pytest.mark.parametrize("has_prefixes", [True, False])
def test_each_is_found_once(is_built: bool, has_prefixes: bool, tmp_path: Any) -> None:
    saved, index = _saved(), Index()
    if has_prefixes:  # then two values may hold where no choice of one does
        saved.append(Subscription("p", col("tags").starts_with("tag") & (col("tags") == TAGS[4])))
    index.add_many(saved)
    encoded = index._columns.encode_simply(EVENT)
    assert has_prefixes == (encoded is None)
    assert encoded is None or len(encoded.choices) == 6
    if is_built:
        index.save(tmp_path / "index")
        index = Index.open(tmp_path / "index")
    assert _check(index, saved, _events()) > 50


def test_what_every_choice_finds_has_room() -> None:
    saved = [Subscription(f"s{number}", col("price") > -number) for number in range(3_000)]
    index = Index()
    index.add_many(saved)
    events = [{**EVENT, "price": number, "tags": TAGS[: 2 + number % 3]} for number in range(20)]
    index.add(Subscription("one", (col("tags") == TAGS[0]) & (col("colors") == "red")))
    for event, found in zip(events, index.match_batch(events), strict=True):
        assert len(found) == len(set(found)) == 3_001 - (event["price"] == 0)
        assert sorted(index.match(event)) == sorted(found)


def test_ads_of_every_kind() -> None:
    saved, index = generate_subscriptions(4_000), Index()
    index.add_many(saved)
    assert _check(index, saved, generate_events(60)) > 100


def test_a_match_that_was_broken_off_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    saved, index = _saved(), Index()
    index.add_many(saved)
    wanted = index.match(EVENT)
    kind = type(index._engine.state.parts[0])
    search, calls = kind.candidates, []

    def broken(block: Block, *given: Any) -> int:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return search(block, *given)

    monkeypatch.setattr(kind, "candidates", broken)
    with pytest.raises(KeyboardInterrupt):
        index.match(EVENT)
    monkeypatch.undo()
    assert index.match(EVENT) == wanted
