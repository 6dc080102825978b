"""Notifications as the pipeline writes them, without the pipeline."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from tamis.storage.outbox import add_notifications
from tests.integration.service_server import Service


def tell(
    service: Service, owner: str, subscription_id: str, *events: Mapping[str, Any] | bytes
) -> str:
    """Tell an owner that a subscription accepted events: attributes with an id, or payloads."""
    matches = []
    for number, event in enumerate(events):
        id, payload = f"payload-{number}", event
        if not isinstance(event, bytes):
            id = event["id"]
            payload = json.dumps({key: event[key] for key in event if key != "id"}).encode()
        matches.append(
            {
                "event_id": id, "priority": 5, "event_time": "2026-01-01T08:59:59.000000Z",
                "matched_at": "2026-01-01T09:00:00.000000Z",
                "payload": base64.b64encode(payload).decode(),
            }
        )  # fmt: skip
    id = uuid4().hex
    row = {
        "id": id, "subscription_id": subscription_id, "owner": owner, "priority": 5,
        "due": "2026-01-01T09:00:00.000000Z", "part": 1, "parts": 1, "total": len(events),
        "n_matches": len(events), "held_back": 0, "delivery": "", "matches": json.dumps(matches),
        "batch": 0,
    }  # fmt: skip
    add_notifications(service.database, [row])
    return id
