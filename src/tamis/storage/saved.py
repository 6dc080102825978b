"""Saved subscriptions: what is kept of each, and the row it is in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tamis.language import to_json
from tamis.model import Subscription
from tamis.model.subscription import CIRCLE

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class SubscriptionRow(NamedTuple):
    """A row of the table, its columns in their order; ``filter`` and such are JSON text."""

    id: str
    owner: str
    filter: str
    spelling: str
    priority: int
    delivery: str
    lon: float | None
    lat: float | None
    radius_m: float | None
    area: str | None
    is_paused: bool  # 0 or 1 from SQLite
    version: int
    created_at: str
    updated_at: str

    @property
    def etag(self) -> str:
        """See `etag_of`."""
        return etag_of(self.version, self.created_at)


@dataclass(frozen=True, slots=True)
class Saved:
    """A subscription as it is saved.

    ``spelling`` is the filter as its owner wrote it, ``{"query": text}`` for query notation;
    ``version`` counts its changes from 1.
    """

    subscription: Subscription
    spelling: Any
    is_paused: bool = False
    version: int = 1
    created_at: str = ""
    updated_at: str = ""

    @property
    def id(self) -> str:
        """The id of the subscription."""
        return self.subscription.id

    @property
    def owner(self) -> str:
        """The owner of the subscription."""
        return self.subscription.owner

    @property
    def etag(self) -> str:
        """See `etag_of`."""
        return etag_of(self.version, self.created_at)


def etag_of(version: int, created_at: str) -> str:
    """What tells one state of a subscription from every other, also of one deleted before it.

    >>> etag_of(3, "2026-01-01T09:00:00.000000Z")
    '3-2026-01-01T09:00:00.000000Z'
    """
    return f"{version}-{created_at}"


def row_of(saved: Saved) -> SubscriptionRow:
    """The row of a subscription."""
    held, spelling = saved.subscription, as_text(saved.spelling)
    is_json = isinstance(saved.spelling, Mapping) and saved.spelling.keys() != {"query"}
    place = held.location
    return SubscriptionRow(
        held.id,
        held.owner,
        spelling if is_json else as_text(to_json(held.filter)),
        spelling,
        held.priority,
        as_text(held.delivery),
        None if place is None else place.lon,
        None if place is None else place.lat,
        held.radius_m,
        None if place is None else held.area,
        saved.is_paused,
        saved.version,
        saved.created_at,
        saved.updated_at,
    )


def subscription_of(row: Any, *, with_delivery: bool = True) -> Subscription:
    """The subscription in a row, one of ours or of SQLAlchemy's."""
    return Subscription(
        row.id,
        json.loads(row.filter),
        row.priority,
        row.owner,
        json.loads(row.delivery) if with_delivery else None,
        None if row.lon is None else (row.lon, row.lat),
        row.radius_m,
        row.area or CIRCLE,
    )


def saved_of(row: SubscriptionRow) -> Saved:
    """The subscription in a row, with all that is saved beside it."""
    return Saved(
        subscription_of(row),
        json.loads(row.spelling),
        bool(row.is_paused),
        row.version,
        row.created_at,
        row.updated_at,
    )


def as_text(held: Mapping[str, Any] | Sequence[Any] | str | bool) -> str:
    """JSON as the columns have it."""
    return _ENCODER.encode(held)
