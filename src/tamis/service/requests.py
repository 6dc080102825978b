"""Requests: strict bodies, and what routes ask of the caller and of headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tamis.errors import quoted
from tamis.service.key_ring import Caller
from tamis.service.parts import Parts
from tamis.service.problems import BadRequest
from tamis.storage.subscriptions import ANY
from tamis.values import read_json

__all__ = [
    "AdminCaller",
    "EachEtag",
    "PublisherCaller",
    "RawBody",
    "SomeCaller",
    "StrictRoute",
    "SubscriberCaller",
    "ThatEtag",
    "TheParts",
    "etag_in",
    "read_strictly",
]

_ETAG = re.compile(r'(?:W/)?"[^",]*"')
_BEARER = HTTPBearer(
    auto_error=False, description="An API key: tamis_<prefix>_<secret>", bearerFormat="API key"
)


def read_strictly(body: bytes) -> Any:
    """The JSON of a body, which must be what it says: no key twice, no NaN, not too deep."""
    return read_json(body, "the body", BadRequest)


class _StrictRequest(Request):
    """A request whose JSON is read strictly."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = read_strictly(await self.body())
        return self._json


class StrictRoute(APIRoute):
    """A route that reads bodies strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            strict = _StrictRequest(request.scope, request.receive)
            if self.body_field is not None:
                await strict.json()
            return await answer(strict)

        return handle


# What depends on nothing that takes time is async: else each would be handed to a thread.
async def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


def _caller(scope: str | None) -> Callable[..., Coroutine[Any, Any, Caller]]:
    async def find(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)] = None,
    ) -> Caller:
        caller: Caller = request.state.caller  # the gate's work
        if scope is not None:
            caller.require(scope)
        return caller

    return find


async def _raw_body(request: Request) -> bytes:
    return await request.body()


TheParts = Annotated[Parts, Depends(_parts)]
SubscriberCaller = Annotated[Caller, Depends(_caller("subscriber"))]
PublisherCaller = Annotated[Caller, Depends(_caller("publisher"))]
AdminCaller = Annotated[Caller, Depends(_caller("admin"))]
SomeCaller = Annotated[Caller, Depends(_caller(None))]
RawBody = Annotated[bytes, Depends(_raw_body)]


def etag_in(if_match: str | None) -> str | None:
    """The ETag in an ``If-Match``, without its quotes; what fits none stays as it is.

    >>> etag_in('"3-2026"'), etag_in('W/"3-2026"'), etag_in("*"), etag_in('"*"')
    ('3-2026', 'W/"3-2026"', '*', '"*"')
    """
    if if_match is None:
        return None
    given = if_match.strip()
    if given != ANY and not _ETAG.fullmatch(given):
        raise BadRequest(
            f"If-Match {quoted(if_match)} is not one ETag in double quotes, as a subscription's "
            "header ETag has it"
        )
    is_strong = given.startswith('"') and given[1:-1] != ANY
    return given[1:-1] if is_strong else given


async def _if_match(
    if_match: Annotated[
        str | None,
        Header(
            description="Only if it still has this ETag; `*` is any.",
            examples=['"1-2026-01-01T09:00:00.000000Z"'],
        ),
    ] = None,
) -> str | None:
    return etag_in(if_match)


async def _if_none_match(
    if_none_match: Annotated[
        str | None,
        Header(description="Only if its ETag is none of these; `*` is any.", examples=["*"]),
    ] = None,
) -> str | None:
    return if_none_match


ThatEtag = Annotated[str | None, Depends(_if_match)]
EachEtag = Annotated[str | None, Depends(_if_none_match)]
