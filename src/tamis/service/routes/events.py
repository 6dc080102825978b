"""Events: published into the event log."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from fastapi import APIRouter, Request, Response

from tamis.model import Event
from tamis.service.binary_mode import is_binary, to_structured
from tamis.service.key_ring import Caller
from tamis.service.parts import Parts
from tamis.service.problems import AtWork, BadRequest
from tamis.service.published import read_batch, read_events
from tamis.service.requests import (
    PublisherCaller,
    RawBody,
    StrictRoute,
    TheParts,
    read_strictly,
)
from tamis.service.routes.answers import problems
from tamis.service.routes.subscriptions import IdempotencyKey
from tamis.service.schemas import Published
from tamis.storage.idempotency import Token, claim, forget, keep
from tamis.storage.tables import moment

router = APIRouter(prefix="/v1/events", tags=["events"], route_class=StrictRoute)

_TWIN_MAY_TAKE = timedelta(seconds=30)
_CLOUD_EVENT = "application/cloudevents+json"
_KINDS: dict[str, dict[str, Any]] = {
    "application/json": {
        "schema": {"type": "object"},
        "examples": {
            "attributes": {"value": {"id": "e1", "brand": "Huawei", "price": 3200}},
            "envelope": {
                "value": {
                    "id": "e2", "attributes": {"price": 3200}, "time": "2026-01-01T09:00:00Z"
                }
            },
        },
    },
    "application/x-ndjson": {
        "schema": {"type": "string"},
        "example": '{"id": "e1", "price": 3200}\n{"id": "e2", "price": 10}\n',
    },
    _CLOUD_EVENT: {
        "schema": {"type": "object"},
        "example": {
            "specversion": "1.0", "id": "e3", "source": "/shop", "type": "offer",
            "data": {"price": 3200},
        },
    },
    "application/cloudevents-batch+json": {
        "schema": {"type": "array", "items": {"type": "object"}},
        "example": [
            {"specversion": "1.0", "id": "e4", "source": "/shop", "type": "offer",
             "data": {"price": 10}}
        ],
    },
}  # fmt: skip


@router.post(
    "", status_code=202, response_model=Published, operation_id="publishEvents",
    summary="Publish one event or many", responses=problems(409),
    openapi_extra={"requestBody": {"required": True, "content": _KINDS}},
)  # fmt: skip
def publish(
    request: Request,
    body: RawBody,
    caller: PublisherCaller,
    parts: TheParts,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Write events to the log that the pipeline reads; the answer comes when they are durable.

    One JSON object (attributes, or an envelope with `attributes`), NDJSON, a CloudEvent or a
    batch of them. An event gets an id and a time if it has none. All of a request or nothing.
    A CloudEvent may also come in binary mode: its context in headers such as `ce-id`, its data as
    `application/json`.
    """
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if is_binary(request.headers, kind):
        kind, body = _CLOUD_EVENT, to_structured(request.headers.items(), kind, body)
    if idempotency_key is None:
        return _answer(_publish(parts, _events(kind, body, None)))
    token = _token(caller, idempotency_key, kind, body)
    earlier = _claim(parts, token)
    if earlier is not None:
        return _answer(earlier)
    try:
        # Whoever asks again makes the same ids, so that nobody is told twice.
        told = _publish(parts, _events(kind, body, _ids_from(token)))
    except Exception:
        with parts.database.writing() as connection:
            forget(connection, token)
        raise
    with parts.database.writing() as connection:
        keep(connection, token, 202, json.dumps(told))
    return _answer(told)


def _publish(parts: Parts, events: list[Event]) -> dict[str, Any]:
    if events:
        parts.event_log.append(events).result()
        parts.recent.extend(events)
        parts.metrics.published.inc(len(events))
    return {"n_events": len(events), "ids": [event.id for event in events]}


def _events(kind: str, body: bytes, make_id: Callable[[int], str] | None) -> list[Event]:
    if kind in ("application/x-ndjson", "application/jsonl", "application/ndjson"):
        return read_events(body, is_lines=True, make_id=make_id)
    if kind == "application/json":
        return read_events(body, make_id=make_id)
    if kind == _CLOUD_EVENT:
        return read_events(body, is_cloud=True, make_id=make_id)
    if kind == "application/cloudevents-batch+json":
        return read_batch(_array(body), make_id)
    raise BadRequest(f"the Content-Type {kind!r} is not one of {', '.join(_KINDS)}")


def _array(body: bytes) -> list[Any]:
    held = read_strictly(body)
    if not isinstance(held, list):
        raise BadRequest("a batch of CloudEvents is a JSON array")
    return held


def _token(caller: Caller, key: str, kind: str, body: bytes) -> Token:
    if not key.isprintable():
        raise BadRequest("the Idempotency-Key holds characters that cannot be shown")
    request = sha256(b"events\0" + kind.encode() + b"\0" + body).hexdigest()
    return Token(caller.key.prefix, key, request)


def _ids_from(token: Token) -> Callable[[int], str]:
    base = f"{token.key_prefix}/{token.token}/{token.request}"
    return lambda number: sha256(f"{number}/{base}".encode()).hexdigest()[:26]


def _claim(parts: Parts, token: Token) -> dict[str, Any] | None:
    """None for whoever has to publish; else what was answered before."""
    with parts.database.writing() as connection:
        earlier = claim(connection, token)
    if earlier is None:
        return None
    if earlier.text is not None:
        answered: dict[str, Any] = json.loads(earlier.text)
        return answered
    if earlier.asked_at > moment(datetime.now(UTC) - _TWIN_MAY_TAKE):
        raise AtWork("the same request is being answered; ask again in a moment")
    return None  # it was never answered: its service is gone


def _answer(told: dict[str, Any]) -> Response:
    return Response(json.dumps(told), 202, media_type="application/json")
