"""A module that is put into the folder of transports is one, and no other file has to change."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tamis.errors import InvalidDelivery
from tamis.service.routes.page import router
from tamis.service.sending import SenderSettings, check_transports
from tamis.service.sending.transports import TRANSPORTS, find_transports, make_transports
from tests.integration.dropped_transport import PAGER, dropped


@pytest.fixture
def pager(tmp_path: Path) -> Iterator[None]:
    """A transport more than there are."""
    with dropped(tmp_path):
        yield


def told_to_the_page() -> list[dict[str, Any]]:
    """What a browser reads, with no key."""
    app = FastAPI()
    app.include_router(router)

    async def read() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a.example") as client:
            return await client.get("/page/transports.js")

    answer = asyncio.run(read())
    assert answer.headers["content-type"].startswith("text/javascript")
    told = re.fullmatch(r"export const TRANSPORTS = (\[.*\]);\n", answer.text, re.DOTALL)
    assert told is not None
    return list(json.loads(told[1]))


@pytest.mark.usefixtures("pager")
def test_its_settings_are_read_and_checked() -> None:
    (target,) = check_transports({"pager": "17"})
    assert target == ("pager", "17", "pagers")
    assert [one.address for one in check_transports({"pager": ["17", "4"]})] == ["17", "4"]
    with pytest.raises(InvalidDelivery, match="pager 'zoe' is not a number"):
        check_transports({"pager": "zoe"})
    with pytest.raises(InvalidDelivery, match="did you mean 'pager'"):
        check_transports({"pagr": "17"})
    with pytest.raises(InvalidDelivery, match="expected webhook, mail, apprise, pager, schedule"):
        check_transports({"zzz": 1})


@pytest.mark.usefixtures("pager")
def test_what_sends_is_made_with_the_settings() -> None:
    settings = SenderSettings(concurrency=7)
    made = make_transports(settings)
    assert list(made) == ["webhook", "apprise", "pager"]  # there is no mail server
    assert vars(made["pager"]) == {"settings": settings}


@pytest.mark.usefixtures("pager")
def test_the_page_is_told_a_plain_field() -> None:
    *others, field = told_to_the_page()
    assert [one["name"] for one in others] == ["webhook", "mail", "apprise"]
    assert {name: held for name, held in field.items() if held is not None} == {
        "name": "pager", "label": "Pager", "takes_many": True, "has_commas": False,
    }  # fmt: skip


def test_it_may_say_more_of_itself(tmp_path: Path) -> None:
    more = "takes_many=False, field=Field('Pager of the ward', hint='digits'), place=2"
    text = PAGER.replace("PagerTransport)", f"PagerTransport, {more})")
    text = text.replace("import TransportKind", "import Field, TransportKind")
    with dropped(tmp_path, text):
        assert list(TRANSPORTS) == ["webhook", "mail", "pager", "apprise"]
        (field,) = (one for one in told_to_the_page() if one["name"] == "pager")
        assert (field["label"], field["hint"]) == ("Pager of the ward", "digits")
        with pytest.raises(InvalidDelivery, match=re.escape("pager ['17']: expected a text")):
            check_transports({"pager": ["17"]})


def test_a_module_that_is_no_transport_is_noticed_at_once(tmp_path: Path) -> None:
    noticed = pytest.raises(AttributeError, match=r"transports\.pager.* 'TRANSPORT'")
    with noticed, dropped(tmp_path, "BEEPS = []\n"):
        pass
    assert "pager" not in TRANSPORTS


def test_without_it_there_are_those_of_the_package() -> None:
    assert list(TRANSPORTS) == list(find_transports()) == ["webhook", "mail", "apprise"]
    assert [one["label"] for one in told_to_the_page()] == ["Webhook", "Mail", "Chat (Apprise)"]
    with pytest.raises(InvalidDelivery, match="'pager' is not known"):
        check_transports({"pager": "17"})
