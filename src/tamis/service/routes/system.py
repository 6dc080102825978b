"""The service itself: whether it lives, whether it is ready, and its figures."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from tamis.errors import StorageUnavailable
from tamis.service.requests import TheParts
from tamis.service.schemas import Health, Readiness

router = APIRouter(tags=["system"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", response_model=Health, operation_id="health", summary="Does it live?")
async def health() -> dict[str, str]:
    """Answered as long as the process can answer at all."""
    return {"status": "ok"}


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz", response_model=Readiness, operation_id="readiness", summary="Is it ready?",
    responses={503: {"model": Readiness, "description": "Not yet, or not now."}},
)  # fmt: skip
def readiness(parts: TheParts, response: Response) -> dict[str, Any]:
    """Ready when all subscriptions are loaded and the database answers.

    Events that the pipeline has not read are told, and are no reason not to be ready.
    """
    try:
        parts.subscriptions.count()
        has_database = True
    except StorageUnavailable:
        has_database = False
    files = parts.operations.files
    is_ready = has_database and parts.index.is_ready
    response.status_code = 200 if is_ready else 503
    return {
        "ready": is_ready,
        "database": has_database,
        "subscriptions_loaded": parts.index.is_ready,
        "n_subscriptions": len(parts.index),
        "sequence": parts.index.sequence,
        "unread_event_files": files and files.unread,
        "oldest_unread_s": files and files.oldest_unread_s,
    }


@router.get(
    "/metrics", response_class=Response, operation_id="metrics", summary="Figures for Prometheus",
    responses={
        200: {
            "description": "Prometheus' text format.",
            "content": {
                "text/plain": {"schema": {"type": "string"}, "example": "tamis_ready 1.0\n"}
            },
        }
    },
)  # fmt: skip
def metrics(parts: TheParts) -> Response:
    """Requests, events, imports, the live index, deliveries and files of events."""
    figures = parts.metrics
    figures.subscriptions.set(len(parts.index))
    figures.sequence.set(parts.index.sequence)
    figures.is_ready.set(parts.index.is_ready)
    figures.feeds.set(parts.feed.n_waiting)
    figures.recent.set(len(parts.recent))
    return Response(generate_latest(figures.registry), media_type=CONTENT_TYPE_LATEST)
