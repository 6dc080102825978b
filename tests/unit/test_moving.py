"""Movers: their cells, their codes, what is refused, and what an index says of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Index, Point, Subscription, evaluate
from tamis.errors import InvalidSubscription, InvalidValue, SnapshotError, UnknownSubscription
from tamis.index import movers, moving
from tamis.kernels.moving import NO_VALUE, code_of
from tamis.kernels.moving_cells import (
    COARSE,
    FINE,
    N_LEVELS,
    SMALLEST_M,
    band_of,
    count_cells,
    key_at,
    level_of,
    reach_of,
)
from tamis.values.shapes import box_around

ME = Subscription("me", "price < 10", 3, "zoe", location=(4.9, 52.4), radius_m=500)
HERE = {"price": 5, "location": Point(4.901, 52.4)}
THERE = {"price": 5, "location": Point(13.401, 52.5)}


@pytest.fixture
def index() -> Index:
    made = Index()
    made.add_many([ME, Subscription("fixed", "price < 10")])
    return made


def test_a_move_changes_the_place_alone(index: Index) -> None:
    index.move("me", 13.4, 52.5)
    assert index.match(HERE) == ["fixed"]
    assert index.match(THERE) == ["me", "fixed"]
    assert index["me"] == ME.at((13.4, 52.5))
    assert index.explain("me", THERE).held
    assert not index.explain("me", HERE).held


def test_many_move_at_once(index: Index) -> None:
    index.add(Subscription("you", "TRUE", location=(0, 0), radius_m=10, area="square"))
    index.move_many(["you", "me"], np.array([1.0, 13.4]), [2, 52.5])
    assert index["you"].location == Point(1, 2)
    assert index["me"].location == Point(13.4, 52.5)
    index.move_many([], [], [])
    index.move_many(("you",), (np.float32(3),), np.array([4], np.int8))
    assert index["you"].location == Point(3, 4)
    index.move_many(iter(["you"]), np.array([5], object), 6.5)  # type: ignore[arg-type]
    assert index["you"].location == Point(5, 6.5)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((181, 0), "not a place"),
        ((0, -90.1), "not a place"),
        ((math.nan, 0), "not finite|not a place"),
        ((0, math.inf), "not a place|not finite"),
        (("1", 0), "not a coordinate"),
        ((True, 0), "not a coordinate"),
        ((None, 0), "not a coordinate"),
    ],
)
def test_what_is_no_place_is_refused(index: Index, place: tuple[Any, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        index.move("me", *place)
    assert index["me"] == ME
    assert index.match(HERE) == ["me", "fixed"]


@pytest.mark.parametrize("kind", [float, np.int8, object])
def test_a_masked_coordinate_is_refused(index: Index, kind: type) -> None:
    index.add(Subscription("you", "TRUE", location=(0, 0), radius_m=10))
    masked = np.ma.array([1, 2], mask=[False, True], dtype=kind)
    for lon, lat, name in ((masked, [3, 4], "lon"), ([3, 4], masked, "lat")):
        with pytest.raises(InvalidValue, match=f"{name} is masked at 1; expected a number"):
            index.move_many(["me", "you"], lon, lat)
    assert index["me"] == ME
    index.move_many(["me", "you"], np.ma.array([1.0, 2.0]), [3, 4])  # nothing is masked
    assert index["you"].location == Point(2, 4)


def test_who_is_not_there_or_has_no_place_is_refused(index: Index) -> None:
    with pytest.raises(UnknownSubscription, match="nobody"):
        index.move("nobody", 0, 0)
    with pytest.raises(InvalidSubscription, match="'fixed' has no location to move; update"):
        index.move("fixed", 0, 0)
    lonely = Index()
    lonely.add(Subscription("s", "TRUE"))
    with pytest.raises(InvalidSubscription, match="no location"):
        lonely.move("s", 0, 0)
    with pytest.raises(InvalidSubscription, match="no location"):
        lonely.move_many(["s"], [0], [0])
    index.remove("me")
    with pytest.raises(UnknownSubscription):
        index.move("me", 0, 0)


@pytest.mark.parametrize(
    ("ids", "lon", "lat", "error"),
    [
        (["me", "fixed"], [0, 0], [0, 0], InvalidSubscription),
        (["me", "nobody"], [0, 0], [0, 0], UnknownSubscription),
        (["me", "me"], [0, 1], [0, 1], InvalidSubscription),
        (["me"], [0, 1], [0, 1], InvalidValue),
        (["me"], [[0]], [0], InvalidValue),
        (["me"], ["x"], [0], InvalidValue),
        (["me"], [math.nan], [0], InvalidValue),
        (["me"], [0], [91], InvalidValue),
        (["me"], [10**400], [3], InvalidValue),
        (["me"], np.array([10**400]), [3], InvalidValue),
        (["me"], ["1"], [3], InvalidValue),
        (["me"], np.array(["1"]), [3], InvalidValue),
        (["me"], [3.0], [True], InvalidValue),
        (["me"], [3.0], np.array([True]), InvalidValue),
        (["me"], [None], [3.0], InvalidValue),
        (["me"], None, [3.0], InvalidValue),
        (["me"], [1j], [3.0], InvalidValue),
        ("me", [0, 0], [0, 0], InvalidSubscription),
        (None, [0], [0], InvalidSubscription),
        (7, [0], [0], InvalidSubscription),
        ([None], [0], [0], UnknownSubscription),
    ],
)
def test_all_move_or_nobody(
    index: Index, ids: list[str], lon: Any, lat: Any, error: type[Exception]
) -> None:
    version = index.stats()["version"]
    with pytest.raises(error):
        index.move_many(ids, lon, lat)
    assert index["me"] == ME
    assert index.stats()["version"] == version
    index.move("me", 13.4, 52.5)  # what was refused has left nothing behind
    assert index.match(THERE) == ["me", "fixed"]
    assert index.match(HERE) == ["fixed"]


def test_stats_say_who_moves(index: Index) -> None:
    stats = index.stats()
    assert (stats["n_moving"], stats["n_subscriptions"], stats["n_slots"]) == (1, 2, 1)
    assert stats["memory"]["moving"] > 0
    assert stats["memory"]["total"] >= stats["memory"]["moving"]
    index.remove("me")
    assert index.stats()["n_moving"] == 0
    assert Index().stats()["memory"]["moving"] == 0


def test_an_update_takes_a_place_away_or_gives_one(index: Index) -> None:
    index.update(Subscription("me", "price < 10"))
    index.update(Subscription("fixed", "price < 10", location=(13.4, 52.5), radius_m=100))
    assert index.match(HERE) == ["me"]
    assert sorted(index.match(THERE)) == ["fixed", "me"]
    index.move("fixed", 4.9, 52.4)
    assert sorted(index.match(HERE)) == ["fixed", "me"]


def test_who_has_a_wide_area_moves_too(index: Index) -> None:
    index.add(Subscription("wide", "price < 10", location=(4.9, 52.4), radius_m=movers.WIDE_M + 1))
    assert index.stats()["n_moving"] == 1
    index.move("wide", 13.4, 52.5)
    assert sorted(index.match(HERE)) == ["fixed", "me"]
    assert sorted(index.match(THERE)) == ["fixed", "wide"]
    index.move_many(["me", "wide"], [13.4, 4.9], [52.5, 52.4])
    assert sorted(index.match(HERE)) == ["fixed", "wide"]
    assert sorted(index.match(THERE)) == ["fixed", "me"]
    with pytest.raises(InvalidSubscription):
        index.move_many(["me", "wide", "fixed"], [0, 0, 0], [0, 0, 0])
    assert index["me"].location == Point(13.4, 52.5)
    assert index["wide"].location == Point(4.9, 52.4)


def test_places_are_saved_where_they_are(index: Index, tmp_path: Path) -> None:
    index.add(Subscription("gone", "TRUE", location=(0, 0), radius_m=10))
    index.move("me", 13.4, 52.5)
    index.remove("gone")
    index.save(tmp_path / "one")
    opened = Index.open(tmp_path / "one", verify=True)
    assert opened["me"] == ME.at((13.4, 52.5))
    assert opened.match(THERE) == ["me", "fixed"]
    opened.move("me", 4.9, 52.4)
    opened.save(tmp_path / "two")
    again = Index.open(tmp_path / "two")
    assert again.match(HERE) == ["me", "fixed"]
    # The files of the first are as they were.
    assert Index.open(tmp_path / "one", verify=True).match(THERE) == ["me", "fixed"]
    (tmp_path / "two" / "places.entries.lon.npy").unlink()
    with pytest.raises(SnapshotError, match="damaged"):
        Index.open(tmp_path / "two")


def test_many_are_merged_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "MIN_DELTA", 16)
    random = np.random.default_rng(1)
    index = Index()
    saved = {
        f"s{n}": Subscription(
            f"s{n}", f"x BETWEEN {n % 7}.0 AND {n % 7 + 2}.5", n % 10,
            location=tuple(random.normal(0, 0.01, 2)), radius_m=float(random.uniform(0, 2000)),
            area=("circle", "square")[n % 2],
        )
        for n in range(300)
    }  # fmt: skip
    index.add_many(saved.values())
    for change in range(400):
        id, place = f"s{change * 7 % 300}", tuple(random.normal(0, 0.01, 2).tolist())
        index.move(id, *place)
        saved[id] = saved[id].at(place)
        if change % 40 == 0:
            _check(index, saved, random)
    index._engine.wait_for_merging()
    _check(index, saved, random)


def _check(index: Index, saved: dict[str, Subscription], random: np.random.Generator) -> None:
    events = [
        {"x": float(random.uniform(0, 9)), "location": Point(*random.normal(0, 0.01, 2))}
        for _ in range(10)
    ]
    for event, found in zip(events, index.match_batch(events), strict=True):
        assert sorted(found) == sorted(
            id for id, one in saved.items() if evaluate(one.condition, event)
        )


def test_filters_of_every_shape() -> None:
    index = Index()
    text = " OR ".join(f"a{n} = {n}" for n in range(40))
    index.add(Subscription("or", text, location=(1, 1), radius_m=100))
    index.add(Subscription("in", "a IN ('x', 'y', 'z')", location=(1, 1), radius_m=100))
    index.add(Subscription("none", "FALSE", location=(1, 1), radius_m=100))
    index.add(Subscription("zero", "a1 BETWEEN 0.0 AND 0.5", location=(1, 1), radius_m=100))
    place = {"location": Point(1, 1)}
    assert sorted(index.match({**place, "a7": 7})) == ["or"]
    assert index.match({**place, "a7": 8}) == []
    assert index.match({**place, "a": "y"}) == ["in"]
    assert index.match({**place, "a1": -0.0}) == ["zero"]
    assert sorted(index.match({**place, "a": ["q", "z"], "a1": [0.1, 1]})) == ["in", "or", "zero"]


def test_arrow_tables_have_areas() -> None:
    table = pa.table(
        {
            "id": ["a", "b"], "filter": ["TRUE", "TRUE"],
            "location": [{"lon": 0.0, "lat": 0.0}] * 2, "radius_m": [1000.0, 1000.0],
            "area": ["square", None],
        }
    )  # fmt: skip
    index = Index()
    index.add_many(table)
    assert index.match({"location": Point(0.008, 0.008)}) == ["a"]
    assert (index["a"].area, index["b"].area) == ("square", "circle")


@pytest.mark.parametrize("share", [FINE, COARSE])
def test_cells_are_about_as_wide_as_high(share: float) -> None:
    random = np.random.default_rng(2)
    for level in range(N_LEVELS):
        side = share * reach_of(level)
        for lat in (*random.uniform(-90, 90, 20), -90.0, 90.0, 0.0):
            band = band_of(lat, side)
            width = 360 / count_cells(band, side) * math.cos(math.radians(lat))
            assert width <= 360
            if abs(lat) < 80 and side < 1:
                assert 0.8 * side < width < 1.3 * side
            for lon in (-180.0, 180.0, 0.0):
                assert 0 <= key_at(level, lon, lat, share) < 1 << 50


def test_levels_hold_their_radii() -> None:
    assert level_of(0.0) == 0
    assert level_of(SMALLEST_M) == 0
    assert level_of(math.nextafter(SMALLEST_M, math.inf)) == 1
    assert level_of(1e300) == N_LEVELS - 1
    assert reach_of(N_LEVELS - 1) > 180


def test_codes_keep_the_order() -> None:
    numbers = [-math.inf, -1e300, -5.5, -1e-50, -0.0, 0.0, 5e-324, 1.0, 1.001, 7.0, 1e300, math.inf]
    codes = [int(code_of(number)) for number in numbers]
    assert codes == sorted(codes)
    assert code_of(-0.0) == code_of(0.0)
    assert codes[-1] < code_of(math.nan) == NO_VALUE


@pytest.mark.parametrize(
    ("center", "metres", "box"),
    [
        ((0, 0), 111_195.08, (-1, -1, 1, 1)),
        ((0, 60), 111_195.08, (-2.0003, 59, 2.0003, 61)),
        ((179.5, 0), 111_195.08, (178.5, -1, -179.5, 1)),
        ((-180, 0), 111_195.08, (179, -1, -179, 1)),
        ((10, 89.5), 111_195.08, (-180, 88.5, 180, 90)),
        ((10, -90), 111_195.08, (-180, -90, 180, -89)),
        ((10, 20), 1e9, (-180, -90, 180, 90)),
        ((10, 20), 0, (10, 20, 10, 20)),
    ],
)
def test_a_square(center: tuple[float, float], metres: float, box: tuple[float, ...]) -> None:
    assert box_around(Point(*center), metres) == pytest.approx(box, abs=1e-3)


def test_a_square_that_ends_at_the_antimeridian_holds_both_its_names() -> None:
    spread = box_around(Point(0, 0), 111_195)[2]
    center = Point(180 - spread, 0)
    one = Subscription("s", True, location=center, radius_m=111_195, area="square")
    assert center.lon + spread == 180
    assert box_around(center, 111_195)[2] == -180
    assert all(evaluate(one.condition, {"location": Point(lon, 0)}) for lon in (180, -180))


@pytest.mark.parametrize("lat", [0.0, 52.4, 89.9, 89.9999, 90.0, -89.99])
@pytest.mark.parametrize("is_saved", [False, True])
def test_radii_of_every_level_around_a_place(lat: float, is_saved: bool, tmp_path: Path) -> None:
    """More cells around a pole than are followed at once; in a delta, and in a base."""
    radii = [SMALLEST_M * 2**level for level in range(N_LEVELS)]
    draw = np.random.default_rng(7)
    asked = []
    for number, (radius_m, _) in enumerate((r, i) for r in radii for i in range(6)):
        away = draw.uniform(-1.2, 1.2, 2) * math.degrees(radius_m / 6_371_008.8)
        place = Point((179.99 + away[0] + 180) % 360 - 180, min(90.0, max(-90.0, lat + away[1])))
        asked.append(Subscription(f"s{number}", "TRUE", location=place, radius_m=radius_m))
    index = Index()
    index.add_many(asked)
    if is_saved:
        index.save(tmp_path / "index")
        index = Index.open(tmp_path / "index")
    for lon in (179.99, -179.999, 0.0):
        event = {"location": Point(lon, lat)}
        wanted = {one.id for one in asked if evaluate(one.condition, event)}
        assert set(index.match(event)) == wanted
        assert lon == 0.0 or wanted
