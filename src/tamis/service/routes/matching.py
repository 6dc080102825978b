"""Matching that tells nobody: who would be told, why, and how often."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from tamis.errors import InvalidSubscription
from tamis.language import explain as explain_filter
from tamis.language import normal_form, to_sql
from tamis.model import Event, Subscription
from tamis.model.subscription import CIRCLE
from tamis.service.recent import RecentEvents
from tamis.service.requests import StrictRoute, SubscriberCaller, TheParts
from tamis.service.routes.answers import problems
from tamis.service.schemas import (
    Explained,
    ExplainRequest,
    Matched,
    MatchRequest,
    Previewed,
    PreviewRequest,
)
from tamis.storage.drafts import check_name, read_filter

router = APIRouter(prefix="/v1", tags=["matching"], route_class=StrictRoute)

_NO_NAME = "event"


@router.post(
    "/match", response_model=Matched, operation_id="match", summary="Who would be told",
    responses=problems(),
)  # fmt: skip
def match(asked: MatchRequest, caller: SubscriberCaller, parts: TheParts) -> dict[str, Any]:
    """The subscriptions that an event satisfies; nothing is sent.

    The caller's own, or everybody's for an admin. What was saved before the request counts.
    """
    event = Event.from_json(asked.event, default_id=_NO_NAME)
    ids = parts.index.match(event, caller.owner)
    return {"n_matches": len(ids), "ids": ids[: asked.limit]}


@router.post(
    "/explain", response_model=Explained, operation_id="explain",
    summary="Why an event matches, or does not", responses=problems(404),
)  # fmt: skip
def explain(asked: ExplainRequest, caller: SubscriberCaller, parts: TheParts) -> dict[str, Any]:
    """Whether a filter, or that of a subscription, accepts an event, clause by clause."""
    if (asked.id is None) == (asked.filter is None):
        raise InvalidSubscription("give the id of a subscription or a filter, one of the two")
    if asked.id is not None:
        saved = parts.subscriptions.get(check_name(asked.id, "id"), caller.owner)
        filter = saved.subscription.condition
    else:
        filter, _ = read_filter(asked.filter, asked.spelling)
    event = Event.from_json(asked.event, default_id=_NO_NAME)
    made = explain_filter(filter, event)
    return {"held": made.held, "text": str(made), "tree": made.to_json()}


@router.post(
    "/preview", response_model=Previewed, operation_id="preview",
    summary="How often a filter would have matched", responses=problems(),
)  # fmt: skip
async def preview(
    asked: PreviewRequest, caller: SubscriberCaller, parts: TheParts
) -> dict[str, Any]:
    """Try a filter on the last events, and be warned of one that is too broad."""
    async with parts.previewing:
        return await run_in_threadpool(_preview, asked, caller.limits.conjunctions, parts.recent)


def _preview(asked: PreviewRequest, cap: int, recent: RecentEvents) -> dict[str, Any]:
    filter, _ = read_filter(asked.filter, asked.spelling)
    place = None if asked.location is None else (asked.location[0], asked.location[1])
    area = asked.area or CIRCLE
    whole = Subscription(_NO_NAME, filter, location=place, radius_m=asked.radius_m, area=area)
    conjunctions = normal_form(whole.condition, cap=cap)
    found = recent.preview(whole.condition, asked.n_events, asked.n_examples)
    share = found.n_matches / found.n_events if found.n_events else None
    warning = None
    if found.is_too_broad and share is not None:
        warning = (
            f"the filter accepts {share:.0%} of the last {found.n_events:,} events; narrow it, or "
            "its subscriber is told of little else"
        )
    return {
        "n_events": found.n_events,
        "n_matches": found.n_matches,
        "share": share,
        "too_broad": found.is_too_broad,
        "warning": warning,
        "sql": to_sql(whole.condition),
        "n_conjunctions": len(conjunctions),
        "examples": [event.to_json() for event in found.examples],
    }
