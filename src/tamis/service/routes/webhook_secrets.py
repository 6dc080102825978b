"""The secret that a receiver of webhooks checks their signatures with."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from tamis.service.key_ring import Caller
from tamis.service.requests import StrictRoute, SubscriberCaller, TheParts
from tamis.service.routes.answers import problems
from tamis.service.schemas import WebhookSecret
from tamis.storage.drafts import check_name
from tamis.storage.webhook_secrets import renew_webhook_secret, webhook_secret

router = APIRouter(prefix="/v1/webhook-secret", tags=["webhooks"], route_class=StrictRoute)

Owner = Annotated[str | None, Query(description="Of another owner, for an admin.")]


@router.get(
    "", response_model=WebhookSecret, operation_id="readWebhookSecret",
    summary="Read the secret that signs webhooks", responses=problems(),
)  # fmt: skip
def read(
    caller: SubscriberCaller, parts: TheParts, response: Response, owner: Owner = None
) -> WebhookSecret:
    """The caller's secret, with which receivers check the signatures of webhooks."""
    response.headers["cache-control"] = "no-store"
    return WebhookSecret(secret=webhook_secret(parts.database, _chosen(caller, owner)))


@router.post(
    "/renew", response_model=WebhookSecret, operation_id="renewWebhookSecret",
    summary="Make another secret", responses=problems(),
)  # fmt: skip
def renew(
    caller: SubscriberCaller, parts: TheParts, response: Response, owner: Owner = None
) -> WebhookSecret:
    """Another secret from now on; links in mails that were sent no longer count."""
    response.headers["cache-control"] = "no-store"
    return WebhookSecret(secret=renew_webhook_secret(parts.database, _chosen(caller, owner)))


def _chosen(caller: Caller, owner: str | None) -> str:
    if caller.owner is not None or owner is None:
        return caller.key.owner
    return check_name(owner, "owner")
