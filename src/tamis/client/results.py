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


def result_of(kind: type[T], held: Mapping[str, Any]) -> T:
    """A result from its JSON; what a newer service says beyond it is passed over."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in held.items() if name in names})
