"""Areas drawn on the map with mouse, touch and keys, and what they do to a filter."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tamis.language import col, evaluate, parse_filter, to_sql
from tamis.values import Point, Polygon
from tests.browser.conftest import Watched
from tests.integration.service_server import Service

WEST, SOUTH, EAST, NORTH = 0, 40, 20, 60
PLACES = {
    "south-west": (WEST, SOUTH), "north-east": (EAST, NORTH), "middle": (10, 50),
    "west": (4, 50), "north": (10, 58),
}  # fmt: skip
NUMBER = r"(-?[\d.]+)"


@pytest.fixture(scope="module", autouse=True)
def events(service: Service) -> None:
    """Five events with a point, which the map shows at first, and one without."""
    lines = [
        {"id": name, "attributes": {"place": {"type": "Point", "coordinates": at}, "price": 3}}
        for name, at in PLACES.items()
    ]
    text = "\n".join(json.dumps(one) for one in [*lines, {"id": "nowhere", "price": 3}])
    kind = {"Content-Type": "application/x-ndjson"}
    with service.client() as admin:
        assert admin.post("/v1/events", content=text, headers=kind).status_code == 202


@dataclass
class Map:
    """The map on a page, as it is when it was just opened."""

    page: Page

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Where it is in the window now, and how large; without its border of one pixel."""
        canvas = self.page.get_by_role("application", name="Map")
        canvas.scroll_into_view_if_needed()
        found = canvas.bounding_box()
        assert found is not None
        return found["x"] + 1, found["y"] + 1, found["width"] - 2, found["height"] - 2

    @property
    def scale(self) -> float:
        """Pixels for a degree: all events are in view, with some room."""
        _, _, width, height = self.box
        return min(width / (EAST - WEST), height / (NORTH - SOUTH)) / 1.4

    @property
    def middle(self) -> tuple[float, float]:
        """Its middle in the window."""
        x, y, width, height = self.box
        return x + width / 2, y + height / 2

    def pixel(self, lon: float, lat: float) -> tuple[float, float]:
        """Where a place is in the window."""
        x, y = self.middle
        return x + (lon - 10) * self.scale, y - (lat - 50) * self.scale

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the mouse at a place and release it at another."""
        self.page.mouse.move(*self.pixel(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.pixel(*end), steps=5)
        self.page.mouse.up()

    def choose(self, tool: str) -> None:
        """Take a tool."""
        self.page.get_by_role("button", name=tool, exact=True).click()

    def put_in(self) -> str:
        """Put what was drawn into the filter, and give the filter."""
        self.page.get_by_role("button", name="Put into the filter").click()
        expect(self.page.get_by_text("It stands in the filter now.")).to_be_visible()
        return self.page.locator("#filter").input_value()

    def near(self, found: str, wanted: float) -> bool:
        """Whether a coordinate is the wanted one, but for a pixel or two."""
        return abs(float(found) - wanted) <= 2 / self.scale


def open_map(watched: Watched, name: str) -> Map:
    page = watched.enter(watched.service.key(name))
    page.get_by_text("Draw an area on the map").click()
    expect(page.get_by_label("Attribute with the point")).to_have_value("place")
    expect(said(page)).to_have_text("5 events of the last 6 events in view.")
    return Map(page)


def said(page: Page) -> Any:
    return page.locator(".map-said")


def tried(page: Page) -> Any:
    return page.get_by_role("complementary", name="Recent events")


ATTRIBUTES = ["place", "car.place", "in", 'a "b"', "Örtlichkeit", "1st", "x'y & z=%+", "😀"]
SHAPES: list[tuple[dict[str, Any], Any]] = [
    ({"kind": "box", "west": 170, "south": -1.5, "east": -170, "north": 1e-7},
     lambda one: one.in_box(170, -1.5, -170, 1e-7)),
    ({"kind": "circle", "lon": -0.5, "lat": 51.5, "metres": 1500},
     lambda one: one.distance(-0.5, 51.5) <= 1500),
    ({"kind": "polygon", "rings": [[[0, 0], [4.5, 0], [4.5, 4], [0, 4]]]},
     lambda one: one.within(Polygon.from_wkt("POLYGON ((0 0, 4.5 0, 4.5 4, 0 4, 0 0))"))),
]  # fmt: skip


def test_clauses_mean_what_was_drawn(watched: Watched) -> None:
    """In every spelling, for names that need quotes too; and read back they are the same shape."""
    page = watched.page
    page.goto(watched.service.url)
    for attribute in ATTRIBUTES:
        for shape, make in SHAPES:
            wanted = make(col(attribute))
            for spelling in ("sql", "query", "json"):
                clause = page.evaluate(
                    """async ([shape, attribute, spelling]) => {
                      const { clauseOf } = await import("/page/map_shapes.js");
                      return clauseOf(shape, attribute, spelling);
                    }""",
                    [shape, attribute, spelling],
                )
                given = clause if spelling == "json" else str(clause)
                made = parse_filter(given) if spelling == "json" else parse_filter(given, spelling)
                assert made == wanted, clause
            named, found = page.evaluate(
                """async (sql) => {
                  const { attributeIn, shapesIn } = await import("/page/map_shapes.js");
                  return [attributeIn(sql), shapesIn(sql)];
                }""",
                f"price < 3 OR NOT {to_sql(wanted)}",
            )
            assert (named, len(found)) == (attribute, 1)
            assert found[0]["kind"] == shape["kind"]
            if shape["kind"] != "polygon":  # whose corners the service may order otherwise
                assert found == [shape]


CIRCLES = [(4.9, 52.4, 2_000), (179.9, -17, 500_000), (20, 78, 2_000_000), (0, -90, 1_000_000)]


@pytest.mark.parametrize(("lon", "lat", "metres"), CIRCLES)
def test_a_circle_is_drawn_where_its_rim_is(
    watched: Watched, lon: float, lat: float, metres: float
) -> None:
    watched.page.goto(watched.service.url)
    (rim,) = watched.page.evaluate(
        """async (shape) => (await import("/page/map_shapes.js")).outline(shape)""",
        {"kind": "circle", "lon": lon, "lat": lat, "metres": metres},
    )
    rim = [(at, height) for at, height in rim if abs(height) < 90]  # without the pole
    assert len(rim) >= 96
    for factor, is_held in ((0.999, False), (1.001, True)):
        area = col("place").distance(lon, lat) <= metres * factor
        for at, height in rim:
            place = Point((at + 180) % 360 - 180, height)
            assert evaluate(area, {"place": place}) is is_held


def test_a_box_is_dragged_with_the_mouse(watched: Watched) -> None:
    drawn = open_map(watched, "ann")
    page = drawn.page
    page.locator("#filter").fill("price < 5 -- cheap")
    drawn.choose("Box")
    drawn.drag((15, 45), (2, 55))
    expect(said(page)).to_contain_text(re.compile("Box from .*: 2 events of the last 6 events"))
    found = re.fullmatch(
        rf"price < 5 -- cheap\nAND box\(place, {NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}\)",
        drawn.put_in(),
    )
    assert found is not None
    assert all(map(drawn.near, found.groups(), (2, 45, 15, 55)))
    expect(tried(page)).to_contain_text("2 of the last 6 events")

    # Another one stands instead of the first, not beside it.
    drawn.drag((9, 57), (11, 59))
    expect(said(page)).to_contain_text("1 event of the last 6 events")
    text = drawn.put_in()
    assert text.count("box(") == 1
    expect(tried(page)).to_contain_text("1 of the last 6 events")
    expect(tried(page).get_by_role("article")).to_contain_text("north")


def test_a_circle_is_set_by_two_clicks_beside_alternatives(watched: Watched) -> None:
    drawn = open_map(watched, "bob")
    page = drawn.page
    page.locator("#filter").fill("price < 5 OR price > 7")
    drawn.choose("Circle")
    page.mouse.click(*drawn.pixel(10, 50))
    page.mouse.click(*drawn.pixel(10, 59))
    expect(said(page)).to_contain_text(re.compile("Circle of .* km around"))
    found = re.fullmatch(
        rf"\(price < 5 OR price > 7\n\)\nAND distance\(place, {NUMBER}, {NUMBER}\) <= (\d+)",
        drawn.put_in(),
    )
    assert found is not None
    assert drawn.near(found[1], 10)
    assert drawn.near(found[2], 50)
    # Nine degrees of a great circle; the metres are rounded to three digits.
    assert abs(int(found[3]) - 9 * 111_195) < 111_195 * 2 / drawn.scale + 5_000
    expect(tried(page)).to_contain_text("3 of the last 6 events")  # middle, west, north


def test_a_polygon_is_closed_at_its_first_corner(watched: Watched) -> None:
    drawn = open_map(watched, "cat")
    page = drawn.page
    drawn.choose("Polygon")
    corners = [(8, 48), (12, 48), (12, 59), (8, 59)]
    for corner in [*corners, corners[0]]:
        page.mouse.click(*drawn.pixel(*corner))
    expect(said(page)).to_contain_text("Polygon with 4 corners: 2 events")
    found = re.fullmatch(r"within\(place, 'POLYGON \(\((.*)\)\)'\)", drawn.put_in())
    assert found is not None
    points = [point.split(" ") for point in found[1].split(", ")]
    assert points[0] == points[-1]
    for (lon, lat), corner in zip(points, corners, strict=False):
        assert drawn.near(lon, corner[0])
        assert drawn.near(lat, corner[1])
    expect(tried(page)).to_contain_text("2 of the last 6 events")

    # One that crosses itself is no polygon, and the service says so.
    for corner in [(8, 48), (12, 52), (12, 48), (8, 52)]:
        page.mouse.click(*drawn.pixel(*corner))
    page.get_by_role("button", name="Close the polygon").click()
    expect(said(page)).to_contain_text("polygon")
    expect(said(page)).not_to_contain_text("events")


def test_a_box_is_drawn_with_keys_alone(watched: Watched) -> None:
    drawn = open_map(watched, "dan")
    page = drawn.page
    page.get_by_role("button", name="Box", exact=True).focus()
    page.keyboard.press("Enter")
    for _ in range(5):  # circle, polygon, out, in, the map
        page.keyboard.press("Tab")
    expect(page.get_by_role("application", name="Map")).to_be_focused()
    for key in ("Shift+ArrowLeft", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(said(page)).to_contain_text("Set at ")
    page.keyboard.press("Escape")  # begin anew, there
    for key in ("Enter", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowUp", "Enter"):
        page.keyboard.press(key)
    expect(said(page)).to_contain_text("Box from")
    page.get_by_role("button", name="Put into the filter").focus()
    page.keyboard.press("Enter")
    found = re.fullmatch(rf"box\(place, {NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}\)", drawn.put_in())
    assert found is not None
    far, near = 60 / drawn.scale, 10 / drawn.scale
    wanted = (10 - far, 50 - near, 10 + far, 50 - near + far)
    assert all(map(drawn.near, found.groups(), wanted))


def test_the_map_is_moved_and_zoomed(watched: Watched) -> None:
    drawn = open_map(watched, "eve")
    page = drawn.page
    drawn.drag((4, 50), (26, 50))  # only what is west of 8° is left
    expect(said(page)).to_have_text("2 events of the last 6 events in view.")
    drawn.drag((26, 50), (4, 50))
    expect(said(page)).to_have_text("5 events of the last 6 events in view.")
    page.mouse.move(*drawn.pixel(4, 50))
    for _ in range(8):
        page.mouse.wheel(0, -100)
    expect(said(page)).to_have_text("1 event of the last 6 events in view.")
    for _ in range(20):
        page.get_by_role("button", name="Zoom out").click()
    expect(said(page)).to_have_text("5 events of the last 6 events in view.")


def test_a_box_across_the_antimeridian(watched: Watched) -> None:
    key = watched.service.key("fay", "subscriber", "publisher")
    with watched.service.client(key) as fay:
        fay.post("/v1/subscriptions", json={
            "id": "pacific", "filter": "box(place, 170, -20, -170, 0)"
        })  # fmt: skip
    page = watched.enter(key, "#/filter/pacific")
    expect(page.locator("#filter")).to_have_value("box(place, 170, -20, -170, 0)")
    page.get_by_text("Draw an area on the map").click()
    expect(said(page)).to_contain_text("0 events")  # the view is where the filter's box is
    page.get_by_role("button", name="Box", exact=True).click()
    middle = Map(page).middle
    page.mouse.move(middle[0] - 40, middle[1] - 40)
    page.mouse.down()
    page.mouse.move(middle[0] + 40, middle[1] + 40, steps=3)
    page.mouse.up()
    expect(said(page)).to_contain_text("Box from 17")
    page.get_by_label("Spelling").select_option("query")
    page.locator("#filter").fill("price=3")
    page.get_by_role("button", name="Put into the filter").click()
    found = re.fullmatch(
        rf"price=3&place_box={NUMBER},{NUMBER},{NUMBER},{NUMBER}",
        page.locator("#filter").input_value(),
    )
    assert found is not None
    assert 170 < float(found[1]) < 180
    assert -180 < float(found[3]) < -170
    expect(page.get_by_text("✓ valid")).to_be_visible()

    page.get_by_label("Spelling").select_option("json")
    page.locator("#filter").fill('{"attribute": "price", "op": "="')
    page.get_by_role("button", name="Put into the filter").click()
    expect(said(page)).to_contain_text("no JSON yet")
    page.locator("#filter").fill('{"attribute": "price", "op": "=", "value": 3}')
    for _ in range(2):  # the second time it is there already
        page.get_by_role("button", name="Put into the filter").click()
        made = json.loads(page.locator("#filter").input_value())
        assert [one["op"] for one in made["and"]] == ["=", "box"]
    expect(page.get_by_text("✓ valid")).to_be_visible()


class TestTouch:
    """A phone."""

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}

    def test_a_polygon_is_tapped(self, watched: Watched) -> None:
        drawn = open_map(watched, "gus")
        page = drawn.page
        page.get_by_role("button", name="Polygon").tap()
        for corner in [(2, 46), (12, 46), (12, 54)]:
            page.touchscreen.tap(*drawn.pixel(*corner))
        page.get_by_role("button", name="Close the polygon").tap()
        expect(said(page)).to_contain_text("Polygon with 3 corners: 1 event of")
        assert drawn.put_in().startswith("within(place, 'POLYGON ((")
        expect(tried(page).get_by_role("article")).to_contain_text("middle")

    def test_two_fingers_zoom_and_one_draws(self, watched: Watched) -> None:
        drawn = open_map(watched, "hal")
        page = drawn.page
        page.get_by_role("button", name="Box", exact=True).tap()
        session = page.context.new_cdp_session(page)

        def touch(kind: str, *places: tuple[float, float]) -> None:
            points = [
                {"x": x, "y": y, "id": number}
                for number, (x, y) in enumerate(drawn.pixel(*place) for place in places)
            ]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        touch("touchStart", (9, 50))
        touch("touchStart", (9, 50), (11, 50))
        for spread in (3, 5, 7):
            touch("touchMove", (10 - spread, 50), (10 + spread, 50))
        touch("touchEnd")
        expect(said(page)).to_have_text("1 event of the last 6 events in view.")
        expect(page.get_by_role("button", name="Put into the filter")).to_be_disabled()

        touch("touchStart", (8, 48))
        touch("touchMove", (10, 50))
        touch("touchMove", (12, 52))
        touch("touchEnd")
        expect(said(page)).to_contain_text(re.compile("Box from .*: 1 event of"))
        session.detach()
