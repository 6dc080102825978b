"""The short way of plain requests answers as the long way would."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from tamis.service.short_way import ShortWay
from tests.integration.service_server import Service, running_service

JSON = {"Content-Type": "application/json"}
S1, FILTER = "/v1/subscriptions/s1", b'{"filter": "x = 1"}'

# Method, address, headers, body; whether it is plain, None if it does not get that far.
REQUESTS: list[tuple[str, str, Any, bytes | None, bool | None]] = [
    ("POST", "/v1/subscriptions", JSON, b'{"id": "s1", "filter": "x = 1"}', True),
    ("POST", "/v1/subscriptions", JSON, b'{"id": "s1", "filter": "x = 1"}', True),
    ("POST", "/v1/subscriptions", JSON, b'{"id": "s2", "filter": "x ="}', True),
    ("POST", "/v1/subscriptions", JSON, b'{"id": "s2", "filter": "x = 1", "colour": 1}', False),
    ("POST", "/v1/subscriptions", JSON, b'{"id": "s2", "filter": NaN}', True),
    ("POST", "/v1/subscriptions", JSON, b"", True),
    ("POST", "/v1/subscriptions", JSON, b"[" * 100_000, True),
    ("POST", "/v1/subscriptions", JSON, b"x" * 5_000_000, None),
    ("POST", "/v1/subscriptions", {}, FILTER, False),
    ("POST", "/v1/subscriptions", {"Content-Type": "text/plain"}, FILTER, False),
    (
        "POST", "/v1/subscriptions", {"Content-Type": "application/json; charset=utf-8"},
        b'{"id": "s3", "filter": "x = 1"}', False,
    ),
    (
        "POST", "/v1/subscriptions", {**JSON, "Idempotency-Key": "k1"},
        b'{"id": "s4", "filter": "x = 1"}', True,
    ),
    (
        "POST", "/v1/subscriptions", {**JSON, "Idempotency-Key": "k1"},
        b'{"id": "s4", "filter": "x = 1"}', True,
    ),
    ("POST", "/v1/subscriptions", {**JSON, "Idempotency-Key": ""}, FILTER, False),
    ("POST", "/v1/subscriptions", {**JSON, "Idempotency-Key": "k" * 201}, FILTER, False),
    ("GET", S1, {}, None, True),
    ("GET", S1, {"If-None-Match": '"1-MADE"'}, None, True),
    ("GET", S1, [("If-None-Match", '"7"'), ("If-None-Match", '"1-MADE"')], None, False),
    ("GET", "/v1/subscriptions/none", {}, None, True),
    ("GET", "/v1/subscriptions/import", {}, None, True),
    ("GET", "/v1/subscriptions/export", {}, None, False),
    ("GET", "/v1/subscriptions/", {}, None, False),
    ("GET", "/v1/subscriptions/a%00b", {}, None, False),
    ("GET", "/v1/subscriptions/a%0Ab", {}, None, False),
    ("GET", "/v1/subscriptions/" + "x" * 501, {}, None, True),
    ("PATCH", S1, JSON, b'{"priority": 3}', True),
    ("PATCH", S1, {**JSON, "If-Match": '"2-MADE"'}, b'{"priority": null, "is_paused": true}', True),
    ("PATCH", S1, {**JSON, "If-Match": '"2-MADE"'}, b'{"priority": 1}', True),
    ("PATCH", S1, {**JSON, "If-Match": "2"}, b'{"priority": 1}', True),
    ("PATCH", S1, {**JSON, "If-Match": 'W/"3-MADE"'}, b'{"priority": 1}', True),
    ("PATCH", S1, {**JSON, "If-Match": '"*"'}, b'{"priority": 1}', True),
    ("PATCH", S1, {**JSON, "If-Match": '"3-MADE", "4"'}, b'{"priority": 1}', True),
    ("PATCH", "/v1/subscriptions/none", {**JSON, "If-Match": "*"}, b'{"priority": 1}', True),
    ("PUT", "/v1/subscriptions/none", {**JSON, "If-Match": "*"}, FILTER, True),
    ("PATCH", S1, {**JSON, "If-Match": "2"}, b'{"priority": 11}', True),
    ("PATCH", S1, JSON, b'{"priority": 11}', False),
    ("PATCH", S1, JSON, b'{"is_paused": null}', True),
    ("PATCH", S1, JSON, b'{"filter": "y = 1", "delivery": {"schedule": "every hour"}}', True),
    ("PATCH", S1, JSON, b"{}", True),
    ("PATCH", "/v1/subscriptions/none", JSON, b'{"priority": 1}', True),
    ("PUT", S1, JSON, b'{"filter": {"attribute": "x", "op": "<", "value": 1}}', True),
    ("PUT", S1, {**JSON, "If-None-Match": "*"}, FILTER, True),
    ("PUT", S1, {**JSON, "If-None-Match": '"1"'}, FILTER, True),
    ("PUT", S1, JSON, b'{"id": "other", "filter": "x = 1"}', True),
    ("PUT", "/v1/subscriptions/a%2Fb", JSON, FILTER, True),
    ("PUT", "/v1/subscriptions/export", JSON, FILTER, False),
    ("GET", "/v1/subscriptions", {}, None, True),
    ("GET", "/v1/subscriptions?limit=2&cursor=", {}, None, True),
    ("GET", "/v1/subscriptions?limit=0", {}, None, False),
    ("GET", "/v1/subscriptions?limit=two", {}, None, False),
    ("GET", "/v1/subscriptions?limit=1&limit=2", {}, None, False),
    ("GET", "/v1/subscriptions?search=X%20%3D&colour=red", {}, None, True),
    ("GET", "/v1/subscriptions?search=" + "x" * 1_001, {}, None, False),
    ("GET", "/v1/subscriptions?search=a%00b", {}, None, True),
    ("GET", "/v1/subscriptions?cursor=%3F", {}, None, True),
    ("GET", "/v1/subscriptions?owner=max", {}, None, True),
    ("DELETE", S1, {"If-Match": '"1-MADE"'}, None, True),
    ("DELETE", S1, {}, None, True),
    ("DELETE", S1, {}, None, True),
    ("DELETE", "/v1/subscriptions", {}, None, False),
    ("POST", S1, JSON, FILTER, False),
    ("HEAD", S1, {}, None, False),
]  # fmt: skip


@contextmanager
def counting_ways(monkeypatch: pytest.MonkeyPatch, *, is_short: bool) -> Iterator[list[bool]]:
    """Whether each request took the short way; it may not unless ``is_short``."""
    answer, taken = ShortWay.answer, []

    async def watched(self: ShortWay, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        left = await answer(self, scope, receive, send) if is_short else receive
        taken.append(left is None)
        return left

    with monkeypatch.context() as patched:
        patched.setattr(ShortWay, "answer", watched)
        yield taken


def answers(service: Service, key: str) -> list[tuple[Any, ...]]:
    found, made = [], "never"
    with service.client(key) as client:
        for method, address, headers, body, _ in REQUESTS:
            pairs = headers.items() if isinstance(headers, dict) else headers
            asked = [(name, value.replace("MADE", made)) for name, value in pairs]
            answer = client.request(method, address, headers=asked, content=body)
            if made == "never" and answer.status_code == 201:
                made = answer.json()["created_at"]
            found.append(told(answer))
    return found


def told(answer: httpx.Response) -> tuple[Any, ...]:
    headers = {
        name: without_times(answer.headers.get(name, ""))
        for name in ("content-type", "etag", "retry-after", "allow")
    }
    return answer.status_code, headers, without_times(answer.text)


def without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "a time", text)


@pytest.mark.parametrize("scope", ["subscriber", "publisher", "admin"])
def test_both_ways_answer_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    found = {}
    for is_short in (True, False):
        with (
            counting_ways(monkeypatch, is_short=is_short) as taken,
            running_service(tmp_path / f"{is_short}") as service,
        ):
            found[is_short] = answers(service, service.key("zoe", scope))
            if is_short and scope != "publisher":
                wanted = [is_plain for *_, is_plain in REQUESTS if is_plain is not None]
                assert taken == wanted
    for request, short, long in zip(REQUESTS, found[True], found[False], strict=True):
        assert short == long, request[:3]
    statuses = {status for status, *_ in found[True]}
    if scope == "publisher":
        assert statuses <= {400, 403, 405, 413, 404}
    else:
        assert statuses >= {200, 201, 204, 304, 400, 404, 405, 409, 412, 413, 422}


def test_the_figures_know_the_route(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service, service.client() as client:
        assert client.put(S1, json={"filter": "x = 1"}).status_code == 201
        figures = client.get("/metrics").text
    route = 'route="/v1/subscriptions/{id:path}"'
    assert f'tamis_requests_total{{method="PUT",{route},status="201"}} 1.0' in figures


def test_a_client_that_goes_away_within_a_body_saves_nothing(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        send_in_part(service, b'{"id": "s1", "filter": "x = 1"}', n_missing=3)
        with service.client() as client:
            assert client.get("/v1/subscriptions").json()["items"] == []


def send_in_part(service: Service, body: bytes, n_missing: int) -> None:
    host, _, port = service.url.removeprefix("http://").partition(":")
    head = (
        f"POST /v1/subscriptions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {service.admin}\r\nContent-Length: {len(body) + n_missing}\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass
