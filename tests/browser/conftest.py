"""What the tests of the page share: a browser, a service, and a page that is watched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from tests.integration.service_server import Service, running_service

BROWSER = Path(__file__).resolve().parents[2] / "scripts" / "browser.py"
NONE_HERE = 2
WAIT_MS = 20_000
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window; closed with the module, as its event loop bars others."""
    done = subprocess.run([sys.executable, BROWSER], capture_output=True, text=True, check=False)
    if done.returncode:
        if os.environ.get("CI") == "true" and done.returncode != NONE_HERE:
            pytest.fail(done.stderr)
        pytest.skip(done.stderr)
    # Chromium refuses its sandbox to root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=done.stdout.strip(), args=[*arguments, "--disable-dev-shm-usage"]
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service without the pipeline, with all its subscriptions loaded."""
    with running_service(tmp_path_factory.mktemp("service") / "data") as running:
        running.wait_until_ready()
        yield running


class Watched:
    """A page of the service, and all that it asks for and complains about."""

    def __init__(self, page: Page, service: Service) -> None:
        self.page, self.service = page, service
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        page.on("request", lambda one: self.requests.append(one))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self._note(said.type, said.text))

    def _note(self, kind: str, text: str) -> None:
        # What the network says of an answer that is no 200 is told on the page itself.
        if kind in ("error", "warning") and not text.startswith("Failed to load resource"):
            self.complaints.append(text)

    def enter(self, key: str, view: str = "") -> Page:
        """Open the page and give it a key."""
        self.page.goto(f"{self.service.url}/{view}")
        self.page.get_by_label("Your key").fill(key)
        self.page.get_by_role("button", name="Go").click()
        self.page.get_by_role("button", name="Leave").wait_for()
        return self.page

    def check(self) -> None:
        """Nothing was asked of another host, no key stood in an address, nothing went wrong."""
        host = urlsplit(self.service.url).netloc
        asked = [one.url for one in self.requests if not one.url.startswith(("data:", "blob:"))]
        assert asked
        assert [url for url in asked if urlsplit(url).netloc != host] == []
        assert [url for url in asked if "tamis_" in url] == []
        assert self.complaints == []


@pytest.fixture
def options() -> dict[str, Any]:
    """What a test wants of its browser: a size, colours, touch."""
    return {}


@pytest.fixture
def watched(browser: Browser, service: Service, options: dict[str, Any]) -> Iterator[Watched]:
    """A new page that nothing is known of, watched until the test ends."""
    wanted = {"viewport": {"width": 1280, "height": 900}, "locale": "en-GB", **options}
    context = browser.new_context(**wanted)
    context.set_default_timeout(WAIT_MS)
    made = Watched(context.new_page(), service)
    yield made
    context.close()
    made.check()
