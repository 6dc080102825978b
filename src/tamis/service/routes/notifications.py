"""Notifications: listed, read, sent again, and followed live."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from tamis.service.problems import BadRequest
from tamis.service.requests import StrictRoute, SubscriberCaller, TheParts
from tamis.service.routes.answers import problems
from tamis.service.schemas import (
    DeliveryOut,
    NotificationOut,
    NotificationPage,
    NotificationRead,
    Replayed,
)
from tamis.storage.drafts import check_name

router = APIRouter(prefix="/v1/notifications", tags=["notifications"], route_class=StrictRoute)

Id = Annotated[
    str,
    Path(
        description="The id of a notification.", examples=["c881a45280b0e4a400c360f994f01aa8"]
    ),
]  # fmt: skip
_LARGEST = 2**63 - 1
_NUMBER = re.compile(r"[0-9]{1,19}")
_PING_S = 15


@router.get(
    "", response_model=NotificationPage, operation_id="listNotifications",
    summary="List notifications", responses=problems(),
)  # fmt: skip
def list_page(
    caller: SubscriberCaller,
    parts: TheParts,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    before: Annotated[
        int | None, Query(ge=0, le=_LARGEST, description="`next` of the last page.")
    ] = None,
    subscription_id: Annotated[str | None, Query(description="Of one subscription.")] = None,
) -> Response:
    """The notifications of the caller (of everybody, for an admin), the newest first."""
    if subscription_id is not None:
        check_name(subscription_id, "id")
    found = parts.inbox.before(
        before, caller.owner, subscription_id=subscription_id, most=limit + 1
    )
    page = NotificationPage.model_construct(
        items=[NotificationOut.of(one) for one in found[:limit]],
        next=found[limit - 1].number if len(found) > limit else None,
    )
    return Response(page.model_dump_json(), media_type="application/json")


@router.get(
    "/stream", operation_id="followNotifications", summary="Follow notifications live",
    response_class=EventSourceResponse,
    responses={
        **problems(),
        200: {
            "description": "Server-sent events; `id` is the notification's number.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": 'id: 17\nevent: notification\ndata: {"number":17,"id":"…"}\n\n',
                }
            },
        },
    },
)  # fmt: skip
async def stream(
    caller: SubscriberCaller,
    parts: TheParts,
    last_event_id: Annotated[
        str | None,
        Header(
            description="Go on after this number; without it, with what is new.", examples=["17"]
        ),
    ] = None,
) -> EventSourceResponse:
    """Server-sent events: a notification each, as they become visible."""
    after = None if last_event_id is None else _number(last_event_id)

    async def told() -> AsyncIterator[ServerSentEvent]:
        async for one in parts.feed.follow(caller.owner, after):
            # The gate saw the key when the stream began, which may be days ago.
            if not await run_in_threadpool(parts.key_ring.counts, caller.key.prefix):
                return
            data = json.dumps(NotificationOut.of(one).model_dump(), ensure_ascii=False)
            yield ServerSentEvent(data, event="notification", id=str(one.number))

    return EventSourceResponse(told(), ping=_PING_S)


def _number(text: str) -> int:
    """The number that a Last-Event-ID is."""
    if not _NUMBER.fullmatch(text) or int(text) > _LARGEST:
        raise BadRequest(f"Last-Event-ID {text[:40]!r} is no number of a notification")
    return int(text)


@router.get(
    "/{id}", response_model=NotificationRead, operation_id="readNotification",
    summary="Read a notification", responses=problems(404),
)  # fmt: skip
def read(id: Id, caller: SubscriberCaller, parts: TheParts) -> Response:
    """A notification, and how far it got on each transport."""
    told, deliveries = parts.inbox.get(check_name(id, "id"), caller.owner)
    held: dict[str, Any] = NotificationOut.of(told).model_dump()
    held["deliveries"] = [DeliveryOut.of(one).model_dump() for one in deliveries]
    return Response(json.dumps(held, ensure_ascii=False), media_type="application/json")


@router.post(
    "/{id}/replay", status_code=202, response_model=Replayed, operation_id="replayNotification",
    summary="Send a notification again", responses=problems(404),
)  # fmt: skip
def replay(id: Id, caller: SubscriberCaller, parts: TheParts) -> dict[str, int]:
    """Let the deliveries that are over, sent or given up, begin anew."""
    return {"n_deliveries": parts.replay(check_name(id, "id"), caller.owner)}
