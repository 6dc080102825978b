"""The gate: who is let in, how often and with how much, before a body is read."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import Counter, Histogram
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamis.errors import StorageUnavailable, TamisError
from tamis.service.key_ring import Caller
from tamis.service.logs import log
from tamis.service.parts import Parts
from tamis.service.problems import BodyTooLarge, NoKey, problem_response
from tamis.service.sending.tokens import PATH as UNSUBSCRIBE_PATH
from tamis.service.short_way import ShortWay

__all__ = ["Gate"]

_GUARDED = "/v1/"
_ENDLESS = "/v1/subscriptions/import"  # its lines are limited, not its body


class Gate:
    """Finds the caller of every request to the API, and counts and logs all requests."""

    def __init__(self, app: ASGIApp, parts: Parts, short_way: ShortWay) -> None:
        self._app, self._parts, self._short_way = app, parts, short_way
        self._figures: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        since, status = time.perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._count(scope, status, time.perf_counter() - since)
            await send(message)

        try:
            await self._let_in(scope, receive, note)
        finally:
            _log_request(scope, status, time.perf_counter() - since)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith(_GUARDED) or scope["path"] == UNSUBSCRIBE_PATH:
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._caller(scope)
            self._parts.buckets.take(caller.key.prefix, caller.limits)
            scope.setdefault("state", {})["caller"] = caller
            if scope["path"] != _ENDLESS:
                _check_length(scope, caller)
                receive = _limited(receive, caller.limits.body_bytes)
        except TamisError as error:
            await problem_response(error)(scope, receive, send)
            return
        left = await self._short_way.answer(scope, receive, send)
        if left is not None:
            await self._app(scope, left, send)

    async def _caller(self, scope: Scope) -> Caller:
        text = _bearer(scope)
        try:
            found = self._parts.key_ring.recall(text)
            if found is None:
                found = await run_in_threadpool(self._parts.key_ring.find, text)
            return found
        except StorageUnavailable:
            raise
        except TamisError as error:
            raise NoKey(str(error)) from None

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        metrics, key = self._parts.metrics, (scope["method"], _route(scope), status)
        if key not in self._figures:  # to find them by their labels takes longer than to count
            method, route, _ = key
            self._figures[key] = (
                metrics.requests.labels(method, route, str(status)),
                metrics.seconds.labels(method, route),
            )
        requests, times = self._figures[key]
        requests.inc()
        times.observe(seconds)


def _bearer(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            word, _, text = value.decode("latin-1").partition(" ")
            if word.lower() == "bearer":
                return str(text.strip())
    raise NoKey("a key is needed; send the header Authorization: Bearer tamis_…")


def _check_length(scope: Scope, caller: Caller) -> None:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and len(value) < 20:
            _check_size(int(value), caller.limits.body_bytes)


def _check_size(n_bytes: int, most: int) -> None:
    if n_bytes > most:
        raise BodyTooLarge(
            f"the body has more than the {most:,} bytes this key may send; send less at once"
        )


def _limited(receive: Receive, most: int) -> Receive:
    n_bytes = 0

    async def receive_some() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        _check_size(n_bytes, most)
        return message

    return receive_some


def _route(scope: Scope) -> str:
    """The path with names for its variable parts: others would be a figure each."""
    route: Any = scope.get("route")
    return str(getattr(route, "path", "unknown"))


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    # Never the query, which may hold what its sender took for a secret.
    caller = scope.get("state", {}).get("caller")
    log.info(
        "request",
        method=scope["method"],
        path=scope["path"],
        status=status,
        ms=round(seconds * 1_000, 1),
        key=caller.key.prefix if caller else None,
    )
