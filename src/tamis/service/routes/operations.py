"""For operators: how the whole of it stands, and deliveries that were given up."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from tamis.errors import InvalidValue
from tamis.service.operation_schemas import (
    DeadReplayed,
    DeliveryPage,
    DeliveryState,
    ListedDelivery,
    OperationsOut,
    ReplayRequest,
)
from tamis.service.problems import BadRequest
from tamis.service.requests import AdminCaller, StrictRoute, TheParts
from tamis.service.routes.answers import problems
from tamis.service.secrets import without_secrets
from tamis.storage.delivery_log import Listed, list_deliveries
from tamis.storage.drafts import check_name

router = APIRouter(prefix="/v1", tags=["operations"], route_class=StrictRoute)

_CURSOR = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)~(\d{1,18})", re.ASCII)


@router.get(
    "/operations", response_model=OperationsOut, operation_id="readOperations",
    summary="How the whole of it stands", responses=problems(),
)  # fmt: skip
def read(caller: AdminCaller, parts: TheParts) -> Response:
    """Rates, lag, deliveries and a history, as a task of the service samples them.

    What is not known is null: the figures of a pipeline whose state folder this service cannot
    read, those of the database while it does not answer.
    """
    told = json.dumps(parts.operations.describe(), ensure_ascii=False)
    return Response(told, media_type="application/json")


@router.get(
    "/deliveries", response_model=DeliveryPage, operation_id="listDeliveries",
    summary="List deliveries", responses=problems(),
)  # fmt: skip
def list_page(
    caller: AdminCaller,
    parts: TheParts,
    state: Annotated[DeliveryState, Query(description="Those in this state.")] = "dead",
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str, Query(max_length=100, description="`next` of the last page.")] = "",
) -> DeliveryPage:
    """Deliveries of all owners in one state, the last changed first, without their addresses."""
    before = _place(cursor)
    found = list_deliveries(parts.database, state, before=before, most=limit + 1)
    last = found[limit - 1] if len(found) > limit else None
    return DeliveryPage(
        items=[_told(one) for one in found[:limit]],
        next=None if last is None else f"{last.last_time}~{last.number}",
    )


@router.post(
    "/deliveries/replay", status_code=202, response_model=DeadReplayed,
    operation_id="replayDeliveries", summary="Try dead deliveries again", responses=problems(),
)  # fmt: skip
def replay(asked: ReplayRequest, caller: AdminCaller, parts: TheParts) -> dict[str, Any]:
    """Let the dead deliveries of some notifications, or all of them, begin anew."""
    if (asked.ids is not None) == asked.all:
        raise InvalidValue('give the ids of notifications or "all": true, one of the two')
    ids = None if asked.ids is None else [check_name(id, "id") for id in asked.ids]
    return {"replayed": parts.replay_dead(ids)}


def _place(cursor: str) -> tuple[str, int] | None:
    if not cursor:
        return None
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise BadRequest(f"the cursor {cursor!r} is none of ours; begin without one")
    return found[1], int(found[2])


def _told(one: Listed) -> ListedDelivery:
    return ListedDelivery(
        notification_id=one.notification_id, subscription_id=one.subscription_id,
        transport=one.transport, destination=one.destination, attempts=one.attempts,
        last_error=one.last_error and without_secrets(one.last_error), last_time=one.last_time,
    )  # fmt: skip
