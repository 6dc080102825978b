"""The client for asyncio."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
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

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient:
    """As :class:`~tamis.client.Client`, for asyncio.

    async with AsyncClient("http://127.0.0.1:8080", key) as client:
        await client.create(col("price") < 3300, id="s1")
    """

    def __init__(self, url: str, key: str, *, timeout_s: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout_s)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections."""
        await self._http.aclose()

    # -- subscriptions

    async def create(
        self, filter: Any, *, idempotency_key: str | None = None, **fields: Any
    ) -> SavedSubscription:
        """Save a new subscription: ``id``, ``priority``, ``delivery``, ``location`` and so on."""
        return await self._do(calls.create(filter, idempotency_key, **fields))

    async def get(self, id: str) -> SavedSubscription:
        """The subscription with an id."""
        return await self._do(calls.get(id))

    async def subscriptions(
        self, *, search: str = "", owner: str | None = None, page_size: int = 100
    ) -> AsyncIterator[SavedSubscription]:
        """All subscriptions, page by page, in the order of their ids."""
        cursor: str | None = ""
        while cursor is not None:
            items, cursor = await self._do(calls.page(cursor, page_size, search, owner))
            for one in items:
                yield one

    async def put(
        self,
        id: str,
        filter: Any,
        *,
        if_etag: str | None = None,
        if_absent: bool = False,
        **fields: Any,
    ) -> SavedSubscription:
        """Create or replace a subscription."""
        return await self._do(calls.put(id, filter, if_etag, if_absent, **fields))

    async def change(
        self, id: str, *, if_etag: str | None = None, **changes: Any
    ) -> SavedSubscription:
        """Change some fields of a subscription; None takes one away."""
        return await self._do(calls.change(id, if_etag, **changes))

    async def delete(self, id: str, *, if_etag: str | None = None) -> None:
        """Delete a subscription."""
        await self._do(calls.delete(id, if_etag))

    async def import_many(
        self, subscriptions: Iterable[Any] | AsyncIterable[Any], *, only_errors: bool = False
    ) -> AsyncIterator[ImportResult]:
        """Save many: Subscriptions, dicts or lines of JSON; what became of each is told."""
        lines = _lines(subscriptions)
        params = {"results": "errors" if only_errors else "all"}
        async with self._streaming(
            "POST", "/v1/subscriptions/import", content=lines, params=params,
            headers={"Content-Type": LINES}, timeout=None,
        ) as response:  # fmt: skip
            async for line in response.aiter_lines():
                told = calls.import_result(line)
                if isinstance(told, ImportResult):
                    yield told
                elif "problem" in told:
                    raise ServiceError(f"the import ended early: {told['problem']['detail']}")

    async def export(self) -> AsyncIterator[dict[str, Any]]:
        """All subscriptions, as an import takes them."""
        async with self._streaming("GET", "/v1/subscriptions/export") as response:
            async for line in response.aiter_lines():
                yield json.loads(line)

    # -- events and matching

    async def publish(self, events: Any, *, idempotency_key: str | None = None) -> Published:
        """Publish an event, or an iterable of them; when it returns they are durable."""
        return await self._do(calls.publish(events, idempotency_key))

    async def match(self, event: Any, *, limit: int = 1_000) -> Matched:
        """Who would be told of an event."""
        return await self._do(calls.match(event, limit))

    async def explain(
        self, event: Any, filter: Any = None, *, id: str | None = None, spelling: str | None = None
    ) -> Explained:
        """Why a filter, or that of a subscription, accepts an event or does not."""
        return await self._do(calls.explain(event, filter, id, spelling))

    async def preview(self, filter: Any, **fields: Any) -> Previewed:
        """How many of the recent events a filter accepts."""
        return await self._do(calls.preview(filter, **fields))

    # -- notifications

    async def notifications(
        self,
        *,
        before: int | None = None,
        limit: int = 100,
        subscription_id: str | None = None,
    ) -> list[Notification]:
        """Some notifications, the newest first; those before a number."""
        return await self._do(calls.notifications(before, limit, subscription_id))

    async def notification(self, id: str) -> Notification:
        """A notification, and how far it got."""
        return await self._do(calls.notification(id))

    async def replay(self, id: str) -> int:
        """Send a notification again; returns how many deliveries begin anew."""
        return await self._do(calls.replay(id))

    async def webhook_secret(self, owner: str | None = None) -> str:
        """The secret that signs the webhooks of the caller, or of an owner, for an admin."""
        return await self._do(calls.webhook_secret(owner, is_renewed=False))

    async def renew_webhook_secret(self, owner: str | None = None) -> str:
        """Make another secret, which counts from now on."""
        return await self._do(calls.webhook_secret(owner, is_renewed=True))

    async def follow(self, after: int | None = None) -> AsyncIterator[Notification]:
        """The notifications after a number, or from now on, as they become visible."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        reader = SseReader()
        async with self._streaming(
            "GET", "/v1/notifications/stream", headers=headers, timeout=None
        ) as response:
            async for line in response.aiter_lines():
                for one in reader.read(line):
                    yield one

    # -- for operators

    async def operations(self) -> OperationsState:
        """How the whole of it stands: rates, lag, deliveries, a history."""
        return await self._do(calls.operations())

    async def deliveries(
        self, state: str = "dead", *, page_size: int = 100
    ) -> AsyncIterator[ListedDelivery]:
        """All deliveries in a state, page by page, the last changed first."""
        cursor: str | None = ""
        while cursor is not None:
            items, cursor = await self._do(calls.deliveries(state, cursor, page_size))
            for one in items:
                yield one

    async def replay_deliveries(self, ids: Iterable[str] | None = None) -> int:
        """Try the dead deliveries of notifications again, or all; returns how many."""
        return await self._do(calls.replay_deliveries(ids))

    # -- keys

    async def create_key(
        self,
        owner: str,
        scopes: Iterable[str],
        *,
        name: str = "",
        limits: Mapping[str, float] | None = None,
    ) -> NewKey:
        """Make a key."""
        return await self._do(calls.create_key(owner, scopes, name, limits))

    async def keys(self) -> list[KeyInfo]:
        """All keys."""
        return await self._do(calls.keys())

    async def revoke_key(self, prefix: str) -> KeyInfo:
        """Revoke a key."""
        return await self._do(calls.revoke_key(prefix))

    # -- inside

    async def _do(self, call: Call[T]) -> T:
        try:
            response = await self._http.request(
                call.method, call.path, json=call.json, content=call.content, params=call.params,
                headers=call.headers,
            )  # fmt: skip
        except httpx.TransportError as error:
            raise ServiceError(f"{self._http.base_url} does not answer: {error}") from error
        if not response.is_success:
            raise error_of(response)
        return call.read(response)

    @asynccontextmanager
    async def _streaming(
        self, method: str, path: str, **options: Any
    ) -> AsyncIterator[httpx.Response]:
        try:
            async with self._http.stream(method, path, **options) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response)
                yield response
        except httpx.TransportError as error:
            raise ServiceError(f"{self._http.base_url} does not answer: {error}") from error


async def _lines(given: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[bytes]:
    if isinstance(given, AsyncIterable):
        async for one in given:
            yield calls.import_line(one)
    else:
        for one in given:
            yield calls.import_line(one)
