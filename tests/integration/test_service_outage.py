"""A database that goes away and comes back: clear answers meanwhile, nothing lost after."""

from __future__ import annotations

import time
from pathlib import Path

import httpx

from tests.integration.postgresql import PostgreSQL
from tests.integration.service_server import running_service


def test_an_outage_is_told_and_over_when_it_is_over(postgresql: PostgreSQL, tmp_path: Path) -> None:
    with running_service(tmp_path / "data", postgresql.new_database()) as service:
        service.wait_until_ready()
        with service.client() as admin:
            assert admin.put("/v1/subscriptions/s1", json={"filter": "x = 1"}).status_code == 201
            postgresql.stop()
            try:
                for answer in (
                    admin.get("/v1/subscriptions"),
                    admin.put("/v1/subscriptions/s2", json={"filter": "x = 1"}),
                    admin.post("/v1/subscriptions", json={"filter": "x = 1"}),
                    admin.get("/v1/subscriptions/export"),
                ):
                    assert answer.status_code == 503
                    assert answer.headers["content-type"] == "application/problem+json"
                    assert answer.json()["type"] == "urn:tamis:error:storage-unavailable"
                    assert answer.headers["Retry-After"] == "1"
                ready = admin.get("/readyz")
                assert (ready.status_code, ready.json()["database"]) == (503, False)
                assert admin.get("/healthz").status_code == 200
                lines = b'{"id": "s3", "filter": "x = 1"}\n'
                told = admin.post("/v1/subscriptions/import", content=lines)
                assert "storage-unavailable" in told.text
            finally:
                postgresql.start()
            _until_ready(service.url)
            assert [one["id"] for one in admin.get("/v1/subscriptions").json()["items"]] == ["s1"]
            assert admin.put("/v1/subscriptions/s2", json={"filter": "x = 1"}).status_code == 201
            event = {"event": {"x": 1}}
            assert sorted(admin.post("/v1/match", json=event).json()["ids"]) == ["s1", "s2"]


def _until_ready(url: str) -> None:
    until = time.monotonic() + 60
    while httpx.get(url + "/readyz").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.1)
