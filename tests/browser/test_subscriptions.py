"""Keys, filters and subscriptions, as somebody at a keyboard sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import Watched
from tests.integration.service_server import Service


@pytest.fixture(scope="module", autouse=True)
def events(service: Service) -> None:
    """Two hundred events that filters are tried on, a tenth of them of Huawei."""
    lines = [
        json.dumps({"id": f"e{n}", "brand": "Huawei" if n % 10 == 0 else "Nokia", "price": n})
        for n in range(200)
    ]
    kind = {"Content-Type": "application/x-ndjson"}
    with service.client() as admin:
        assert admin.post("/v1/events", content="\n".join(lines), headers=kind).status_code == 202


@pytest.mark.parametrize("key", ["tamis_0123456789_wrong", "ключ", "a b"])
def test_a_wrong_key_is_told_and_not_kept(watched: Watched, key: str) -> None:
    page = watched.page
    page.goto(watched.service.url)
    page.get_by_label("Your key").fill(key)
    page.get_by_role("button", name="Go").click()
    expect(page.get_by_role("alert")).to_contain_text("key")
    expect(page.get_by_role("navigation")).to_be_hidden()
    assert page.evaluate("sessionStorage.length + localStorage.length") == 0


def test_a_key_stays_in_its_tab_until_it_is_left(watched: Watched) -> None:
    key = watched.service.key("ann")
    page = watched.enter(key, "#/subscriptions")
    expect(page.get_by_role("heading", name="Your subscriptions")).to_be_visible()
    expect(page.get_by_role("link", name="Operations")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("heading", name="Your subscriptions")).to_be_visible()
    assert page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]") == [
        1, 0, "",
    ]  # fmt: skip
    other = page.context.new_page()
    other.goto(watched.service.url)
    expect(other.get_by_label("Your key")).to_be_visible()
    page.get_by_role("button", name="Leave").click()
    expect(page.get_by_label("Your key")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0
    assert key not in page.url


def test_a_key_that_is_revoked_ends_the_session(watched: Watched) -> None:
    key = watched.service.key("bob")
    page = watched.enter(key)
    with watched.service.client() as admin:
        admin.delete(f"/v1/keys/{key.split('_')[1]}")
    page.get_by_role("link", name="Subscriptions").click()
    expect(page.get_by_label("Your key")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("key")
    assert page.evaluate("sessionStorage.length") == 0


def test_a_key_that_may_only_publish_is_told_so(watched: Watched) -> None:
    page = watched.enter(watched.service.key("shop", "publisher"))
    expect(page.get_by_role("heading", name="This key may only publish")).to_be_visible()
    expect(page.get_by_role("link", name="Live")).to_have_count(0)


def test_a_filter_is_judged_while_it_is_written(watched: Watched) -> None:
    page = watched.enter(watched.service.key("cat"))
    text, problem = page.locator("#filter"), page.locator("#filter-problem")
    text.fill("brand = 'Huawei' AND\n  price <")
    expect(page.get_by_text("line 2, column 9", exact=True)).to_be_visible()
    expect(text).to_have_attribute("aria-invalid", "true")
    expect(problem).to_contain_text("something is missing after '<'")
    caret = problem.locator("pre").inner_text().splitlines()
    assert caret[0].index("<") == caret[1].index("^")
    page.get_by_role("button", name="Go there").click()
    expect(text).to_be_focused()
    assert text.evaluate("one => one.selectionStart") == text.input_value().index("<")

    # Characters beyond 16 bits are one character to the service, and two to a text field.
    text.fill("brand = '😀😀' AND price <")
    expect(page.get_by_text("line 1, column 24", exact=True)).to_be_visible()
    page.get_by_role("button", name="Go there").click()
    assert text.evaluate("one => one.value.slice(one.selectionStart, one.selectionEnd)") == "<"

    text.fill("brand = 'Huawei' AND price < 100")
    tried = page.get_by_role("complementary", name="Recent events")
    expect(tried).to_contain_text("10 of the last 200 events · 5 %")
    expect(text).not_to_have_attribute("aria-invalid", "true")
    expect(problem).to_be_empty()
    expect(tried.get_by_role("article")).to_have_count(5)
    expect(tried.get_by_role("article").first).to_contain_text("e90")
    tried.get_by_role("button", name="Why? e90").click()
    expect(tried.locator(".tree")).to_contain_text("price = 90 is < 100")

    text.fill("price >= 0")
    expect(tried).to_contain_text("Too broad: the filter accepts 100% of the last 200 events")
    page.get_by_label("Spelling").select_option("query")
    text.fill("price")
    expect(problem).to_contain_text("price")
    text.fill("brand=Huawei&price_below=100")
    expect(tried).to_contain_text("10 of the last 200 events")
    page.get_by_label("Spelling").select_option("json")
    text.fill('{"attribute": "price", "op": "<"}')
    expect(problem).to_contain_text("value")
    text.fill('{"attribute": "price", "op": "<", "value": 3}')
    expect(tried).to_contain_text("3 of the last 200 events")


def test_a_subscription_is_created_found_paused_edited_and_deleted(watched: Watched) -> None:
    service = watched.service
    key = service.key("dan")
    page = watched.enter(key)
    page.locator("#filter").fill("brand = 'Huawei'")
    page.get_by_label("Name").fill("phones")
    page.get_by_label("Priority").select_option("1")
    page.get_by_label("When").fill("hourly")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("the schedule 'hourly' is not known")
    page.get_by_label("When").fill("every hour")
    page.get_by_label("At most").fill("5 per hour")
    page.get_by_label("Matches in one message").fill("20")
    page.get_by_label("Mail").fill("dan@example.org, eva@example.org")
    page.get_by_role("button", name="Save").click()

    card = page.locator("[data-id=phones]")
    expect(card).to_contain_text("brand = 'Huawei'")
    expect(card).to_contain_text("every hour")
    with service.client(key) as dan:
        saved = dan.get("/v1/subscriptions/phones").json()
        assert (saved["priority"], saved["delivery"]) == (1, {
            "schedule": "every hour", "rate_cap": "5 per hour", "max_digest": 20,
            "mail": ["dan@example.org", "eva@example.org"],
        })  # fmt: skip
        dan.put("/v1/subscriptions/cars%2Fold", json={"filter": "year < 1990"})

        page.get_by_label("Search").fill("YEAR")
        expect(page.locator(".subscription")).to_have_count(1)
        expect(page.locator(".subscription")).to_contain_text("cars/old")
        page.get_by_label("Search").fill("")
        page.get_by_role("button", name="Pause phones").click()
        expect(card).to_contain_text("paused")
        assert dan.get("/v1/subscriptions/phones").json()["is_paused"]
        page.get_by_role("button", name="Resume phones").click()
        expect(card.get_by_text("paused")).to_have_count(0)

        page.get_by_role("link", name="Edit phones").click()
        expect(page.get_by_role("heading", name="Edit phones")).to_be_visible()
        expect(page.locator("#filter")).to_have_value("brand = 'Huawei'")
        expect(page.get_by_label("Mail")).to_have_value("dan@example.org, eva@example.org")
        page.locator("#filter").fill("brand = 'Nokia'")
        page.get_by_label("Mail").fill("dan@example.org")
        page.get_by_role("button", name="Save changes").click()
        expect(card).to_contain_text("brand = 'Nokia'")
        saved = dan.get("/v1/subscriptions/phones").json()
        assert saved["delivery"]["mail"] == "dan@example.org"

        # The ids of others are in the address, and an id with a slash is one too.
        page.get_by_role("link", name="Edit cars/old").click()
        expect(page.locator("#filter")).to_have_value("year < 1990")
        page.get_by_role("link", name="Cancel").click()

        page.get_by_role("button", name="Delete phones").click()
        page.get_by_role("button", name="Keep").click()
        expect(card).to_be_visible()
        page.get_by_role("button", name="Delete phones").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(card).to_have_count(0)
        assert dan.get("/v1/subscriptions/phones").status_code == 404


def test_what_was_changed_meanwhile_is_not_overwritten(watched: Watched) -> None:
    service = watched.service
    key = service.key("eve")
    with service.client(key) as eve:
        eve.put("/v1/subscriptions/eve-1", json={"filter": "a = 1"})
        page = watched.enter(key, "#/filter/eve-1")
        expect(page.locator("#filter")).to_have_value("a = 1")
        eve.patch("/v1/subscriptions/eve-1", json={"filter": "a = 2"})
        page.locator("#filter").fill("a = 3")
        page.get_by_role("button", name="Save changes").click()
        expect(page.get_by_role("alert")).to_contain_text("changed meanwhile")
        assert eve.get("/v1/subscriptions/eve-1").json()["filter"] == "a = 2"
        # Opened again, it is as it is now.
        page.get_by_role("link", name="Subscriptions").click()
        page.get_by_role("link", name="Edit eve-1").click()
        expect(page.locator("#filter")).to_have_value("a = 2")


def test_saving_again_after_a_lost_answer_saves_once(watched: Watched) -> None:
    service, page = watched.service, watched.page
    key = service.key("jon")
    lost = []

    def lose(route: Route) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch().status)
            route.abort()
        else:
            route.continue_()

    page.route("**/v1/subscriptions", lose)
    watched.enter(key)
    page.locator("#filter").fill("price < 5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".subscription")).to_have_count(1)
    # The same filter once more is another subscription.
    page.get_by_role("link", name="New filter").click()
    page.locator("#filter").fill("price < 5")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".subscription")).to_have_count(2)
    assert lost == [201]


def test_an_address_that_cannot_be_read_leads_to_the_start(watched: Watched) -> None:
    page = watched.enter(watched.service.key("kim"), "#/filter/%E0%A4%A")
    expect(page.get_by_role("heading", name="New filter")).to_be_visible()
    page.goto(f"{watched.service.url}/#/filter/not-there")
    expect(page.get_by_role("alert")).to_contain_text("not-there")


def test_a_draft_is_found_again(watched: Watched) -> None:
    service = watched.service
    key = service.key("ike")
    with service.client(key) as ike:
        ike.put("/v1/subscriptions/ike-1", json={"filter": "a = 1"})
    page = watched.enter(key)
    text, live = page.locator("#filter"), page.get_by_role("link", name="Live")
    text.fill("b = 1")
    live.click()
    page.get_by_role("link", name="New filter").click()
    expect(text).to_have_value("b = 1")
    page.goto(f"{service.url}/#/filter/ike-1")
    expect(text).to_have_value("a = 1")
    text.fill("a = 2")
    live.click()
    page.go_back()
    expect(text).to_have_value("a = 2")
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Edit ike-1").click()
    expect(text).to_have_value("a = 1")


def test_what_the_form_does_not_show_is_kept(watched: Watched) -> None:
    service = watched.service
    key = service.key("fay")
    body: dict[str, Any] = {
        "filter": {"attribute": "price", "op": "<", "value": 3},
        "delivery": {"apprise": [f"slack://T1JJ3T3L2/A1BRTD4JD/{n:024}" for n in (1, 2)]},
        "location": [4.9, 52.4], "radius_m": 100, "is_paused": True,
    }  # fmt: skip
    with service.client(key) as fay:
        answer = fay.put("/v1/subscriptions/fay-1", json=body)
        assert answer.status_code == 201, answer.text
        before = answer.json()
        page = watched.enter(key, "#/filter/fay-1")
        expect(page.get_by_label("Spelling")).to_have_value("json")
        page.get_by_label("Priority").select_option("0")
        page.get_by_role("button", name="Save changes").click()
        expect(page.locator("[data-id=fay-1]")).to_contain_text("priority 0")
        after = fay.get("/v1/subscriptions/fay-1").json()
    assert json.loads(after.pop("filter")) == before.pop("filter")
    for told in (before, after):
        del told["version"], told["etag"], told["updated_at"], told["priority"]
    assert after == before


def test_all_pages_of_a_long_list(watched: Watched) -> None:
    service = watched.service
    key = service.key("gus")
    with service.client(key) as gus:
        for number in range(60):
            gus.put(f"/v1/subscriptions/gus-{number:02}", json={"filter": f"x = {number}"})
    page = watched.enter(key, "#/subscriptions")
    expect(page.locator(".subscription")).to_have_count(50)
    page.get_by_role("button", name="Load more").click()
    expect(page.locator(".subscription")).to_have_count(60)
    expect(page.get_by_role("button", name="Load more")).to_be_hidden()


def test_a_filter_is_saved_without_a_mouse(watched: Watched) -> None:
    key = watched.service.key("hal")
    page = watched.page
    page.goto(watched.service.url)
    expect(page.get_by_label("Your key")).to_be_focused()
    page.keyboard.type(key)
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    for _ in range(2):  # past the spelling
        page.keyboard.press("Tab")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("price < 5")
    expect(page.get_by_text("✓ valid")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".subscription")).to_contain_text("price < 5")
    page.locator(".subscription").get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Keep")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".subscription").get_by_role("button", name="Delete")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".subscription")).to_have_count(0)


HERE = {"geolocation": {"longitude": 13.4, "latitude": 52.5}, "permissions": ["geolocation"]}


@pytest.mark.parametrize("options", [HERE])
def test_a_subscription_has_a_place_which_is_changed_and_taken_away(watched: Watched) -> None:
    service = watched.service
    key = service.key("kim")
    with service.client() as admin:
        for id, place in (("near", [13.41, 52.5]), ("far", [2.35, 48.85])):
            event = {"id": id, "attributes": {"price": 1000}, "location": place}
            assert admin.post("/v1/events", json=event).status_code == 202
    page = watched.enter(key)
    page.locator("#filter").fill("price = 1000")
    tried = page.get_by_role("complementary", name="Recent events")
    expect(tried.get_by_role("article")).to_have_count(2)
    page.get_by_text("Only near a place").click()
    page.get_by_label("Longitude, latitude").fill("Berlin")
    expect(page.locator("#filter-problem")).to_contain_text("Berlin is not a place")
    page.get_by_role("button", name="Where I am").click()
    expect(page.get_by_label("Longitude, latitude")).to_have_value("13.40000, 52.50000")
    expect(tried.get_by_role("article")).to_have_count(1)
    expect(tried).to_contain_text("near")
    page.get_by_label("Name").fill("kim-near")
    page.get_by_label("Within, metres").fill("2500")
    page.get_by_role("button", name="Save").click()
    card = page.locator("[data-id=kim-near]")
    expect(card).to_contain_text("circle of 2500 m")
    with service.client(key) as kim:
        saved = kim.get("/v1/subscriptions/kim-near").json()
        assert (saved["location"], saved["radius_m"], saved["area"]) == (
            [13.4, 52.5],
            2500,
            "circle",
        )

        page.get_by_role("link", name="Edit kim-near").click()
        expect(page.get_by_label("Within, metres")).to_have_value("2500")
        page.get_by_label("Longitude, latitude").fill("-0.12, 51.5")
        page.get_by_label("Shape").select_option("square")
        page.get_by_role("button", name="Save changes").click()
        expect(card).to_contain_text("square of 2500 m")
        assert kim.get("/v1/subscriptions/kim-near").json()["location"] == [-0.12, 51.5]

        page.get_by_role("link", name="Edit kim-near").click()
        expect(page.get_by_label("Longitude, latitude")).to_have_value("-0.12, 51.5")
        page.get_by_label("Longitude, latitude").fill("")
        page.get_by_role("button", name="Save changes").click()
        expect(card).not_to_contain_text("2500 m")
        saved = kim.get("/v1/subscriptions/kim-near").json()
        assert (saved["location"], saved["radius_m"], saved["area"]) == (None, None, None)
