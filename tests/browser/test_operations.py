"""The operators' view.

But for the first test the answers of `/v1/operations` and `/v1/deliveries` are mounted here, not
the service's: of a service at rest they would show little.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Watched
from tests.integration.sending import give_up

NOTHING: dict[str, Any] = {
    "time": None, "events": None, "matches": {"total": None, "per_s": None}, "lag_s": None,
    "index": None, "notifications": None, "deliveries": None, "history": None, "broadest": None,
    "costliest": None,
}  # fmt: skip
BUSY: dict[str, Any] = {
    "time": "2026-01-01T09:05:00Z",
    "events": {"total": 1_234_567, "per_s": 412.25},
    "matches": {"total": 98_765, "per_s": 0.125},
    "lag_s": 0.25,
    "index": {"version": 42, "n_subscriptions": 100_000},
    "notifications": {"total": 5},
    "deliveries": {
        "waiting": 12, "sent": 900, "failed": 3, "dead": 2, "oldest_waiting_s": 150,
        "destinations": [
            {"destination": "https://hooks.example.org", "is_open": True, "failures": 12},
            {"destination": "mail", "is_open": False, "failures": 1},
        ],
    },
    "history": [
        {"time": f"2026-01-01T09:0{n}:00Z", "events_per_s": 100 * n, "matches_per_s": n,
         "lag_s": None if n == 2 else 0.5, "deliveries_per_s": 2}
        for n in range(5)
    ],
    "broadest": [{"id": "<b>all</b>", "share": 0.93, "matches": 10_000}],
    "costliest": [{"id": "polygon", "cost_us": 41.25, "matches": None}],
}  # fmt: skip
DEAD = [
    {
        "notification_id": f"{n:032x}", "subscription_id": f"dead-{n}", "transport": "webhook",
        "destination": "https://hooks.example.org", "attempts": 12, "last_error": "answered 500",
        "last_time": "2026-01-01T09:00:00Z",
    }
    for n in range(2)
]  # fmt: skip


def answer(page: Page, path: str, told: dict[str, Any], status: int = 200) -> None:
    """Let the page be answered so, instead of by the service."""

    def fulfil(route: Route) -> None:
        route.fulfill(status=status, json=told)

    page.route(f"**{path}", fulfil)


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page


def tile(page: Page, name: str) -> Any:
    return page.locator(".tile", has_text=name)


def test_what_the_service_tells_and_replays(watched: Watched, page: Page) -> None:
    with ThreadPoolExecutor(1) as apart:  # the browser's event loop runs in this thread
        apart.submit(give_up, watched.service.database, 2).result()
    watched.enter(watched.service.admin, "#/operations")
    given_up = page.get_by_role("row", name="s1")
    expect(given_up).to_have_count(2)
    expect(given_up.first).to_contain_text("410")
    expect(tile(page, "Given up").locator("strong")).to_have_text("2")
    page.get_by_role("button", name="Try all again").click()
    expect(page.get_by_text("2 deliveries will be tried again").first).to_be_visible()
    expect(page.get_by_text("None: every delivery arrived")).to_be_visible()
    expect(tile(page, "Given up").locator("strong")).to_have_text("0")


def test_figures_charts_and_rankings(watched: Watched, page: Page) -> None:
    answer(page, "/v1/operations", BUSY)
    answer(page, "/v1/deliveries?*", {"items": [], "next": None})
    watched.enter(watched.service.admin, "#/operations")
    expect(tile(page, "Events a second")).to_contain_text("412")
    expect(tile(page, "Matches a second")).to_contain_text("0.125")
    expect(tile(page, "Lag")).to_contain_text("250 ms")
    expect(tile(page, "Subscriptions")).to_contain_text("100,000")
    expect(tile(page, "Waiting to be sent")).to_contain_text("longest overdue: 3 min")
    expect(page.get_by_role("row", name="<b>all</b>")).to_contain_text("93 %")
    expect(page.get_by_role("row", name="polygon")).to_contain_text("41.3")
    expect(page.get_by_role("row", name="hooks.example.org")).to_contain_text("resting")
    expect(page.get_by_role("row", name="mail")).to_contain_text("still tried")

    chart = page.get_by_role("img", name="Events and matches a second")
    expect(chart).to_have_accessible_name("Events and matches a second. events 400matches 4")
    drawn = chart.locator("path.first").get_attribute("d")
    assert drawn is not None
    assert (drawn.count("M"), drawn.count("L")) == (1, 4)
    chart.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".chart").first).to_contain_text("events 300")
    # Where nothing is known the line is broken, and not drawn to zero.
    lag = page.get_by_role("img", name="Lag").locator("path.first").get_attribute("d")
    assert lag is not None
    assert (lag.count("M"), lag.count("L")) == (2, 2)


def test_what_is_not_known_is_not_invented(watched: Watched, page: Page) -> None:
    answer(page, "/v1/operations", NOTHING)
    answer(page, "/v1/deliveries?*", {"items": [], "next": None})
    watched.enter(watched.service.admin, "#/operations")
    for name in ("Events a second", "Matches a second", "Lag", "Waiting to be sent", "Given up"):
        expect(tile(page, name).locator("strong")).to_have_text("–")
    expect(page.get_by_text("Not known.")).to_have_count(3)
    expect(page.get_by_text("The figures of the pipeline are not known here")).to_be_visible()


def test_failed_deliveries_are_tried_again(watched: Watched, page: Page) -> None:
    left, asked = list(DEAD), []

    def deliveries(route: Route) -> None:
        after = "cursor=more" in route.request.url
        route.fulfill(json={"items": left[1:] if after else left[:1],
                            "next": "more" if len(left) > 1 and not after else None})  # fmt: skip

    def replay(route: Route) -> None:
        body = json.loads(route.request.post_data or "")
        asked.append(body)
        left[:] = [
            one for one in left if "ids" in body and one["notification_id"] not in body["ids"]
        ]
        route.fulfill(json={"replayed": 1})

    answer(page, "/v1/operations", BUSY)
    page.route("**/v1/deliveries?*", deliveries)
    page.route("**/v1/deliveries/replay", replay)
    watched.enter(watched.service.admin, "#/operations")
    chosen = page.get_by_role("button", name="Try the chosen again")
    expect(page.get_by_role("row", name="dead-0")).to_contain_text("answered 500")
    expect(chosen).to_be_disabled()
    page.get_by_role("button", name="Load more").click()
    page.get_by_label("Choose dead-1").check()
    chosen.click()
    expect(page.get_by_text("1 delivery will be tried again").first).to_be_visible()
    expect(page.get_by_role("row", name="dead-1")).to_have_count(0)
    page.get_by_role("button", name="Try all again").click()
    expect(page.get_by_text("None: every delivery arrived")).to_be_visible()
    assert asked == [{"ids": [DEAD[1]["notification_id"]]}, {"all": True}]


def test_a_service_that_does_not_tell_them(watched: Watched, page: Page) -> None:
    answer(page, "/v1/operations", {"title": "Not Found", "status": 404}, 404)
    watched.enter(watched.service.admin, "#/operations")
    expect(page.get_by_text("Not available: this service")).to_be_visible()


def test_a_service_that_is_away_is_asked_again(watched: Watched, page: Page) -> None:
    is_away = [True]

    def operations(route: Route) -> None:
        if is_away:
            is_away.pop()
            route.fulfill(status=503, json={"detail": "the database is away"})
        else:
            route.fulfill(json=BUSY)

    page.route("**/v1/operations", operations)
    answer(page, "/v1/deliveries?*", {"items": [], "next": None})
    watched.enter(watched.service.admin, "#/operations")
    expect(page.get_by_text("the database is away")).to_be_visible()
    expect(tile(page, "Events a second")).to_contain_text("412")
    expect(page.get_by_text("the database is away")).to_be_hidden()


def test_only_operators_have_the_view(watched: Watched, page: Page) -> None:
    watched.enter(watched.service.key("zoe"), "#/operations")
    expect(page.get_by_role("heading", name="New filter")).to_be_visible()
    expect(page.get_by_role("link", name="Operations")).to_have_count(0)
    assert not any("/v1/operations" in one.url for one in watched.requests)
