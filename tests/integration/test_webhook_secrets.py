"""The secret that signs webhooks: told to its owner, renewed, and what signatures are made with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tamis.client import AsyncClient, Client
from tests.integration.receiver import receiving
from tests.integration.sending import Clock, notify, send_due, settings, subscribe
from tests.integration.service_server import Service, running_service


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Service]:
    with running_service(tmp_path / "data", database_url) as running:
        yield running


def test_a_receiver_checks_signatures_with_what_the_owner_was_told(service: Service) -> None:
    with Client(service.url, service.key("zoe")) as zoe, receiving() as receiver:
        before = zoe.webhook_secret()  # before there is any subscription
        subscribe(service.database, "s1", {"webhook": receiver.url})
        assert zoe.webhook_secret() == before
        after = zoe.renew_webhook_secret()
        assert after == zoe.webhook_secret() != before
        notify(service.database, "s1")
        send_due(service.database, settings(), Clock())
    (got,) = receiver.received
    Webhook(after).verify(got.body, got.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(before).verify(got.body, got.headers)


def test_the_secrets_of_others_are_not_told(service: Service) -> None:
    with Client(service.url, service.key("zoe")) as zoe, Client(service.url, service.admin) as root:
        own = zoe.webhook_secret()
        with Client(service.url, service.key("max")) as other:
            assert other.webhook_secret("zoe") == other.webhook_secret() != own
            other.renew_webhook_secret("zoe")
        assert zoe.webhook_secret() == root.webhook_secret("zoe") == own != root.webhook_secret()
    with service.client() as admin, service.client(service.key("max", "publisher")) as publisher:
        assert admin.get("/v1/webhook-secret").headers["cache-control"] == "no-store"
        assert publisher.get("/v1/webhook-secret").status_code == 403

    async def renewed() -> tuple[str, str]:
        async with AsyncClient(service.url, service.admin) as client:
            return await client.renew_webhook_secret("zoe"), await client.webhook_secret("zoe")

    made, told = asyncio.run(renewed())
    assert made == told != own
