"""The city of the demo: what it writes for the pipeline, its map, and its check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis import Event, Subscription, evaluate
from tamis.cli.city import City
from tamis.cli.city_demo import Told, _check
from tamis.cli.city_map import draw_map
from tamis.cli.terminal import BadInput


@pytest.fixture
def city(tmp_path: Path) -> City:
    made = City(tmp_path, 60, 7)
    made.open()
    for _ in range(4):
        made.promote(20)
        made.walk(10)
    return made


def pairs(city: City) -> list[tuple[str, str]]:
    return [
        (event.id, one.id)
        for event in city.promotions
        for one in city.customers.values()
        if one.id not in city.paths and evaluate(one.condition, event.attributes)
    ]


def test_what_is_written_is_what_happened(city: City) -> None:
    lines = [
        json.loads(line)
        for file in sorted((city.folder / "moves").iterdir())
        for line in file.read_text().splitlines()
    ]
    assert [line.pop("sequence") for line in lines] == list(range(1, 101))
    last = {line["id"]: Subscription.from_json(line) for line in lines}
    assert last == city.customers
    assert city.n_moves == 40
    assert 10 <= len(city.paths) <= 24
    shown = [
        json.loads(line)
        for file in sorted((city.folder / "promotions").iterdir())
        for line in file.read_text().splitlines()
    ]
    assert [line["id"] for line in shown] == [event.id for event in city.promotions]
    assert all(line["until"] > line["time"] for line in shown)


def test_the_check_sees_what_is_wrong(city: City) -> None:
    right = pairs(city)
    assert len(right) > 3
    assert _check(city, Told(right, [])) == 60 - len(city.paths)
    with pytest.raises(BadInput, match="told twice"):
        _check(city, Told(right, right[:1]))
    more = next(
        (event.id, id)
        for id in (one.id for one in city.customers.values() if one.id not in city.paths)
        for event in city.promotions
        if (event.id, id) not in right and any(pair[0] == event.id for pair in right)
    )
    with pytest.raises(BadInput, match="disagree"):
        _check(city, Told([*right, more], []))


def test_the_map_is_drawn(city: City, tmp_path: Path) -> None:
    assert isinstance(city.promotions[0], Event)
    told = pairs(city)
    draw_map(city, told[1:], told[:1], tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
