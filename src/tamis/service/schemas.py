"""Schemas: what bodies of requests and answers look like, with examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from tamis.service.limits import Limits
from tamis.storage.drafts import LONGEST_NAME
from tamis.storage.inbox import Delivery, Notification
from tamis.storage.keys import Key

_FILTER = "brand = 'Huawei' AND price < 3300"
_SAVED: dict[str, Any] = {
    "id": "s1", "owner": "zoe", "filter": _FILTER, "spelling": "sql", "priority": 0,
    "delivery": {"schedule": "every hour"}, "location": None, "radius_m": None, "area": None,
    "is_paused": False, "version": 1, "etag": "1-2026-01-01T09:00:00.000000Z",
    "created_at": "2026-01-01T09:00:00.000000Z",
    "updated_at": "2026-01-01T09:00:00.000000Z",
}  # fmt: skip
_TOLD: dict[str, Any] = {
    "number": 17, "id": "c881a45280b0e4a400c360f994f01aa8", "subscription_id": "s1",
    "owner": "zoe", "priority": 0, "due": "2026-01-01T10:00:00.000000Z", "part": 1, "parts": 1,
    "total": 1, "n_matches": 1, "held_back": 0, "matches": [{"event_id": "e1", "priority": 0}],
}  # fmt: skip
_KEY: dict[str, Any] = {
    "prefix": "0123456789", "owner": "zoe", "scopes": ["subscriber"], "name": "phone",
    "limits": {}, "created_at": "2026-01-01T09:00:00.000000Z", "last_used_at": None,
    "revoked_at": None,
}  # fmt: skip
_EVENT: dict[str, Any] = {"id": "e1", "brand": "Huawei", "price": 3200}

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
FilterText = Annotated[
    str | dict[str, JsonValue] | bool,
    Field(description="SQL text, JSON, or HTTP query notation (then say so in `spelling`)."),
]
Spelling = Literal["sql", "json", "query"]
Priority = Annotated[int, Field(ge=0, le=9, description="0 is the highest, 9 the lowest.")]
Place = Annotated[list[float], Field(min_length=2, max_length=2, description="[lon, lat]")]
Area = Literal["circle", "square"]
Radius = Annotated[float, Field(ge=0, allow_inf_nan=False)]
DeliverySettings = Annotated[
    dict[str, JsonValue],
    Field(description="`schedule`, `max_digest`, `rate_cap`, and where to send to."),
]


def _examples(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": list(examples)})


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:tamis:error:filter-syntax-error", "title": "Filter syntax error",
                    "status": 422, "detail": "expected a value", "line": 1, "column": 9,
                    "offset": 8, "caret": "price < \n        ^",
                }
            ]
        }
    )  # fmt: skip
    type: str = Field(description="A stable name for this class of errors.")
    title: str
    status: int
    detail: str
    line: int | None = Field(None, description="Of the filter, from 1.")
    column: int | None = Field(None, description="Of the filter, from 1.")
    offset: int | None = Field(None, description="Of the filter, from 0.")
    caret: str | None = Field(None, description="The line with a caret under the place.")
    path: str | None = Field(None, description="The place in a filter that is a JSON object.")
    hint: str | None = None
    problems: list[dict[str, str]] | None = None


class SubscriptionDraft(BaseModel):
    """A subscription to save."""

    model_config = _examples(
        {"id": "s1", "filter": _FILTER, "priority": 0, "delivery": {"schedule": "every hour"}},
        {"filter": {"attribute": "price", "op": "<", "value": 3300}},
        {"filter": "mark=FORD&year_from=2014", "spelling": "query"},
        {"filter": "price < 500", "location": [13.4, 52.5], "radius_m": 2000},
    )
    id: Name | None = Field(None, description="Made by the service if left out.")
    filter: FilterText
    spelling: Spelling | None = None
    owner: Name | None = Field(None, description="Of the key; an admin may choose another.")
    priority: Priority | None = None
    delivery: DeliverySettings | None = None
    location: Place | None = None
    radius_m: Radius | None = None
    area: Area | None = None
    is_paused: bool = False


class SubscriptionReplacement(SubscriptionDraft):
    """A subscription to save under the id in the address."""

    model_config = _examples({"filter": _FILTER, "priority": 0})


class SubscriptionChanges(BaseModel):
    """What changes about a subscription; null takes a field away."""

    model_config = _examples({"is_paused": True}, {"filter": "price < 3000", "priority": 1})
    filter: FilterText | None = None
    spelling: Spelling | None = None
    priority: Priority | None = None
    delivery: DeliverySettings | None = None
    location: Place | None = None
    radius_m: Radius | None = None
    area: Area | None = None
    is_paused: bool | None = None


class SubscriptionOut(BaseModel):
    """A subscription as it is saved."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SAVED]})
    id: str
    owner: str
    filter: Any = Field(description="As it was given.")
    spelling: Spelling
    priority: int
    delivery: dict[str, Any]
    location: list[float] | None
    radius_m: float | None
    area: Area | None
    is_paused: bool
    version: int = Field(description="Counts its changes, from 1.")
    etag: str = Field(description="What `If-Match` asks for, in quotes; also a header.")
    created_at: str
    updated_at: str


