"""Subscriptions as their owners are told of them; `SubscriptionOut` is their schema."""

from __future__ import annotations

import json
from typing import Any

from tamis.storage import Saved
from tamis.storage.drafts import told_spelling
from tamis.storage.saved import SubscriptionRow

__all__ = ["told_of_row", "told_of_saved"]


def told_of_row(row: SubscriptionRow) -> dict[str, Any]:
    """What is told of a row; its filter is told as it was given, and not read."""
    filter, spelling = told_spelling(json.loads(row.spelling))
    return {
        "id": row.id, "owner": row.owner, "filter": filter, "spelling": spelling,
        "priority": row.priority, "delivery": json.loads(row.delivery),
        "location": None if row.lon is None else [row.lon, row.lat], "radius_m": row.radius_m,
        "area": row.area, "is_paused": bool(row.is_paused), "version": row.version,
        "etag": row.etag, "created_at": row.created_at, "updated_at": row.updated_at,
    }  # fmt: skip


def told_of_saved(saved: Saved) -> dict[str, Any]:
    """The same of what was read to be saved."""
    held, place = saved.subscription, saved.subscription.location
    filter, spelling = told_spelling(saved.spelling)
    return {
        "id": held.id, "owner": held.owner, "filter": filter, "spelling": spelling,
        "priority": held.priority, "delivery": dict(held.delivery),
        "location": None if place is None else [place.lon, place.lat], "radius_m": held.radius_m,
        "area": None if place is None else held.area, "is_paused": saved.is_paused,
        "version": saved.version, "etag": saved.etag, "created_at": saved.created_at,
        "updated_at": saved.updated_at,
    }  # fmt: skip
