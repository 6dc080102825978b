"""Subscriptions in bulk: imported and exported as lines of JSON, streamed both ways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from tamis.service.importing import DuplexResponse, Import
from tamis.service.requests import StrictRoute, SubscriberCaller, TheParts
from tamis.service.routes.answers import problems
from tamis.service.routes.subscriptions import rules_of
from tamis.service.told import told_of_row
from tamis.storage import SubscriptionStore
from tamis.storage.imports import Importer

router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"], route_class=StrictRoute)

_LINES = "application/x-ndjson"
_PAGE = 1_000
_DRAFTS = (
    '{"id": "s1", "filter": "price < 3300"}\n'
    '{"id": "s2", "filter": {"attribute": "price", "op": "<", "value": 10}}\n'
)
_RESULTS = (
    '{"line":1,"id":"s1","result":"created"}\n'
    '{"line":2,"id":"s2","result":"replaced"}\n'
    '{"summary":{"lines":2,"created":1,"replaced":1,"errors":0}}\n'
)


@router.post(
    "/import", operation_id="importSubscriptions", summary="Save many subscriptions",
    response_class=Response,
    responses={
        **problems(),
        200: {
            "description": "A line for each line, then a summary.",
            "content": {_LINES: {"schema": {"type": "string"}, "example": _RESULTS}},
        },
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "One subscription a line, as for POST /v1/subscriptions, with an id.",
            "content": {_LINES: {"schema": {"type": "string"}, "example": _DRAFTS}},
        }
    },
)  # fmt: skip
async def import_lines(
    request: Request,
    caller: SubscriberCaller,
    parts: TheParts,
    results: Annotated[
        Literal["all", "errors"], Query(description="Of which lines the result is told.")
    ] = "all",
) -> DuplexResponse:
    """Save the subscriptions of all lines; those whose id is there are replaced.

    Some thousand lines are one transaction. What became of each line is told while the others
    are still being read: `created`, `replaced`, or `error` with the problem. If the connection
    breaks, what was told is saved, and the rest can be sent again.
    """
    importer = Importer(parts.database, caller.most_subscriptions)
    reader = importer.reader(rules_of(caller, parts), min(caller.limits.body_bytes, 1_048_576))
    work = Import(
        reader, importer, parts.index, parts.metrics, only_errors=results == "errors"
    )  # fmt: skip
    return DuplexResponse(work.run(request.stream()), _LINES)


@router.get(
    "/export", operation_id="exportSubscriptions", summary="All subscriptions",
    response_class=StreamingResponse,
    responses={
        **problems(),
        200: {
            "description": "One subscription a line, in the order of their ids.",
            "content": {_LINES: {"schema": {"type": "string"}, "example": _DRAFTS}},
        },
    },
)  # fmt: skip
async def export_lines(caller: SubscriberCaller, parts: TheParts) -> StreamingResponse:
    """The subscriptions of the caller (of everybody, for an admin), as an import takes them."""
    pages = _pages(parts.subscriptions, caller.owner)
    first = await asyncio.to_thread(next, pages, b"")  # so that an error can still be answered

    async def stream() -> AsyncIterator[bytes]:
        page = first
        while page:
            yield page
            page = await asyncio.to_thread(next, pages, b"")

    return StreamingResponse(stream(), media_type=_LINES)


_DRAFT_FIELDS = (
    "id", "owner", "filter", "spelling", "priority", "delivery", "location", "radius_m",
    "area", "is_paused",
)  # fmt: skip


def _pages(store: SubscriptionStore, owner: str | None) -> Iterator[bytes]:
    after = ""
    while page := store.page(owner, after=after, most=_PAGE):
        lines = []
        for row in page:
            told = told_of_row(row)
            kept = {name: told[name] for name in _DRAFT_FIELDS if told[name] is not None}
            lines.append(json.dumps(kept, ensure_ascii=False, separators=(",", ":")))
        yield ("\n".join(lines) + "\n").encode()
        after = page[-1].id