class SubscriptionPage(BaseModel):
    """Some subscriptions, in the order of their ids."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_SAVED], "next": None}]})
    items: list[SubscriptionOut]
    next: str | None = Field(description="The cursor of the next page; null on the last.")


class Published(BaseModel):
    """Events that are durable in the event log."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"n_events": 1, "ids": ["e1"]}]})
    n_events: int
    ids: list[str] = Field(description="In the order of the events.")


class MatchRequest(BaseModel):
    """An event that is matched, and goes nowhere."""

    model_config = _examples({"event": _EVENT})
    event: dict[str, JsonValue] = Field(description="As for POST /v1/events.")
    limit: int = Field(1_000, ge=1, le=100_000, description="The most ids that are told.")


class Matched(BaseModel):
    """Who would be told."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"n_matches": 1, "ids": ["s1"]}]})
    n_matches: int
    ids: list[str] = Field(description="Highest priority first.")


class ExplainRequest(BaseModel):
    """A filter or the id of a subscription, and an event."""

    model_config = _examples(
        {"filter": _FILTER, "event": {"brand": "Huawei", "price": 3400}},
        {"id": "s1", "event": _EVENT},
    )
    id: Name | None = Field(None, description="Of a subscription.")
    filter: FilterText | None = None
    spelling: Spelling | None = None
    event: dict[str, JsonValue]


class Explained(BaseModel):
    """Whether a filter held, and why."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "held": False, "text": "✗ price = 3400 is not < 3300",
                    "tree": {
                        "filter": "price < 3300", "held": False,
                        "reason": "price = 3400 is not < 3300",
                    },
                }
            ]
        }
    )  # fmt: skip
    held: bool
    text: str = Field(description="A line a clause.")
    tree: dict[str, Any] = Field(description="`filter`, `held`, `reason` and perhaps `parts`.")


class PreviewRequest(BaseModel):
    """A filter to try on the recent events."""

    model_config = _examples({"filter": _FILTER})
    filter: FilterText
    spelling: Spelling | None = None
    location: Place | None = None
    radius_m: Radius | None = None
    area: Area | None = None
    n_events: int = Field(1_000, ge=1, le=10_000, description="How many of the last.")
    n_examples: int = Field(5, ge=0, le=100)


