"""The OpenAPI document: whole, with examples, and true whatever is sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import SkipTest

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.integration.postgresql import PostgreSQL
from tests.integration.service_server import Service, running_service

BOUNDED = settings(
    max_examples=8, deadline=None, database=None, derandomize=True,
    suppress_health_check=list(HealthCheck), phases=[Phase.generate],
)  # fmt: skip
FEWER = settings(BOUNDED, max_examples=4)  # the second time
ENDLESS = "/v1/notifications/stream"


@schemathesis.serializer("application/x-ndjson")
def write_lines(context: Any, value: Any) -> bytes:
    return value.encode(errors="replace") if isinstance(value, str) else json.dumps(value).encode()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    url = None
    if request.param == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        url = server.new_database()
    with running_service(tmp_path_factory.mktemp("openapi"), url) as running:
        running.wait_until_ready()
        yield running


@pytest.fixture(scope="module")
def document(service: Service) -> dict[str, Any]:
    held: dict[str, Any] = httpx.get(service.url + "/openapi.json").json()
    return held


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def has_example(held: dict[str, Any], document: dict[str, Any]) -> bool:
    if "example" in held or "examples" in held:
        return True
    schema = held.get("schema", held)
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return "example" in schema or "examples" in schema


def test_every_operation_is_described_with_examples(document: dict[str, Any]) -> None:
    names = []
    for name, operation in operations(document):
        assert operation["summary"], name
        assert operation["description"], name
        assert operation["operationId"], name
        names.append(operation["operationId"])
        bodies = operation.get("requestBody", {}).get("content", {})
        answers = [
            held
            for status, answer in operation["responses"].items()
            if status.startswith("2")
            for held in answer.get("content", {}).values()
        ]
        for held in (*bodies.values(), *answers):
            assert has_example(held, document), name
        if "/v1/" in name:
            assert operation["security"], name
            assert {"401", "403", "429", "503"} <= operation["responses"].keys(), name
    assert len(names) == len(set(names)) == 28


def test_the_examples_of_bodies_are_accepted(service: Service, document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    with service.client() as admin:
        for name, path in (
            ("SubscriptionDraft", "subscriptions"), ("PreviewRequest", "preview"),
            ("MatchRequest", "match"), ("ReplayRequest", "deliveries/replay"),
        ):  # fmt: skip
            for example in schemas[name]["examples"]:
                answer = admin.post(f"/v1/{path}", json=example)
                assert answer.is_success, (name, example, answer.text)
        for kind, held in document["paths"]["/v1/events"]["post"]["requestBody"]["content"].items():
            given_examples = [one["value"] for one in held.get("examples", {}).values()]
            for example in given_examples or [held["example"]]:
                body = example if isinstance(example, str) else json.dumps(example)
                answer = admin.post(
                    "/v1/events", content=body.encode(), headers={"Content-Type": kind}
                )
                assert answer.status_code == 202, (kind, answer.text)


def test_nothing_that_is_sent_breaks_the_service(service: Service) -> None:
    """Schemathesis tries every operation with what fits the document, and with what does not."""
    schema = schemathesis.openapi.from_url(service.url + "/openapi.json").exclude(path=ENDLESS)
    headers = {"Authorization": f"Bearer {service.admin}"}
    checks = [
        not_a_server_error, status_code_conformance, content_type_conformance,
        response_schema_conformance,
    ]  # fmt: skip
    n_tried: Counter[str] = Counter()
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE:

            def try_case(case: Any) -> None:
                n_tried[case.operation.label] += 1
                if case.method == "DELETE" and "keys" in case.path:
                    case.path_parameters = {"prefix": "0123456789"}  # not the key used here
                case.call_and_validate(headers=headers, checks=checks)

            tried = given(case=operation.as_strategy(generation_mode=mode))(try_case)
            try:
                (BOUNDED if service.database.is_sqlite else FEWER)(tried)()
            except (SkipTest, Unsatisfiable):  # nothing can be sent to it that does not fit
                assert mode is schemathesis.GenerationMode.NEGATIVE
    assert len(n_tried) == 27
    assert httpx.get(service.url + "/readyz").status_code == 200
    metrics = httpx.get(service.url + "/metrics").text
    # /readyz says 503 until everything is loaded.
    assert {*re.findall(r'route="([^"]*)",status="5\d\d"', metrics)} <= {"/readyz"}


def test_bodies_of_the_answers_are_as_documented_on_disk(service: Service, tmp_path: Path) -> None:
    """The document is the same however often it is asked for, and is JSON that others can read."""
    first = httpx.get(service.url + "/openapi.json").content
    (tmp_path / "openapi.json").write_bytes(first)
    assert json.loads(first)["openapi"].startswith("3.1")
    assert httpx.get(service.url + "/openapi.json").content == first
