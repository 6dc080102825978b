"""The whole way: a filter saved on the page, an event published, the match seen on the page."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.integration.test_serve import first_key, serve

SPARK_MS = 200_000  # it starts, and takes the event through two streams


@pytest.mark.spark
def test_a_match_arrives_through_the_pipeline(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path) as (process, url):
        key = first_key(tmp_path)
        page = browser.new_page()
        page.goto(url)
        page.get_by_label("Your key").fill(key)
        page.get_by_role("button", name="Go").click()
        page.locator("#filter").fill("price < 10 AND note = 'ü'")
        page.get_by_label("Name").fill("s1")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("[data-id=s1]")).to_be_visible()
        page.get_by_role("link", name="Live").click()
        expect(page.locator("#feed-state.good")).to_be_visible()
        headers = {"Authorization": f"Bearer {key}"}
        event = {"id": "e1", "price": 7, "note": "ü"}
        assert httpx.post(f"{url}/v1/events", json=event, headers=headers).status_code == 202
        expect(page.locator(".notification")).to_contain_text("e1", timeout=SPARK_MS)
        page.get_by_role("button", name="Why? e1").click()
        expect(page.locator(".tree")).to_contain_text("price = 7 is < 10")
        page.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
