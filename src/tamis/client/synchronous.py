"""The client for threads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from tamis.client import calls
from tamis.client.calls import LINES, Call, SseReader
from tamis.client.failures import ServiceError, error_of
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
)

__all__ = ["Client"]

T = TypeVar("T")


class Client:
    """A client of the service at an address, with an API key; may be used by many threads.

    Errors are those of the library: ``FilterSyntaxError`` with line and column,
    ``UnknownSubscription``, ``VersionConflict``, … A filter may be any of the four spellings:

        with Client("http://127.0.0.1:8080", key) as client:
            client.create(col("price") < 3300, id="s1")
    """

    def __init__(self, url: str, key: str, *, timeout_s: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout_s)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._http.close()

    # -- subscriptions

    def create(
        self, filter: Any, *, idempotency_key: str | None = None, **fields: Any
    ) -> SavedSubscription:
        """Save a new subscription: ``id``, ``priority``, ``delivery``, ``location`` and so on."""
        return self._do(calls.create(filter, idempotency_key, **fields))

    def get(self, id: str) -> SavedSubscription:
        """The subscription with an id."""
        return self._do(calls.get(id))

    def subscriptions(
        self, *, search: str = "", owner: str | None = None, page_size: int = 100
    ) -> Iterator[SavedSubscription]:
        """All subscriptions, page by page, in the order of their ids."""
        cursor: str | None = ""
        while cursor is not None:
            items, cursor = self._do(calls.page(cursor, page_size, search, owner))
            yield from items

    def put(
        self,
        id: str,
        filter: Any,
        *,
        if_etag: str | None = None,
        if_absent: bool = False,
        **fields: Any,
    ) -> SavedSubscription:
        """Create or replace a subscription."""
        return self._do(calls.put(id, filter, if_etag, if_absent, **fields))

    def change(self, id: str, *, if_etag: str | None = None, **changes: Any) -> SavedSubscription:
        """Change some fields of a subscription; None takes one away."""
        return self._do(calls.change(id, if_etag, **changes))

    def delete(self, id: str, *, if_etag: str | None = None) -> None:
        """Delete a subscription."""
        self._do(calls.delete(id, if_etag))

    def import_many(
        self, subscriptions: Iterable[Any], *, only_errors: bool = False
    ) -> Iterator[ImportResult]:
        """Save many: Subscriptions, dicts or lines of JSON; what became of each is told."""
        lines = map(calls.import_line, subscriptions)
        params = {"results": "errors" if only_errors else "all"}
        with self._streaming(
            "POST", "/v1/subscriptions/import", content=lines, params=params,
            headers={"Content-Type": LINES}, timeout=None,
        ) as response:  # fmt: skip
            for line in response.iter_lines():
                told = calls.import_result(line)
                if isinstance(told, ImportResult):
                    yield told
                elif "problem" in told:
                    raise ServiceError(f"the import ended early: {told['problem']['detail']}")

    def export(self) -> Iterator[dict[str, Any]]:
        """All subscriptions, as an import takes them."""
        with self._streaming("GET", "/v1/subscriptions/export") as response:
            for line in response.iter_lines():
                yield json.loads(line)

    # -- events and matching

    def publish(self, events: Any, *, idempotency_key: str | None = None) -> Published:
        """Publish an event, or an iterable of them; when it returns they are durable."""
        return self._do(calls.publish(events, idempotency_key))

    def match(self, event: Any, *, limit: int = 1_000) -> Matched:
        """Who would be told of an event."""
        return self._do(calls.match(event, limit))

    def explain(
        self, event: Any, filter: Any = None, *, id: str | None = None, spelling: str | None = None
    ) -> Explained:
        """Why a filter, or that of a subscription, accepts an event or does not."""
        return self._do(calls.explain(event, filter, id, spelling))

    def preview(self, filter: Any, **fields: Any) -> Previewed:
        """How many of the recent events a filter accepts."""
        return self._do(calls.preview(filter, **fields))

    # -- notifications

    def notifications(
        self,
        *,
        before: int | None = None,
        limit: int = 100,
        subscription_id: str | None = None,
    ) -> list[Notification]:
        """Some notifications, the newest first; those before a number."""
        return self._do(calls.notifications(before, limit, subscription_id))

    def notification(self, id: str) -> Notification:
        """A notification, and how far it got."""
        return self._do(calls.notification(id))

    def replay(self, id: str) -> int:
        """Send a notification again; returns how many deliveries begin anew."""
        return self._do(calls.replay(id))

    def webhook_secret(self, owner: str | None = None) -> str:
        """The secret that signs the webhooks of the caller, or of an owner, for an admin."""
        return self._do(calls.webhook_secret(owner, is_renewed=False))

    def renew_webhook_secret(self, owner: str | None = None) -> str:
        """Make another secret, which counts from now on."""
        return self._do(calls.webhook_secret(owner, is_renewed=True))

    def follow(self, after: int | None = None) -> Iterator[Notification]:
        """The notifications after a number, or from now on, as they become visible."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        reader = SseReader()
        with self._streaming(
            "GET", "/v1/notifications/stream", headers=headers, timeout=None
        ) as response:
            for line in response.iter_lines():
                yield from reader.read(line)

    # -- for operators

    def operations(self) -> OperationsState:
        """How the whole of it stands: rates, lag, deliveries, a history."""
        return self._do(calls.operations())

    def deliveries(self, state: str = "dead", *, page_size: int = 100) -> Iterator[ListedDelivery]:
        """All deliveries in a state, page by page, the last changed first."""
        cursor: str | None = ""
        while cursor is not None:
            items, cursor = self._do(calls.deliveries(state, cursor, page_size))
            yield from items

    def replay_deliveries(self, ids: Iterable[str] | None = None) -> int:
        """Try the dead deliveries of notifications again, or all; returns how many."""
        return self._do(calls.replay_deliveries(ids))

    # -- keys

    def create_key(
        self,
        owner: str,
        scopes: Iterable[str],
        *,
        name: str = "",
        limits: Mapping[str, float] | None = None,
    ) -> NewKey:
        """Make a key."""
        return self._do(calls.create_key(owner, scopes, name, limits))

    def keys(self) -> list[KeyInfo]:
        """All keys."""
        return self._do(calls.keys())

    def revoke_key(self, prefix: str) -> KeyInfo:
        """Revoke a key."""
        return self._do(calls.revoke_key(prefix))

    # -- inside

    def _do(self, call: Call[T]) -> T:
        try:
            response = self._http.request(
                call.method, call.path, json=call.json, content=call.content, params=call.params,
                headers=call.headers,
            )  # fmt: skip
        except httpx.TransportError as error:
            raise ServiceError(f"{self._http.base_url} does not answer: {error}") from error
        if not response.is_success:
            raise error_of(response)
        return call.read(response)

    @contextmanager
    def _streaming(self, method: str, path: str, **options: Any) -> Iterator[httpx.Response]:
        try:
            with self._http.stream(method, path, **options) as response:
                if not response.is_success:
                    response.read()
                    raise error_of(response)
                yield response
        except httpx.TransportError as error:
            raise ServiceError(f"{self._http.base_url} does not answer: {error}") from error
