"""Mails: what they say, how they end, and what becomes of those a server does not take."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi import FastAPI

from tamis.service.sending import SenderSettings
from tamis.service.sending.tokens import Wish, make_token
from tamis.service.sending.transports.mail import MailTransport
from tamis.service.sending.unsubscribing import unsubscribe_router
from tamis.storage import Database, SubscriptionStore
from tamis.storage.tables import circuits, deliveries
from tests.integration.mail_server import Mailbox, running_mail_server
from tests.integration.sending import (
    Clock,
    a_match,
    notify,
    outcomes,
    rows_of,
    send_due,
    settings,
    states,
    subscribe,
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """One kind will do: what is tested here does not depend on it."""
    made = Database(f"sqlite:///{tmp_path}/tamis.db")
    made.migrate()
    yield made
    made.close()


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with running_mail_server() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


def mail_settings(port: int, **changed: Any) -> SenderSettings:
    mail = {
        "host": "127.0.0.1", "port": port, "security": "none", "sender": "tamis@service.example",
        "public_url": "https://tamis.example/", "timeout": "5 s",
    }  # fmt: skip
    return settings(mail=mail, **changed)


def send(database: Database, given: SenderSettings, clock: Clock) -> int:
    assert given.mail is not None
    return send_due(database, given, clock, {"mail": MailTransport(given.mail)})


def test_a_digest_in_text_and_html(database: Database, mailbox: Mailbox, clock: Clock) -> None:
    subscribe(database, "s1", {"mail": "zoe@b.example"})
    payloads = [b'{"note": "<script>alert(1)</script> & more"}', "Škoda\x00\x1b[31m".encode()]
    matches = [a_match(one, f"e{n}") for n, one in enumerate(payloads)]
    (id,) = notify(database, "s1", matches=matches, part=2, parts=3, total=12, held_back=4)
    assert send(database, mail_settings(mailbox.port), clock) == 1
    (mail,) = mailbox.mails
    assert mailbox.recipients == ["zoe@b.example"]
    assert mail["Subject"] == "12 matches for s1 (part 2 of 3)"
    assert mail["From"] == "Tamis <tamis@service.example>"
    assert mail["To"] == "zoe@b.example"
    assert re.fullmatch(rf"<{id}\.[0-9a-f]{{8}}@service\.example>", mail["Message-ID"])
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    plain, html = (mail.get_body((kind,)).get_content() for kind in ("plain", "html"))
    for body in (plain, html):
        assert "e0" in body
        assert "e1" in body
        assert "Škoda" in body
        assert "\x1b" not in body
        assert "4 more matches were held back" in body
    assert "price < 3300 AND brand = 'Škoda'" in plain
    assert "price &lt; 3300 AND brand = &#39;Škoda&#39;" in html
    assert "<script>" in plain
    assert "<script>" not in html
    link = mail["List-Unsubscribe"].strip("<>")
    assert link.startswith("https://tamis.example/v1/unsubscribe?token=")
    assert link in plain
    assert link.replace("&", "&amp;") in html
    assert states(database) == {id: "sent"}


def test_nothing_in_a_subscription_adds_a_header(
    database: Database, mailbox: Mailbox, clock: Clock
) -> None:
    subscribe(database, "s1\r\nBcc: eve@b.example\r\n\r\nx", {"mail": "zoe@b.example"})
    notify(database, "s1\r\nBcc: eve@b.example\r\n\r\nx")
    send(database, mail_settings(mailbox.port), clock)
    (mail,) = mailbox.mails
    assert mail["Bcc"] is None
    assert mail["Subject"] == "1 match for s1 Bcc: eve@b.example x"
    assert mailbox.recipients == ["zoe@b.example"]


def test_every_address_is_a_delivery_of_its_own(
    database: Database, mailbox: Mailbox, clock: Clock
) -> None:
    addresses = [f"a{number}@b.example" for number in range(6)]
    mailbox.refusals = {"a1@b.example": "550 nobody here", "a2@b.example": "451 not now"}
    subscribe(database, "s1", {"mail": addresses})
    notify(database, "s1")
    given = mail_settings(mailbox.port)
    assert send(database, given, clock) == 6
    found = {row.address: row.state for row in rows_of(database, deliveries)}
    assert found == {
        **dict.fromkeys(addresses, "sent"), "a1@b.example": "dead", "a2@b.example": "waiting"
    }  # fmt: skip
    assert len({mail["Message-ID"] for mail in mailbox.mails}) == 4
    # Neither says anything of the server: it goes on for the others.
    with database.reading() as connection:
        assert connection.execute(circuits.select()).all() == []
    mailbox.refusals = {}
    clock.move(seconds=10)
    assert send(database, given, clock) == 1
    assert mailbox.recipients[-1] == "a2@b.example"
    assert sorted(outcomes(database)) == sorted(
        [("sent", None)] * 5 + [("refused", 550), ("failed", 451)]
    )


def test_connections_are_used_again(database: Database, mailbox: Mailbox, clock: Clock) -> None:
    subscribe(database, "s1", {"mail": "zoe@b.example"})
    notify(database, "s1", 20)
    assert send(database, mail_settings(mailbox.port), clock) == 20
    assert len(mailbox.mails) == 20
    assert mailbox.n_connections <= 4


def test_a_server_that_is_down_or_busy(database: Database, clock: Clock) -> None:
    subscribe(database, "s1", {"mail": "zoe@b.example"})
    (id,) = notify(database, "s1")
    with running_mail_server() as mailbox:
        mailbox.data_answer = "452 no room"
        given = mail_settings(mailbox.port)
        send(database, given, clock)
        assert states(database) == {id: "waiting"}
    clock.move(minutes=1)
    assert send(database, given, clock) == 1
    problems = [row.problem for row in rows_of(database, deliveries)]
    assert problems[0].startswith("the mail server failed: ")
    assert [status for _, status in outcomes(database)] == [452, None]
    assert states(database) == {id: "waiting"}


def test_a_service_without_a_mail_server_says_so(database: Database, clock: Clock) -> None:
    subscribe(database, "s1", {"mail": "zoe@b.example"})
    notify(database, "s1")
    send_due(database, settings(), clock)
    (row,) = rows_of(database, deliveries)
    assert (row.state, row.problem) == ("skipped", "this service sends no mail")


def ask(database: Database, method: str, token: str, **more: Any) -> httpx.Response:
    app = FastAPI()
    app.include_router(unsubscribe_router(database))

    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://tamis") as client:
            return await client.request(method, "/v1/unsubscribe", params={"token": token}, **more)

    return asyncio.run(run())


def token_of(mailbox: Mailbox, at: int = -1) -> str:
    link = mailbox.mails[at]["List-Unsubscribe"].strip("<>")
    return parse_qs(urlsplit(link).query)["token"][0]


def test_one_click_ends_the_mails(database: Database, mailbox: Mailbox, clock: Clock) -> None:
    subscribe(database, "s1", {"mail": "zoe@b.example"})
    notify(database, "s1")
    given = mail_settings(mailbox.port)
    send(database, given, clock)
    token = token_of(mailbox)
    store = SubscriptionStore(database)
    page = ask(database, "GET", token)
    assert page.status_code == 200
    assert "zoe@b.example" in page.text
    assert not store.get("s1").is_paused
    done = ask(database, "POST", token, data={"List-Unsubscribe": "One-Click"})
    assert done.status_code == 200
    assert store.get("s1").is_paused
    assert store.get("s1").subscription.delivery == {"mail": "zoe@b.example"}
    forged = make_token(Wish("s1", "zoe@b.example"), "whsec_other")
    for bad in ("", ".", "x", token[:-2], forged, "a" * 5_000, "W10.x", "bnVsbA.x", "ä.ü"):
        assert ask(database, "POST", bad).status_code == 404
        assert ask(database, "GET", bad).status_code == 404
    notify(database, "s1", first=1)
    assert send(database, given, clock) == 0


def test_only_the_address_that_asked_is_left_out(
    database: Database, mailbox: Mailbox, clock: Clock
) -> None:
    subscribe(
        database, "s1", {"mail": ["a@b.example", "c@d.example"], "webhook": "https://e.example"}
    )
    notify(database, "s1")
    send(database, mail_settings(mailbox.port), clock)
    tokens = {mail["To"]: token_of(mailbox, at) for at, mail in enumerate(mailbox.mails)}
    store = SubscriptionStore(database)
    for _ in range(2):  # again changes nothing
        ask(database, "POST", tokens["a@b.example"])
        held = store.get("s1")
        assert held.subscription.delivery["mail"] == ["c@d.example"]
        assert not held.is_paused
    ask(database, "POST", tokens["c@d.example"])
    assert store.get("s1").subscription.delivery == {"webhook": "https://e.example"}
    assert not store.get("s1").is_paused
