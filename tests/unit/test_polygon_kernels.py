"""Polygons in chains of edges and in cells: as every edge says, one by one."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import shapely

from tamis import Event, Index, Subscription, col, evaluate
from tamis.events import EventStore
from tamis.kernels import polygons
from tamis.kernels.polygons import CHAIN, HEADER, UNKNOWN, is_in_polygon
from tamis.kernels.verdicts import ACCEPTED, REJECTED, UNDECIDED
from tamis.slots.polygons import Inside, chains_of
from tamis.values import Point, Polygon


def _star(n: int, center: tuple[float, float], random: np.random.Generator) -> list[list[float]]:
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    reach = random.uniform(0.3, 1.0, n)
    x, y = center[0] + reach * np.cos(angle), center[1] + reach * np.sin(angle)
    ring = np.stack([x, y], axis=1).tolist()
    return [*ring, ring[0]]


def _shapes() -> list[Polygon]:
    random = np.random.default_rng(5)
    whole = shapely.Polygon(
        [(-3, -3), (3, -3), (3, 3), (-3, 3)], [_star(40, (0, 0), random), _star(17, (2, 2), random)]
    )
    parts = [shapely.Polygon(_star(n, (4 * n, 1), random)) for n in (3, 16, 33)]
    return [
        *(Polygon(shapely.Polygon(_star(n, (0, 0), random))) for n in (3, 15, 16, 17, 32, 500)),
        Polygon(whole),
        Polygon(shapely.MultiPolygon(parts)),
        Polygon(shapely.box(0, 0, 1, 1)),
    ]


def _is_inside(x: float, y: float, polygon: Polygon) -> bool:
    """Even-odd over all edges; not for points on a border."""
    n_crossed = 0
    for ring in itertools.chain.from_iterable(polygon.rings):
        for (x1, y1), (x2, y2) in itertools.pairwise(ring):
            if (y1 <= y) != (y2 <= y):
                n_crossed += x < x1 + (y - y1) * (x2 - x1) / (y2 - y1)
    return n_crossed % 2 == 1


@pytest.mark.parametrize("polygon", _shapes())
def test_chains_tell_what_edges_tell(polygon: Polygon) -> None:
    random = np.random.default_rng(6)
    lists = np.array([-7.0, *chains_of(polygon)])
    west, south, east, north = polygon.bounds
    points = random.uniform((west - 0.1, south - 0.1), (east + 0.1, north + 0.1), (2000, 2))
    said = [is_in_polygon(x, y, lists, 1) for x, y in points]
    assert set(said) <= {ACCEPTED, REJECTED, UNDECIDED}
    assert said.count(UNDECIDED) < 5
    for (x, y), one in zip(points.tolist(), said, strict=True):
        if one != UNDECIDED:
            assert (one == ACCEPTED) == _is_inside(x, y, polygon)
    assert ACCEPTED in said
    assert REJECTED in said


def test_cells_decide_also_between_two_rings() -> None:
    low = [(x + 0.05, y + 0.05) for x in range(6) for y in range(6)]
    holes = [shapely.box(x, y, x + 0.9, y + 0.9).exterior for x, y in low]
    sieve = shapely.Polygon(shapely.box(0, 0, 6, 6).exterior, holes)
    lists = np.array([-7.0, *chains_of(Polygon(sieve))])
    points = np.random.default_rng(9).uniform(0, 6, (1000, 2))
    told = [polygons._is_in_cell(x, y, lists, 1) for x, y in points.tolist()]
    cells = lists[1 + HEADER + CHAIN * int(lists[1]) :][: int(lists[2]) ** 2]
    n_known = sum(cells[polygons._cell_of(x, y, lists, 1)] >= 0 for x, y in points.tolist())
    assert len(points) - told.count(UNDECIDED) == n_known > 500


@pytest.mark.parametrize("polygon", _shapes())
def test_corners_are_inside(polygon: Polygon) -> None:
    inside = Inside(polygon)
    for ring in itertools.chain.from_iterable(polygon.rings):
        # A ray through corners crosses each once; those on the ray are told exactly.
        assert all(inside(Point(x, y)) and polygon.contains(Point(x, y)) for x, y in ring)


ON_BORDER = (
    "POLYGON ((-1.0365755737856016e-06 1.218559287905227e-06, "
    "-3.506058944130804e-06 -1.5156296603334874e-06, "
    "5.723825820820662e-07 -2.2500789328655987e-06, "
    "-1.0365755737856016e-06 1.218559287905227e-06))",
    Point(1.7014304311514925e-07, -1.3829193776728923e-06),
)


def test_a_border_counts_as_inside_wherever_it_is_asked() -> None:
    text, point = ON_BORDER
    polygon = Polygon.from_wkt(text)
    index, store = Index(), EventStore()
    asked = Subscription("s", col("location").within(polygon))
    index.add(asked)
    store.insert(Event("e", {"location": point}))
    assert polygon.contains(point)
    assert evaluate(asked.condition, {"location": point})
    assert index.explain("s", {"location": point}).held
    assert index.match({"location": point}) == ["s"]
    assert store.match(asked) == ["e"]


@pytest.mark.parametrize("scale", [1e-90, 1e-6, 1.0, 1e-3, 1e90])
def test_points_next_to_a_border_are_told_exactly(scale: float) -> None:
    random = np.random.default_rng(8)
    n_on = 0
    for _ in range(300):
        corners = (random.uniform(-5, 5, (3, 2)) * scale).tolist()
        polygon = Polygon(list(map(tuple, corners)))
        (x1, y1), (x2, y2), _ = corners
        part = random.choice([0.25, 0.5, 0.75])
        x, y = x1 + (x2 - x1) * part, y1 + (y2 - y1) * part
        for point in (Point(x, y), Point(math.nextafter(x, math.inf), y), Point(x, -y)):
            turns = [_turn(point, a, b) for a, b in itertools.pairwise([*corners, corners[0]])]
            wanted = min(turns) >= 0 or max(turns) <= 0
            n_on += 0 in turns
            assert polygon.contains(point) == Inside(polygon)(point) == wanted, (polygon, point)
    assert n_on > 3


def _turn(point: Point, a: list[float], b: list[float]) -> Fraction:
    (x1, y1), (x2, y2) = (map(Fraction, corner) for corner in (a, b))
    return (x2 - x1) * (Fraction(point.lat) - y1) - (Fraction(point.lon) - x1) * (y2 - y1)


def test_every_edge_is_in_one_chain() -> None:
    for polygon in _shapes():
        held = chains_of(polygon)
        n_chains, n_cells = int(held[0]), int(held[1])
        chains = np.reshape(held[HEADER : HEADER + CHAIN * n_chains], (-1, CHAIN)).astype(int)
        corners = np.reshape(held[HEADER + CHAIN * n_chains + n_cells**2 :], (-1, 2)).tolist()
        edges = [edge for chain in chains for edge in range(chain[4], chain[5])]
        told = [(corners[edge], corners[edge + 1]) for edge in edges]
        rings = [ring for part in polygon.rings for ring in part]
        assert len(set(edges)) == len(edges)
        assert told == [(list(a), list(b)) for ring in rings for a, b in itertools.pairwise(ring)]


def _comb(n_teeth: int) -> Polygon:
    """Teeth on a lattice: corners, edges and points share their coordinates."""
    up = [(float(x), float(y)) for x in range(0, 2 * n_teeth, 2) for y in (1, 9)]
    teeth = [(x + 1.0 * (k % 4 > 1), y) for k, (x, y) in enumerate(up)]
    return Polygon(shapely.Polygon([(-1, 0), *teeth, (2 * n_teeth, 0)]).buffer(0))


def _spiral(n: int) -> Polygon:
    turn = np.linspace(0, 12 * np.pi, n)
    inner, outer = (np.stack([r * np.cos(turn), r * np.sin(turn)], 1) for r in (turn, turn + 2))
    return Polygon(shapely.Polygon([*inner.tolist(), *outer[::-1].tolist()]))


def _crowded() -> list[Polygon]:
    random = np.random.default_rng(9)
    stars = [shapely.Polygon(_star(n, (3 * n, n % 7), random)) for n in (5, 40, 90)]
    whole = shapely.Polygon(
        shapely.box(-9, -9, 9, 9).exterior.segmentize(0.5),
        [
            _star(200, (0, 0), random),
            _star(60, (5, 5), random),
            shapely.box(-8, -8, -7, 8).exterior,
        ],
    )
    tiny = shapely.Polygon(_star(300, (0, 0), random))
    return [
        _comb(30),
        _spiral(400),
        Polygon(whole),
        Polygon(shapely.MultiPolygon(stars)),
        Polygon(shapely.box(0, 0, 3, 3).segmentize(0.25)),
        Polygon(shapely.transform(tiny, lambda at: at * 1e-12 + (121.0, 31.0))),
        Polygon(shapely.transform(tiny, lambda at: at * (1e-9, 1e9))),
        Polygon(shapely.Polygon(_star(3000, (0, 0), random))),
    ]


@pytest.mark.parametrize("polygon", _crowded())
def test_cells_tell_what_edges_tell(polygon: Polygon) -> None:
    random = np.random.default_rng(10)
    inside, lists = Inside(polygon), np.array(chains_of(polygon))
    assert lists[1] > 0, "there is a grid"
    west, south, east, north = polygon.bounds
    corners = np.array([corner for part in polygon.rings for ring in part for corner in ring])
    some = corners[random.integers(0, len(corners), (300, 2))]
    points = np.concatenate([
        random.uniform((west, south), (east, north), (600, 2)),
        some[:, 0],  # on corners, between them and level with them
        some.mean(axis=1),
        np.stack([some[:, 0, 0], some[:, 1, 1]], axis=1),
        np.round(random.uniform((west, south), (east, north), (200, 2)) * 4) / 4,
        corners[:40] + random.uniform(-1, 1, (40, 2)) * 1e-15 * np.abs(corners).max(),
    ])  # fmt: skip
    n_undecided = 0
    for x, y in points.tolist():
        said, wanted = is_in_polygon(x, y, lists, 0), inside._is_inside_exactly(Point(x, y))
        assert said == UNDECIDED or (said == ACCEPTED) == wanted, (x, y)
        assert inside(Point(x, y)) == polygon.contains(Point(x, y)) == wanted
        n_undecided += said == UNDECIDED
    assert n_undecided < len(points)


def test_most_cells_know_most_of_the_answer() -> None:
    lists = np.array(chains_of(_crowded()[-1]))
    first = HEADER + CHAIN * int(lists[0])
    cells = lists[first : first + int(lists[1]) ** 2]
    assert len(cells) == 64 * 64
    assert np.count_nonzero(cells == UNKNOWN) < len(cells) / 20
    assert {int(cell) & 1 for cell in cells if cell != UNKNOWN} == {0, 1}
