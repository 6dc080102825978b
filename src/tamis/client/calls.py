"""Calls: every request a client can make, and how its answer is read; who sends it is another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

from tamis.client.results import (
    Explained,
    ImportResult,
    KeyInfo,
    ListedDelivery,
    Matched,
    NewKey,
    Notification,
    OperationsState,
    Previewed,
    Published,
    SavedSubscription,
    operations_of,
    result_of,
)
from tamis.errors import InvalidSubscription
from tamis.language import Filter, to_json
from tamis.model import Event, Subscription

T = TypeVar("T")

LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and what turns its answer into a result."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    json: Any = None
    content: bytes | None = None
    params: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def create(
    filter: Any, idempotency_key: str | None = None, **fields: Any
) -> Call[SavedSubscription]:
    """Save a new subscription."""
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    body = _draft(filter=filter, **fields)
    return Call("POST", "/v1/subscriptions", _one(SavedSubscription), body, headers=headers)


def get(id: str) -> Call[SavedSubscription]:
    """Read a subscription."""
    return Call("GET", _address("subscriptions", id), _one(SavedSubscription))


def page(
    cursor: str, limit: int, search: str, owner: str | None
) -> Call[tuple[list[SavedSubscription], str | None]]:
    """One page of subscriptions, and the cursor of the next."""

    def read(response: httpx.Response) -> tuple[list[SavedSubscription], str | None]:
        held = response.json()
        return [result_of(SavedSubscription, one) for one in held["items"]], held["next"]

    params = {"cursor": cursor, "limit": limit, "search": search}
    params |= {} if owner is None else {"owner": owner}
    return Call("GET", "/v1/subscriptions", read, params=params)


def put(
    id: str, filter: Any, if_etag: str | None, if_absent: bool, **fields: Any
) -> Call[SavedSubscription]:
    """Create or replace a subscription."""
    headers = _if_etag(if_etag) | ({"If-None-Match": "*"} if if_absent else {})
    body = _draft(filter=filter, **fields)
    path = _address("subscriptions", id)
    return Call("PUT", path, _one(SavedSubscription), body, headers=headers)


def change(id: str, if_etag: str | None, **changes: Any) -> Call[SavedSubscription]:
    """Change some fields of a subscription."""
    body = {name: _plain(value) for name, value in changes.items()}
    headers = _if_etag(if_etag)
    path = _address("subscriptions", id)
    return Call("PATCH", path, _one(SavedSubscription), body, headers=headers)


def delete(id: str, if_etag: str | None) -> Call[None]:
    """Delete a subscription."""
    headers = _if_etag(if_etag)
    return Call("DELETE", _address("subscriptions", id), _nothing, headers=headers)


def publish(events: Any, idempotency_key: str | None) -> Call[Published]:
    """Publish one event or many."""
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    if isinstance(events, Event | Mapping):
        return Call("POST", "/v1/events", _one(Published), _event(events), headers=headers)
    lines = b"".join(json.dumps(_event(one)).encode() + b"\n" for one in events)
    headers["Content-Type"] = LINES
    return Call("POST", "/v1/events", _one(Published), content=lines, headers=headers)


def match(event: Any, limit: int) -> Call[Matched]:
    """Ask who would be told."""
    body = {"event": _event(event), "limit": limit}
    return Call("POST", "/v1/match", _one(Matched), body)


def explain(event: Any, filter: Any, id: str | None, spelling: str | None) -> Call[Explained]:
    """Ask why."""
    body = _draft(filter=filter, id=id, spelling=spelling) | {"event": _event(event)}
    return Call("POST", "/v1/explain", _one(Explained), body)


def preview(filter: Any, **fields: Any) -> Call[Previewed]:
    """Try a filter on the recent events."""
    return Call("POST", "/v1/preview", _one(Previewed), _draft(filter=filter, **fields))


def notifications(
    before: int | None, limit: int, subscription_id: str | None
) -> Call[list[Notification]]:
    """One page of notifications, the newest first."""
    params = {"before": before, "limit": limit, "subscription_id": subscription_id}
    given = {name: value for name, value in params.items() if value is not None}

    def read(response: httpx.Response) -> list[Notification]:
        return [result_of(Notification, one) for one in response.json()["items"]]

    return Call("GET", "/v1/notifications", read, params=given)


def notification(id: str) -> Call[Notification]:
    """Read a notification."""
    return Call("GET", _address("notifications", id), _one(Notification))


def replay(id: str) -> Call[int]:
    """Send a notification again."""
    path = _address("notifications", id) + "/replay"
    return Call("POST", path, lambda response: int(response.json()["n_deliveries"]))


def webhook_secret(owner: str | None, is_renewed: bool) -> Call[str]:
    """Read the secret that signs webhooks, or make another."""
    method, path = ("POST", "/renew") if is_renewed else ("GET", "")
    params = {} if owner is None else {"owner": owner}
    return Call(
        method, f"/v1/webhook-secret{path}", lambda response: str(response.json()["secret"]),
        params=params,
    )  # fmt: skip


def operations() -> Call[OperationsState]:
    """Ask how the whole of it stands."""
    return Call("GET", "/v1/operations", lambda response: operations_of(response.json()))


def deliveries(
    state: str, cursor: str, limit: int
) -> Call[tuple[list[ListedDelivery], str | None]]:
    """One page of deliveries, and the cursor of the next."""

    def read(response: httpx.Response) -> tuple[list[ListedDelivery], str | None]:
        held = response.json()
        return [result_of(ListedDelivery, one) for one in held["items"]], held["next"]

    params = {"state": state, "cursor": cursor, "limit": limit}
    return Call("GET", "/v1/deliveries", read, params=params)


def replay_deliveries(ids: Iterable[str] | None) -> Call[int]:
    """Try dead deliveries again."""
    body = {"all": True} if ids is None else {"ids": list(ids)}
    return Call(
        "POST", "/v1/deliveries/replay", lambda response: int(response.json()["replayed"]), body
    )


def create_key(
    owner: str, scopes: Iterable[str], name: str, limits: Mapping[str, float] | None
) -> Call[NewKey]:
    """Make a key."""
    body = {"owner": owner, "scopes": list(scopes), "name": name, "limits": dict(limits or {})}
    return Call("POST", "/v1/keys", _one(NewKey), body)


def keys() -> Call[list[KeyInfo]]:
    """List all keys."""

    def read(response: httpx.Response) -> list[KeyInfo]:
        return [result_of(KeyInfo, one) for one in response.json()["items"]]

    return Call("GET", "/v1/keys", read)


def revoke_key(prefix: str) -> Call[KeyInfo]:
    """Revoke a key."""
    return Call("DELETE", _address("keys", prefix), _one(KeyInfo))


def import_line(given: Subscription | Mapping[str, Any] | str | bytes) -> bytes:
    """The line of a subscription in an import."""
    if isinstance(given, str | bytes):
        line = given.encode() if isinstance(given, str) else given
        if b"\n" in line.rstrip(b"\n"):
            raise InvalidSubscription("a line of an import has line ends in it")
        return line.rstrip(b"\n") + b"\n"
    held = given.to_json() if isinstance(given, Subscription) else dict(given)
    if "filter" in held:
        held["filter"] = _plain(held["filter"])
    return json.dumps(held, ensure_ascii=False).encode() + b"\n"


def import_result(line: str) -> ImportResult | dict[str, Any]:
    """What a line of the answer to an import says: of a line, or of all."""
    held: dict[str, Any] = json.loads(line)
    return result_of(ImportResult, held) if "line" in held else held


class SseReader:
    """Reads server-sent events from lines."""

    def __init__(self) -> None:
        self._data: list[str] = []

    def read(self, line: str) -> Iterator[Notification]:
        """The notification that a line ends, if it ends one."""
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        elif not line and self._data:
            yield result_of(Notification, json.loads("\n".join(self._data)))
            self._data = []


def _one(kind: type[T]) -> Callable[[httpx.Response], T]:
    return lambda response: result_of(kind, response.json())


def _nothing(response: httpx.Response) -> None:
    return None


def _address(what: str, id: str) -> str:
    return f"/v1/{what}/{quote(id, safe='')}"


def _if_etag(etag: str | None) -> dict[str, str]:
    return {} if etag is None else {"If-Match": etag if etag == "*" else f'"{etag}"'}


def _draft(**fields: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    """A value as JSON has it; a filter that was written in Python in its JSON spelling."""
    if isinstance(value, Filter):
        return to_json(value)
    return list(value) if isinstance(value, tuple) else value


def _event(event: Event | Mapping[str, Any]) -> dict[str, Any]:
    return event.to_json() if isinstance(event, Event) else dict(event)
