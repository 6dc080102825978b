"""Schemas of the operators' API, with examples."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tamis.service.schemas import Name

_DELIVERY: dict[str, Any] = {
    "notification_id": "c881a45280b0e4a400c360f994f01aa8", "subscription_id": "s1",
    "transport": "webhook", "destination": "https://example.org", "attempts": 3,
    "last_error": "answered 404 Not Found", "last_time": "2026-01-01T09:00:00.000000Z",
}  # fmt: skip
_OPERATIONS: dict[str, Any] = {
    "time": "2026-01-01T09:00:00.000Z",
    "events": {"total": 120_000, "per_s": 80.5},
    "matches": {"total": 4_000, "per_s": 2.5},
    "lag_s": 0.9,
    "index": {"version": 17, "n_subscriptions": 2},
    "notifications": {"total": 3_200},
    "deliveries": {
        "waiting": 12, "sent": 3_100, "failed": 40, "dead": 2, "oldest_waiting_s": 1.5,
        "destinations": [{"destination": "https://example.org", "is_open": True, "failures": 6}],
    },
    "event_files": {"total": 5_000, "unread": 3, "oldest_unread_s": 0.8},
    "history": [
        {"time": "2026-01-01T09:00:00.000Z", "events_per_s": 80.5, "matches_per_s": 2.5,
         "lag_s": 0.9, "deliveries_per_s": 2.0}
    ],
    "broadest": [{"id": "s1", "share": 0.5, "matches": 128}],
    "costliest": [{"id": "s2", "cost_us": 41.5, "matches": 3}],
}  # fmt: skip


class Total(BaseModel):
    """How many there are; null where it is not known."""

    total: int | None


class Rate(Total):
    """How many since the pipeline was started, and how many a second of late."""

    per_s: float | None


class IndexState(BaseModel):
    """The live index of this service; null until it is loaded."""

    version: int | None = Field(description="The last change that is in it.")
    n_subscriptions: int | None


class DestinationState(BaseModel):
    """A destination that failed the last time."""

    destination: str
    is_open: bool = Field(description="Its circuit is open: it rests.")
    failures: int = Field(description="In a row.")


class DeliveryFigures(BaseModel):
    """How deliveries stand; null where the database does not answer."""

    waiting: int | None = Field(description="Not over, with those under way.")
    sent: int | None = Field(description="Attempts that were taken, of all senders, ever.")
    failed: int | None = Field(description="Attempts that were not.")
    dead: int | None = Field(description="Given up, and still kept.")
    oldest_waiting_s: float | None = Field(description="How long the longest overdue is overdue.")
    destinations: list[DestinationState] = Field(description="The 20 with most failures.")


class EventFileCounts(BaseModel):
    """The files of the event log; null where the pipeline's status cannot be read."""

    total: int
    unread: int | None = Field(description="Written after the newest that was read.")
    oldest_unread_s: float | None


class HistoryPoint(BaseModel):
    """How it stood at one time."""

    time: str
    events_per_s: float | None
    matches_per_s: float | None
    lag_s: float | None
    deliveries_per_s: float | None


class BroadSubscription(BaseModel):
    """A subscription that accepts many of the recent events."""

    id: str
    share: float = Field(description="Of up to 256 of the last events of this service.")
    matches: int


class CostlySubscription(BaseModel):
    """A subscription whose filter the compiled index has to ask."""

    id: str
    cost_us: float = Field(description="To decide one event, in microseconds.")
    matches: int = Field(description="Of the same events.")


class OperationsOut(BaseModel):
    """How the whole of it stands."""

    model_config = ConfigDict(json_schema_extra={"examples": [_OPERATIONS]})
    time: str
    events: Rate
    matches: Rate
    lag_s: float | None = Field(
        description="How long the oldest unread event waits; at least what the last two "
        "micro-batches took."
    )
    index: IndexState
    notifications: Total
    deliveries: DeliveryFigures
    event_files: EventFileCounts | None = Field(description="null where events go to Kafka.")
    history: list[HistoryPoint] = Field(description="Up to 300 points, the oldest first.")
    broadest: list[BroadSubscription]
    costliest: list[CostlySubscription]


class ListedDelivery(BaseModel):
    """A delivery, without anything that is secret."""

    notification_id: str
    subscription_id: str
    transport: str
    destination: str
    attempts: int
    last_error: str | None
    last_time: str


class DeliveryPage(BaseModel):
    """Some deliveries, the last changed first."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"items": [_DELIVERY], "next": None}]}
    )
    items: list[ListedDelivery]
    next: str | None = Field(description="The cursor of the next page; null on the last.")


class ReplayRequest(BaseModel):
    """Which dead deliveries to try again: of some notifications, or all."""

    model_config = ConfigDict(
        extra="forbid", strict=True,
        json_schema_extra={
            "examples": [{"ids": ["c881a45280b0e4a400c360f994f01aa8"]}, {"all": True}]
        },
    )  # fmt: skip
    ids: list[Name] | None = Field(None, min_length=1, max_length=1_000)
    all: bool = False


class DeadReplayed(BaseModel):
    """How many deliveries begin anew."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"replayed": 1}]})
    replayed: int


DeliveryState = Literal["waiting", "sending", "sent", "dead", "skipped"]
