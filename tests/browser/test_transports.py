"""Fields of transports: those that there are, and one that is put there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Watched
from tests.integration.dropped_transport import dropped


@pytest.fixture
def pager(tmp_path: Path) -> Iterator[None]:
    """A transport more than there are."""
    with dropped(tmp_path):
        yield


def test_the_fields_of_the_transports(watched: Watched) -> None:
    page = watched.enter(watched.service.key("ann"))
    told = page.locator(".told .fields").last
    names = ["When", "At most", "Matches in one message", "Webhook", "Mail", "Chat (Apprise)"]
    assert told.locator("label").all_inner_texts() == names
    webhook, mail, chat = (page.get_by_label(name, exact=True) for name in names[3:])
    expect(webhook).to_have_attribute("type", "url")
    expect(webhook).to_have_attribute("placeholder", "https://…")
    expect(mail).to_have_attribute("inputmode", "email")
    expect(mail).to_have_accessible_description("several with commas")
    expect(chat).to_have_attribute("placeholder", "slack://…")
    expect(chat).to_have_accessible_description("several with spaces")


@pytest.mark.usefixtures("pager")
def test_a_transport_that_is_one_file_has_a_field_and_a_chip(watched: Watched) -> None:
    key = watched.service.key("bob")
    page = watched.enter(key)
    page.locator("#filter").fill("price < 5")
    page.get_by_label("Name").fill("beeps")
    page.get_by_label("Pager").fill("zoe")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("pager 'zoe' is not a number")
    page.get_by_label("Pager").fill("17 4")
    page.get_by_role("button", name="Save").click()
    card = page.locator("[data-id=beeps]")
    expect(card.locator(".chip", has_text="pager")).to_be_visible()
    with watched.service.client(key) as bob:
        saved = bob.get("/v1/subscriptions/beeps").json()
    assert saved["delivery"] == {"pager": ["17", "4"]}
    page.get_by_role("link", name="Edit beeps").click()
    expect(page.get_by_label("Pager")).to_have_value("17 4")
