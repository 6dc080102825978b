"""Who may do what, how often and with how much."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from tamis.service.limits import Limits
from tamis.service.sending.tokens import PATH, Wish, make_token
from tamis.storage.tables import owners
from tests.integration.service_server import Service, running_service


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Service]:
    with running_service(tmp_path / "data", database_url) as running:
        yield running


BAD_KEYS = [
    None,
    "Basic dXNlcjpwYXNz",
    "Bearer",
    "Bearer x",
    f"Bearer tamis_0123456789_{'0' * 64}",
    f"Bearer tamis_{'é' * 10}_{'0' * 64}",
]


@pytest.mark.parametrize("header", BAD_KEYS)
def test_no_key_no_answer(tmp_path: Path, header: str | None) -> None:
    with running_service(tmp_path / "data") as service:
        headers = {} if header is None else {"Authorization": header.encode()}
        answer = httpx.get(service.url + "/v1/subscriptions", headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (401, "urn:tamis:error:no-key")
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="tamis"'


def test_a_secret_that_is_wrong_in_one_place(service: Service) -> None:
    key = service.key("zoe")
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    with service.client(wrong) as client:
        assert client.get("/v1/subscriptions").status_code == 401
    with service.client(key) as client:
        assert client.get("/v1/subscriptions").status_code == 200


SCOPES = {
    "subscriber": {
        ("GET", "/v1/subscriptions"), ("POST", "/v1/match"), ("POST", "/v1/preview"),
        ("GET", "/v1/notifications"), ("GET", "/v1/keys/own"),
    },
    "publisher": {("POST", "/v1/events"), ("GET", "/v1/keys/own")},
}  # fmt: skip
CALLS = sorted(
    {*SCOPES["subscriber"], *SCOPES["publisher"], ("GET", "/v1/keys"), ("POST", "/v1/keys")}
)
BODIES = {
    "/v1/match": {"event": {"x": 1}},
    "/v1/preview": {"filter": "x = 1"},
    "/v1/events": {"x": 1},
    "/v1/keys": {"owner": "max", "scopes": ["admin"]},
}


@pytest.mark.parametrize("scope", ["subscriber", "publisher", "admin"])
def test_a_scope_allows_what_it_names(tmp_path: Path, scope: str) -> None:
    with running_service(tmp_path / "data") as service:
        service.wait_until_ready()
        with service.client(service.key("zoe", scope)) as client:
            for method, path in CALLS:
                answer = client.request(method, path, json=BODIES.get(path))
                is_allowed = scope == "admin" or (method, path) in SCOPES[scope]
                assert (answer.status_code == 403) is not is_allowed, (method, path, answer.text)


def test_keys_are_made_listed_and_revoked(service: Service) -> None:
    with service.client() as admin:
        made = admin.post(
            "/v1/keys", json={"owner": "zoe", "scopes": ["subscriber"], "limits": {"burst": 50}}
        ).json()
        listed = {one["prefix"]: one for one in admin.get("/v1/keys").json()["items"]}
        assert listed[made["prefix"]]["limits"] == {"burst": 50}
        assert "key" not in listed[made["prefix"]]
        with service.client(made["key"]) as zoe:
            own = zoe.get("/v1/keys/own").json()
            assert (own["owner"], own["scopes"]) == ("zoe", ["subscriber"])
            revoked = admin.delete(f"/v1/keys/{made['prefix']}").json()
            assert revoked["revoked_at"]
            assert zoe.get("/v1/subscriptions").status_code == 401
        assert admin.delete("/v1/keys/0000000000").status_code == 404
        bad = admin.post("/v1/keys", json={"owner": "x", "scopes": [], "name": ""})
        assert bad.status_code == 422
        for limits in ({"n": 1}, {"requests_per_s": 1e-320}):
            draft = {"owner": "x", "scopes": ["admin"], "limits": limits}
            bad = admin.post("/v1/keys", json=draft)
            assert (bad.status_code, bad.json()["type"]) == (422, "urn:tamis:error:invalid-value")
    old = service.key("max", requests_per_s=1e-320, burst=1)  # as keys could once be made
    with service.client(old) as client:
        codes = {client.get("/v1/subscriptions").status_code for _ in range(4)}
        assert codes == {200, 429}


def test_the_secret_of_a_key_is_nowhere(tmp_path: Path) -> None:
    with capture_logs() as entries, running_service(tmp_path / "data") as service:
        key = service.key("zoe")
        secret = key.rpartition("_")[2]
        with service.client(key) as client:
            client.get("/v1/subscriptions", params={"search": key})
            client.get(f"/v1/subscriptions/{key}")
            client.post("/v1/subscriptions", json={"filter": f"{key} <"})
        metrics = httpx.get(service.url + "/metrics").text
    assert entries
    requests = [one for one in entries if one["event"] == "request"]
    assert not any("?" in one["path"] for one in requests)
    assert secret not in metrics
    held = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert secret.encode() not in held


def test_the_last_use_of_a_key_is_known(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        key = service.key("zoe")
        with service.client(key) as client:
            client.get("/v1/subscriptions")
    with running_service(tmp_path / "data") as service, service.client() as admin:
        used = {one["prefix"]: one["last_used_at"] for one in admin.get("/v1/keys").json()["items"]}
        assert used[key.split("_")[1]] is not None


def test_no_more_requests_than_allowed(tmp_path: Path) -> None:
    with running_service(tmp_path / "data", limits=Limits(requests_per_s=1, burst=3)) as service:
        key = service.key("zoe")
        with service.client(key) as client, service.client(service.key("max")) as other:
            codes = [client.get("/v1/subscriptions").status_code for _ in range(6)]
            assert codes[:3] == [200] * 3
            assert 429 in codes[3:]
            answer = client.get("/v1/subscriptions")
            assert answer.json()["type"] == "urn:tamis:error:rate-reached"
            assert int(answer.headers["Retry-After"]) >= 1
            assert other.get("/v1/subscriptions").status_code == 200
            assert client.get("/healthz").status_code == 200
        with service.client(service.key("eve", requests_per_s=1_000, burst=1_000)) as eve:
            codes = [eve.get("/v1/subscriptions").status_code for _ in range(20)]
            assert set(codes) == {200}


def test_bodies_that_are_too_large(service: Service) -> None:
    with service.client(service.key("zoe", "publisher", "subscriber", body_bytes=1_000)) as client:
        event = {"x": "y" * 2_000}
        said = client.post("/v1/events", json=event)
        assert (said.status_code, said.json()["type"]) == (413, "urn:tamis:error:body-too-large")

        def parts() -> Iterator[bytes]:  # no Content-Length says it before
            yield b'{"x": "'
            yield b"y" * 2_000
            yield b'"}'

        assert client.post("/v1/events", content=parts()).status_code == 413
        assert client.post("/v1/subscriptions", content=parts()).status_code == 413
        lines = b'{"id": "a", "filter": "x = 1"}\n{"id": "%s"}\n' % (b"y" * 2_000)
        told = client.post("/v1/subscriptions/import", content=lines).text.splitlines()
        assert json.loads(told[0])["result"] == "created"
        assert "bytes allowed" in json.loads(told[1])["problem"]["detail"]
        endless = b'{"id": "' + b"y" * 100_000
        told = client.post("/v1/subscriptions/import", content=endless).text.splitlines()
        assert json.loads(told[-1])["problem"]["type"] == "urn:tamis:error:bad-request"


def test_filters_that_are_too_complex(service: Service) -> None:
    with service.client(service.key("zoe", conjunctions=4)) as client:
        fits = " OR ".join(f"(a = {n} AND b = {n})" for n in range(4))
        too_many = " OR ".join(f"(a = {n} AND b = {n})" for n in range(5))
        assert client.post("/v1/subscriptions", json={"filter": fits}).status_code == 201
        said = client.post("/v1/subscriptions", json={"filter": too_many})
        assert (said.status_code, said.json()["type"]) == (
            422, "urn:tamis:error:filter-too-complex",
        )  # fmt: skip
        assert client.post("/v1/preview", json={"filter": too_many}).status_code == 422


def test_a_slow_client_keeps_nobody_waiting(service: Service) -> None:
    place = urlsplit(service.url)
    key = service.key("zoe")
    with socket.create_connection((place.hostname, place.port)) as slow:
        slow.sendall(
            f"POST /v1/subscriptions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
        )
        time.sleep(0.1)
        with service.client(key) as client:
            draft = {"id": "s1", "filter": "x = 1"}
            assert client.post("/v1/subscriptions", json=draft).status_code == 201
    with service.client(key) as client:  # who went away in the middle has changed nothing
        assert len(client.get("/v1/subscriptions").json()["items"]) == 1


def test_addresses_and_methods_that_are_not_there(service: Service) -> None:
    with service.client() as admin:
        for method, path, status in (
            ("GET", "/v1/nothing", 404),
            ("GET", "/nothing", 404),
            ("DELETE", "/v1/match", 405),
            ("POST", "/healthz", 405),
        ):
            answer = admin.request(method, path)
            assert answer.status_code == status
            assert answer.headers["content-type"] == "application/problem+json"


def test_who_watches_may_ask_without_the_body(service: Service) -> None:
    for path in ("/healthz", "/readyz"):
        asked, told = httpx.head(service.url + path), httpx.get(service.url + path)
        assert (asked.status_code, asked.content) == (told.status_code, b"")
        assert asked.headers["content-type"] == told.headers["content-type"]


def test_the_link_in_a_mail_needs_its_token_and_no_key(service: Service) -> None:
    with service.client() as admin:
        saved = {"filter": "x = 1", "owner": "zoe", "delivery": {"mail": "zoe@mail.example"}}
        assert admin.put("/v1/subscriptions/s1", json=saved).status_code == 201
        with service.database.reading() as connection:
            query = select(owners.c.webhook_secret).where(owners.c.owner == "zoe")
            secret = connection.execute(query).scalar_one()
        token = make_token(Wish("s1", "zoe@mail.example"), secret)
        address = service.url + PATH
        for said in (b'["\\ud800","a"]', b'["\\u0000","a"]', b'["s1","\\ud800"]', b'["s2","a"]'):
            bad = {"token": base64.urlsafe_b64encode(said).decode() + ".x"}
            assert httpx.get(address, params=bad).status_code == 404
            assert httpx.post(address, params=bad).status_code == 404
        shown = make_token(Wish("s1", "\ud800"), secret)  # signed, and cannot be shown
        assert httpx.get(address, params={"token": shown}).status_code == 404
        assert httpx.get(address, params={"token": token + "x"}).status_code == 404
        asked = httpx.get(address, params={"token": token})
        assert (asked.status_code, "zoe@mail.example" in asked.text) == (200, True)
        assert not admin.get("/v1/subscriptions/s1").json()["is_paused"]
        assert httpx.post(address, params={"token": token}).status_code == 200
        assert admin.get("/v1/subscriptions/s1").json()["is_paused"]
