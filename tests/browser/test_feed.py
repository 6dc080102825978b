"""The live feed: matches arrive, are explained, and none is missed through breaks."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Watched
from tests.browser.notices import tell
from tests.integration.service_server import Service

LIVE = "#feed-state.good"


def cards(page: Page) -> list[str]:
    """The ids of the events that are shown, from the top."""
    return page.locator(".notification .event strong").all_inner_texts()


def test_a_match_arrives_live_and_is_explained(watched: Watched) -> None:
    service = watched.service
    key = service.key("ann", "subscriber", "publisher")
    with service.client(key) as ann:
        ann.put("/v1/subscriptions/ann-1", json={"filter": "price < 10 AND NOT used"})
        # The payload leaves out what the filter asks for; the service still knows the event.
        event = {"id": "a1", "attributes": {"price": 3, "used": False}, "payload": "eyJhIjogMX0="}
        assert ann.post("/v1/events", json=event).status_code == 202
    tell(service, "ann", "ann-1", {"id": "a0", "price": 5})
    page = watched.enter(key)
    tell(service, "ann", "ann-1", {"id": "away", "price": 6})
    expect(page.get_by_role("link", name="Live")).to_contain_text("1")  # the badge
    page.get_by_role("link", name="Live").click()
    expect(page.locator(LIVE)).to_have_text("Live")
    expect(page.locator(".notification")).to_have_count(2)
    tell(service, "ann", "ann-1", {"id": "a1", "a": 1})
    expect(page.locator(".notification")).to_have_count(3)
    assert cards(page) == ["a1", "away", "a0"]
    expect(page.locator("#announcer")).to_have_text("New: 1 match of ann-1")

    page.get_by_role("button", name="Why? a1").click()
    tree = page.locator(".notification").first.locator(".tree")
    expect(tree).to_contain_text("price = 3 is < 10")
    expect(tree.locator(".failed")).to_have_count(1)  # what NOT is about
    page.get_by_role("button", name="Why? a0").click()
    expect(page.locator(".notification").last).to_contain_text("From the payload")
    expect(page.locator(".notification").last.locator(".tree")).to_contain_text("price = 5 is < 10")


def test_others_are_not_told(watched: Watched) -> None:
    service = watched.service
    page = watched.enter(service.key("bob"), "#/feed")
    expect(page.locator(LIVE)).to_be_visible()
    tell(service, "somebody else", "x", {"id": "secret", "price": 5})
    tell(service, "bob", "bob-1", {"id": "b1", "price": 5})
    expect(page.locator(".notification")).to_have_count(1)
    assert cards(page) == ["b1"]


def test_a_pause_misses_nothing(watched: Watched) -> None:
    service = watched.service
    tell(service, "cat", "cat-1", {"id": "c1"})
    page = watched.enter(service.key("cat"), "#/feed")
    expect(page.locator(LIVE)).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#feed-state")).to_have_text("Paused")
    tell(service, "cat", "cat-1", {"id": "c2"})
    tell(service, "cat", "cat-2", {"id": "c3"}, {"id": "c4"})
    with page.expect_request("**/v1/notifications/stream") as asked:
        page.get_by_role("button", name="Go on").click()
    assert asked.value.headers["last-event-id"].isdigit()
    assert asked.value.headers["authorization"].startswith("Bearer tamis_")
    expect(page.locator(".notification")).to_have_count(3)
    assert cards(page) == ["c3", "c4", "c2", "c1"]
    page.get_by_label("Only subscriptions whose id has").fill("CAT-2")
    expect(page.locator(".notification")).to_have_count(1)
    page.get_by_label("Only subscriptions whose id has").fill("none")
    expect(page.get_by_text("None of these subscriptions")).to_be_visible()


def test_a_broken_stream_goes_on_after_what_was_seen(watched: Watched) -> None:
    service = watched.service
    tell(service, "dan", "dan-1", {"id": "d1"})
    answers = ["cut", "away", "refused"]
    seen = []

    def answer(route: Route) -> None:
        seen.append(route.request.headers["last-event-id"])
        match answers.pop(0) if answers else "through":
            case "cut":  # in the middle of an event
                route.fulfill(body='id: 99\r\nevent: notification\r\ndata: {"num')
                tell(service, "dan", "dan-1", {"id": "d2"})
            case "away":
                route.abort("connectionrefused")
            case "refused":
                route.fulfill(status=503, json={"detail": "away"})
            case _:
                route.continue_()

    watched.page.route("**/v1/notifications/stream", answer)
    page = watched.enter(service.key("dan"), "#/feed")
    expect(page.locator(".notification")).to_have_count(2)
    expect(page.locator(LIVE)).to_be_visible()
    assert cards(page) == ["d2", "d1"]
    assert len(seen) == 4
    assert len(set(seen)) == 1  # half an event is none


def test_events_are_read_however_the_bytes_are_cut(watched: Watched) -> None:
    watched.page.goto(watched.service.url)
    text = (
        ": a comment\r\n\r\nid: 1\r\nevent: notification\r\ndata: {ü\r\ndata:}\r\n\r\n"
        "data\n\nid:2\ndata:  x:y\nretry: 5\n\nid: 3\rdata: z\r\r\nid: 4\ndata: never ended\n"
    )
    wanted = [
        {"id": "1", "event": "notification", "data": "{ü\n}"},
        {"event": "message", "data": ""},
        {"id": "2", "event": "message", "data": " x:y"},
        {"id": "3", "event": "message", "data": "z"},
    ]
    found = watched.page.evaluate(
        """async (text) => {
          const { serverSent } = await import("/page/server_sent.js");
          const bytes = new TextEncoder().encode(text);
          const read = async (...cuts) => {
            const chunks = [0, ...cuts].map((cut, n) => bytes.slice(cut, cuts[n]));
            const body = new ReadableStream({
              start(to) {
                for (const chunk of chunks) to.enqueue(chunk);
                to.close();
              },
            });
            const held = [];
            for await (const one of serverSent(body, () => {})) held.push(one);
            return held;
          };
          const all = [];
          for (let cut = 0; cut <= bytes.length; cut += 1) all.push(await read(cut));
          all.push(await read(...bytes.keys()));
          return all;
        }""",
        text,
    )
    assert len(found) == len(text.encode()) + 2
    assert [one for one in found if one != wanted] == []


def test_older_ones_and_large_digests(watched: Watched) -> None:
    service = watched.service
    for number in range(35):
        tell(service, "eve", "eve-1", {"id": f"n{number}"})
    tell(service, "eve", "eve-1", *({"id": f"m{number}"} for number in range(8)))
    page = watched.enter(service.key("eve"), "#/feed")
    expect(page.locator(".notification")).to_have_count(30)
    expect(page.locator(".notification").first.locator(".event")).to_have_count(5)
    page.get_by_role("button", name="Show 3 more").click()
    expect(page.locator(".notification").first.locator(".event")).to_have_count(8)
    page.get_by_role("button", name="Older").click()
    expect(page.locator(".notification")).to_have_count(36)
    expect(page.get_by_role("button", name="Older")).to_be_hidden()


def test_why_of_what_is_gone_is_told(watched: Watched) -> None:
    service = watched.service
    tell(service, "fay", "gone", {"id": "f1"})
    key = service.key("fay")
    with service.client(key) as fay:
        fay.put("/v1/subscriptions/fay-1", json={"filter": "a = 1"})
    tell(service, "fay", "fay-1", b"\xff\x00 no JSON")
    page = watched.enter(key, "#/feed")
    page.get_by_role("button", name="Why? f1").click()
    expect(page.get_by_role("alert")).to_contain_text("gone")
    page.get_by_role("button", name="Why? payload-0").click()
    expect(page.get_by_role("alert").first).to_contain_text("no longer remembers this event")


MARKUP = '<img src=x onerror="window.harm=1"><script>window.harm=1</script>'


def test_markup_in_events_and_filters_stays_text(watched: Watched, service: Service) -> None:
    key = service.key("gus", "subscriber", "publisher")
    with service.client(key) as gus:
        event = {"id": MARKUP, "attributes": {MARKUP: MARKUP, "mark": MARKUP}}
        assert gus.post("/v1/events", json=event).status_code == 202
        saved = gus.post("/v1/subscriptions", json={"id": MARKUP, "filter": f"mark = '{MARKUP}'"})
        assert saved.status_code == 201
    tell(service, "gus", MARKUP, {"id": MARKUP, MARKUP: MARKUP, "mark": MARKUP})
    page = watched.enter(key)
    page.locator("#filter").fill(f"mark = '{MARKUP}'")
    tried = page.get_by_role("complementary", name="Recent events")
    expect(tried.get_by_role("article")).to_contain_text(MARKUP)
    tried.get_by_role("button", name="Why?").click()
    expect(tried.locator(".tree")).to_contain_text(MARKUP)
    page.locator("#filter").fill(f"mark = {MARKUP}")
    expect(page.locator("#filter-problem pre")).to_contain_text(MARKUP)
    page.get_by_role("link", name="Subscriptions").click()
    expect(page.locator(".subscription h2")).to_have_text(MARKUP)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text(MARKUP)
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("link", name="Live").click()
    expect(page.locator(".notification")).to_contain_text(MARKUP)
    page.get_by_role("button", name="Why?").click()
    expect(page.locator(".notification .tree")).to_contain_text(MARKUP)
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.harm") is None