class Previewed(BaseModel):
    """What a filter does with the recent events."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "n_events": 1000, "n_matches": 3, "share": 0.003, "too_broad": False,
                    "warning": None, "sql": _FILTER, "n_conjunctions": 1,
                    "examples": [{"id": "e1", "attributes": {"brand": "Huawei", "price": 3200}}],
                }
            ]
        }
    )  # fmt: skip
    n_events: int
    n_matches: int
    share: float | None = Field(description="null where there are no events.")
    too_broad: bool
    warning: str | None
    sql: str = Field(description="The filter as SQL.")
    n_conjunctions: int = Field(description="Of its normal form, which a key's limit bounds.")
    examples: list[dict[str, Any]] = Field(description="Events it accepts, the newest first.")


class NotificationOut(BaseModel):
    """What a subscriber is told at one time."""

    model_config = ConfigDict(json_schema_extra={"examples": [_TOLD]})
    number: int = Field(description="In the order they became visible.")
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

    @classmethod
    def of(cls, told: Notification) -> NotificationOut:
        """A notification as its owner sees it."""
        return cls.model_construct(**{name: getattr(told, name) for name in cls.model_fields})


class NotificationPage(BaseModel):
    """Some notifications, the newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_TOLD], "next": 17}]})
    items: list[NotificationOut]
    next: int | None = Field(description="`before` for the next page; null on the last.")


class DeliveryOut(BaseModel):
    """How far a notification got on one transport."""

    transport: str
    destination: str
    state: str
    attempts: int
    next_at: str
    problem: str | None
    updated_at: str

    @classmethod
    def of(cls, held: Delivery) -> DeliveryOut:
        """A delivery as its owner sees it."""
        return cls.model_construct(**{name: getattr(held, name) for name in cls.model_fields})


class NotificationRead(NotificationOut):
    """A notification, and how far it got."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_TOLD, "deliveries": []}]})
    deliveries: list[DeliveryOut]


class Replayed(BaseModel):
    """How many deliveries begin anew."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"n_deliveries": 1}]})
    n_deliveries: int


class WebhookSecret(BaseModel):
    """What signs the webhooks of an owner, as the Standard Webhooks specification spells it."""

    model_config = _examples({"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"})
    secret: str


class KeyDraft(BaseModel):
    """A key to make."""

    model_config = _examples({"owner": "zoe", "scopes": ["subscriber"], "name": "phone"})
    owner: Name
    scopes: list[Literal["subscriber", "publisher", "admin"]] = Field(min_length=1)
    name: str = Field("", max_length=200)
    limits: dict[str, int | float] = Field(
        {}, description=f"Of its own, from 1; of {', '.join(Limits.__slots__)}."
    )


class KeyOut(BaseModel):
    """A key without its secret."""

    model_config = ConfigDict(json_schema_extra={"examples": [_KEY]})
    prefix: str
    owner: str
    scopes: list[str]
    name: str
    limits: dict[str, Any]
    created_at: str
    last_used_at: str | None
    revoked_at: str | None

    @classmethod
    def of(cls, key: Key) -> KeyOut:
        """A key as an admin sees it."""
        return cls.model_construct(
            prefix=key.prefix, owner=key.owner, scopes=sorted(key.scopes), name=key.name,
            limits=dict(key.limits), created_at=key.created_at, last_used_at=key.last_used_at,
            revoked_at=key.revoked_at,
        )  # fmt: skip


class KeyMade(KeyOut):
    """A new key: the only time its text is told."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{**_KEY, "key": "tamis_0123456789_" + "0" * 64}]}
    )
    key: str


class KeyList(BaseModel):
    """All keys, the oldest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_KEY]}]})
    items: list[KeyOut]


class Health(BaseModel):
    """How the service is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})
    status: str


class Readiness(BaseModel):
    """Whether the service can do its work."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"ready": True, "database": True, "subscriptions_loaded": True,
                 "n_subscriptions": 2, "sequence": 17, "unread_event_files": 3,
                 "oldest_unread_s": 0.8}
            ]
        }
    )  # fmt: skip
    ready: bool
    database: bool
    subscriptions_loaded: bool
    n_subscriptions: int
    sequence: int = Field(description="The last change that is in the index; -1 before it is.")
    unread_event_files: int | None = Field(description="By the pipeline; null if not known.")
    oldest_unread_s: float | None = Field(description="How long the oldest of them waits.")
