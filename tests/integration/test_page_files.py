"""The files of the page: what they are told with, and that they need nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from tests.integration.service_server import running_service

FOLDER = Path(str(files("tamis.service").joinpath("page")))
NAMES = sorted(path.name for path in FOLDER.iterdir())
MADE = "transports.js"  # by the service, from what it can send by


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Somebody without a key."""
    with (
        running_service(tmp_path_factory.mktemp("page")) as service,
        httpx.Client(base_url=service.url) as client,
    ):
        yield client


@pytest.mark.parametrize("path", ["/", *(f"/page/{name}" for name in (*NAMES, MADE))])
def test_a_file_is_told_with_strict_headers(client: httpx.Client, path: str) -> None:
    told = client.get(path)
    assert told.status_code == 200
    assert told.headers["x-content-type-options"] == "nosniff"
    assert told.headers["cache-control"] == "no-cache"
    policy = told.headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"unsafe|\*|https?:", told.headers["content-security-policy"])
    kind = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
    wanted = kind.get(Path(path).suffix or ".html", "image/svg+xml")
    assert told.headers["content-type"].startswith(wanted)

    etag = told.headers["etag"]
    again = client.get(path, headers={"If-None-Match": f'"other", W/{etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert client.get(path, headers={"If-None-Match": '"other"'}).content == told.content
    head = client.head(path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", etag)


@pytest.mark.parametrize("path", ["/page/", "/page/none.js", "/page/..%2fapp.py", "/index.html"])
def test_nothing_else_is_told(client: httpx.Client, path: str) -> None:
    told = client.get(path)
    assert (told.status_code, told.headers["content-type"]) == (404, "application/problem+json")


def test_files_name_each_other_and_nobody_else() -> None:
    named = set()
    for name in NAMES:
        text = (FOLDER / name).read_text()
        # The name of a namespace is no address.
        text = text.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://\w|[\"']//|@import|url\(", text), name
        named |= set(re.findall(r"/page/([\w.]+)", text))
    assert named == {*NAMES, MADE} - {"index.html"}


def test_the_page_holds_no_script_or_style_of_its_own() -> None:
    text = (FOLDER / "index.html").read_text()
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == [""]
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".js")])
def test_text_never_becomes_markup(name: str) -> None:
    text = (FOLDER / name).read_text()
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function"
    assert not re.search(ways + r"|createContextualFragment|setHTML|localStorage|cookie", text)
