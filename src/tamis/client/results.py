"""What a service answers, as classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SavedSubscription:
    """A subscription as a service has it; ``filter`` is as it was given."""

    id: str
    owner: str
    filter: Any
    spelling: str
    priority: int
    delivery: dict[str, Any]
    location: list[float] | None
    radius_m: float | None
    area: str | None
    is_paused: bool
    version: int
    etag: str
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of a line: ``created``, ``replaced`` or ``error``, and then the problem."""

    line: int
    id: str | None
    result: str
    problem: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """Events that are durable in the event log."""

    n_events: int
    ids: list[str]


@dataclass(frozen=True, slots=True)
class Matched:
    """Who would be told, highest priority first."""

    n_matches: int
    ids: list[str]


@dataclass(frozen=True, slots=True)
class Explained:
    """Whether a filter held, and why: as text, and as a tree."""

    held: bool
    text: str
    tree: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Previewed:
    """What a filter does with the recent events."""

    n_events: int
    n_matches: int
    share: float | None
    too_broad: bool
    warning: str | None
    sql: str
    n_conjunctions: int
    examples: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Notification:
    """What a subscriber is told at one time; ``deliveries`` only where one is read by its id."""

    number: int
    id: str
    subscription_id: str
    owner: str
    priority: int
    due: str
    part: int
    parts: int
    total: int
    n_matches: int
    held_back: int
    matches: list[Any]
    deliveries: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key without its secret."""

    prefix: str
    owner: str
    scopes: list[str]
    name: str
    limits: dict[str, Any]
    created_at: str
    last_used_at: str | None
    revoked_at: str | None


@dataclass(frozen=True, slots=True)
class NewKey(KeyInfo):
    """A key that was just made, with its text."""

    key: str


@dataclass(frozen=True, slots=True)
class Rate:
    """How many, and how many a second of late; None is what the service does not know."""

    total: int | None
    per_s: float | None = None


@dataclass(frozen=True, slots=True)
class IndexState:
    """The live index of a service."""

    version: int | None
    n_subscriptions: int | None


@dataclass(frozen=True, slots=True)
class DestinationState:
    """A destination that failed the last time; it rests while it ``is_open``."""

    destination: str
    is_open: bool
    failures: int


@dataclass(frozen=True, slots=True)
class DeliveryFigures:
    """How deliveries stand."""

    waiting: int | None
    sent: int | None
    failed: int | None
    dead: int | None
    oldest_waiting_s: float | None
    destinations: list[DestinationState]


@dataclass(frozen=True, slots=True)
class EventFileCounts:
    """The files of the event log, and how many the pipeline has not read."""

    total: int
    unread: int | None
    oldest_unread_s: float | None


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """How it stood at one time."""

    time: str
    events_per_s: float | None
    matches_per_s: float | None
    lag_s: float | None
    deliveries_per_s: float | None


@dataclass(frozen=True, slots=True)
class BroadSubscription:
    """A subscription that accepts many of the recent events."""

    id: str
    share: float
    matches: int


@dataclass(frozen=True, slots=True)
class CostlySubscription:
    """A subscription whose filter is costly to decide."""

    id: str
    cost_us: float
    matches: int


@dataclass(frozen=True, slots=True)
class OperationsState:
    """How the whole of a service stands; None is what it does not know."""

    time: str
    events: Rate
    matches: Rate
    lag_s: float | None
    index: IndexState
    notifications: Rate
    deliveries: DeliveryFigures
    event_files: EventFileCounts | None
    history: list[HistoryPoint]
    broadest: list[BroadSubscription]
    costliest: list[CostlySubscription]


@dataclass(frozen=True, slots=True)
class ListedDelivery:
    """A delivery, without anything that is secret."""

    notification_id: str
    subscription_id: str
    transport: str
    destination: str
    attempts: int
    last_error: str | None
    last_time: str


def operations_of(held: Mapping[str, Any]) -> OperationsState:
    """How a service stands, from its JSON."""
    files = held["event_files"]
    told = held["deliveries"]
    destinations = [result_of(DestinationState, one) for one in told["destinations"]]
    return OperationsState(
        time=held["time"],
        events=result_of(Rate, held["events"]),
        matches=result_of(Rate, held["matches"]),
        lag_s=held["lag_s"],
        index=result_of(IndexState, held["index"]),
        notifications=result_of(Rate, held["notifications"]),
        deliveries=result_of(DeliveryFigures, {**told, "destinations": destinations}),
        event_files=None if files is None else result_of(EventFileCounts, files),
        history=[result_of(HistoryPoint, one) for one in held["history"]],
        broadest=[result_of(BroadSubscription, one) for one in held["broadest"]],
        costliest=[result_of(CostlySubscription, one) for one in held["costliest"]],
    )


def result_of(kind: type[T], held: Mapping[str, Any]) -> T:
    """A result from its JSON; what a newer service says beyond it is passed over."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in held.items() if name in names})
