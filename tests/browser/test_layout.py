"""The page on a phone and in the dark: nothing is cut off, and everything can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched
from tests.browser.notices import tell
from tests.browser.test_operations import BUSY, DEAD, answer

LONG = "x" * 120


def contrasts(page: Page) -> list[str]:
    """The texts whose contrast with what is behind them is below 4.5 (WCAG AA)."""
    found: list[str] = page.evaluate(
        """() => {
      const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
      const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
      const behind = (element) => {
        for (let one = element; one; one = one.parentElement) {
          const colour = parse(getComputedStyle(one).backgroundColor);
          if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return parse(getComputedStyle(document.body).backgroundColor);
      };
      const low = [];
      for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
        if (!own || !element.checkVisibility() || element.disabled) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) low.push(`${ratio.toFixed(2)}: ${element.textContent.slice(0, 40)}`);
      }
      return low;
    }"""
    )
    return found


def unnamed(page: Page) -> int:
    """How many inputs and buttons have no name that could be read out."""
    return int(
        page.evaluate(
            """() => [...document.querySelectorAll("input, textarea, select, button, a, canvas")]
      .filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim())).length"""
        )
    )


SIZES: dict[str, dict[str, Any]] = {
    "phone, light": {"viewport": {"width": 360, "height": 740}, "is_mobile": True,
                     "has_touch": True, "color_scheme": "light"},
    "desktop, dark": {"color_scheme": "dark"},
}  # fmt: skip


@pytest.mark.parametrize("options", SIZES.values(), ids=SIZES.keys())
def test_every_view_fits_and_can_be_read(watched: Watched) -> None:
    service, page = watched.service, watched.page
    with service.client() as admin:
        events = {"id": LONG, "attributes": {LONG: LONG, "price": 3, "note": "words " * 60}}
        assert admin.post("/v1/events", json=events).status_code == 202
        body = {"filter": f"note = '{LONG}'", "delivery": {"mail": "zoe@example.org"}}
        assert admin.put(f"/v1/subscriptions/{LONG}", json=body).is_success
        admin.patch(f"/v1/subscriptions/{LONG}", json={"is_paused": True})
    tell(service, "root", LONG, {"id": LONG, LONG: LONG})
    answer(page, "/v1/operations", BUSY)
    answer(page, "/v1/deliveries?*", {"items": DEAD, "next": None})

    def check() -> None:
        width, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= window
        assert contrasts(page) == []
        assert unnamed(page) == 0

    page.goto(service.url)
    expect(page.get_by_label("Your key")).to_be_visible()
    check()
    watched.enter(service.admin)
    page.locator("#filter").fill("price <")
    expect(page.get_by_text("✗ not valid")).to_be_visible()
    check()
    page.locator("#filter").fill("price < 5")
    page.get_by_role("button", name="Why?").first.click()
    expect(page.locator(".tree")).to_be_visible()
    page.get_by_text("Draw an area on the map").click()
    expect(page.locator(".map-said")).to_contain_text("in view")
    check()
    page.get_by_role("link", name="Subscriptions").click()
    expect(page.locator(".subscription").first).to_be_visible()
    check()
    page.get_by_role("link", name="Live").click()
    expect(page.locator(".notification").first).to_be_visible()
    expect(page.locator("#feed-state.good")).to_be_visible()
    check()
    page.get_by_role("link", name="Operations").click()
    expect(page.get_by_role("row", name="dead-1")).to_be_visible()
    check()
    assert json.dumps(watched.complaints) == "[]"
