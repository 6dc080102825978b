"""The short way: plain requests for subscriptions, handed to their endpoints at once.

FastAPI's layers between a request and its endpoint take longer than the endpoint. What they would
find out about a plain request is found out here; whatever is not plain, or not right, takes the
long way through them, and is answered there.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import Message, Receive, Scope, Send

from tamis.service.key_ring import Caller
from tamis.service.parts import Parts
from tamis.service.problems import answer_of
from tamis.service.requests import etag_in, read_strictly
from tamis.service.routes import subscriptions as routes
from tamis.service.schemas import SubscriptionChanges, SubscriptionDraft, SubscriptionReplacement

__all__ = ["ShortWay"]

_ALL = "/v1/subscriptions"
_ONE = _ALL + "/"
_EXPORT = _ONE + "export"
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_HEADERS = frozenset({b"content-type", b"if-match", b"if-none-match", b"idempotency-key"})
_LONGEST = {
    "cursor": routes.LONGEST_CURSOR, "search": routes.LONGEST_SEARCH, "owner": math.inf,
}  # fmt: skip
_THREADS = 8


class _NotPlain(Exception):
    """A request that takes the long way."""


class ShortWay:
    """Answers plain requests for subscriptions."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._threads = ThreadPoolExecutor(_THREADS, "request")
        self._routes = {
            route.endpoint: route for route in routes.router.routes if isinstance(route, APIRoute)
        }

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Answer a request of a caller who was let in, and return None.

        If it has to take the long way, return what gives all of it there, the body from its
        beginning.
        """
        way = _way(scope)
        if way is None:
            return receive
        endpoint, arguments_of = way
        try:
            body: bytes | None = b""
            if scope["method"] in _WITH_BODY:
                body, receive = await _read_body(receive)
            if body is None:
                return receive
            call = self._call(endpoint, arguments_of, scope, body)
            scope["route"] = self._routes[endpoint]  # for the figures
            response = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except _NotPlain:
            return receive
        except Exception as error:
            told = answer_of(error)
            if told is None:
                raise
            response = told
        await response(scope, receive, send)
        return None

    def _call(
        self, endpoint: _Endpoint, arguments_of: _ArgumentsOf, scope: Scope, body: bytes
    ) -> Callable[[], Response]:
        """The endpoint with all it asks for, in the order in which the long way looks at it."""
        caller: Caller = scope["state"]["caller"]
        asked = _Asked(scope, _headers(scope), body)
        held = asked.read()
        caller.require("subscriber")
        return partial(endpoint, caller=caller, parts=self._parts, **arguments_of(asked, held))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, as far as endpoints ask for it."""

    scope: Scope
    headers: dict[bytes, str]
    body: bytes

    @property
    def id(self) -> str:
        """The id in the address."""
        return str(self.scope["path"][len(_ONE) :])

    @property
    def etag(self) -> str | None:
        """The ETag it is meant for."""
        return etag_in(self.headers.get(b"if-match"))

    @property
    def token(self) -> str | None:
        """Its Idempotency-Key."""
        token = self.headers.get(b"idempotency-key")
        if token is not None and not 1 <= len(token) <= routes.LONGEST_TOKEN:
            raise _NotPlain
        return token

    def read(self) -> Any:
        """The JSON of its body; None where it has none."""
        if self.scope["method"] not in _WITH_BODY:
            return None
        if self.headers.get(b"content-type") != "application/json":
            raise _NotPlain
        return read_strictly(self.body)


_Endpoint = Callable[..., Response]
_ArgumentsOf = Callable[[_Asked, Any], dict[str, Any]]


def _way(scope: Scope) -> tuple[_Endpoint, _ArgumentsOf] | None:
    path = scope["path"]
    if scope.get("root_path") or not path.startswith(_ALL):
        return None
    if path == _ALL:
        return _WITHOUT_ID.get(scope["method"])
    if not path.startswith(_ONE) or path in (_ONE, _EXPORT) or not path.isprintable():
        return None
    return _WITH_ID.get(scope["method"])


def _headers(scope: Scope) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _HEADERS:
            if name in found:
                raise _NotPlain
            found[name] = value.decode("latin-1")
    return found


async def _read_body(receive: Receive) -> tuple[bytes | None, Receive]:
    """The whole body, None of a client that has gone; and what gives it once more."""
    messages: list[Message] = []
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request" or not message.get("more_body", False):
            break
    left = iter(messages)

    async def receive_again() -> Message:
        message = next(left, None)
        return await receive() if message is None else message

    if message["type"] != "http.request":
        return None, receive_again
    return b"".join(one.get("body", b"") for one in messages), receive_again


def _model(kind: type[BaseModel], held: Any) -> BaseModel:
    try:
        return kind.model_validate(held)
    except ValidationError:  # the long way tells what is wrong
        raise _NotPlain from None


def _create(asked: _Asked, held: Any) -> dict[str, Any]:
    draft = _model(SubscriptionDraft, held)
    return {"draft": draft, "body": asked.body, "idempotency_key": asked.token}


def _list(asked: _Asked, held: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    query = asked.scope["query_string"].decode("latin-1")
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in found:
            raise _NotPlain
        if name == "limit":
            is_number = value.isascii() and value.isdigit() and len(value) <= 4
            if not is_number or not 1 <= int(value) <= routes.MOST_ON_A_PAGE:
                raise _NotPlain
            found[name] = int(value)
        elif name in _LONGEST:
            if len(value) > _LONGEST[name]:
                raise _NotPlain
            found[name] = value
    return found


def _read(asked: _Asked, held: Any) -> dict[str, Any]:
    return {"id": asked.id, "if_none_match": asked.headers.get(b"if-none-match")}


def _put(asked: _Asked, held: Any) -> dict[str, Any]:
    return {
        "id": asked.id, "if_etag": asked.etag, "draft": _model(SubscriptionReplacement, held),
        "if_none_match": asked.headers.get(b"if-none-match"),
    }  # fmt: skip


def _change(asked: _Asked, held: Any) -> dict[str, Any]:
    return {
        "id": asked.id, "if_etag": asked.etag, "changes": _model(SubscriptionChanges, held),
    }  # fmt: skip


def _delete(asked: _Asked, held: Any) -> dict[str, Any]:
    return {"id": asked.id, "if_etag": asked.etag}


_WITHOUT_ID: dict[str, tuple[_Endpoint, _ArgumentsOf]] = {
    "POST": (routes.create, _create), "GET": (routes.list_page, _list),
}  # fmt: skip
_WITH_ID: dict[str, tuple[_Endpoint, _ArgumentsOf]] = {
    "GET": (routes.read, _read), "PUT": (routes.put, _put), "PATCH": (routes.change, _change),
    "DELETE": (routes.delete, _delete),
}  # fmt: skip
