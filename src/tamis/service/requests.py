"""Requests: strict bodies, and what routes ask of the caller and of headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tamis.service.key_ring import Caller
from tamis.service.parts import Parts
from tamis.service.problems import BadRequest
from tamis.values import read_json

__all__ = [
    "AdminCaller",
    "EachVersion",
    "PublisherCaller",
    "RawBody",
    "SomeCaller",
    "StrictRoute",
    "SubscriberCaller",
    "ThatVersion",
    "TheParts",
    "etag",
    "read_strictly",
    "version_of",
]

_ETAG = re.compile(r'(?:W/)?"(\d{1,18})"', re.ASCII)
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


def etag(version: int) -> str:
    """The ETag of a version.

    >>> etag(3)
    '"3"'
    """
    return f'"{version}"'


def version_of(if_match: str | None) -> int | None:
    """The version that an ``If-Match`` asks for; None for any.

    >>> version_of('"3"'), version_of("*")
    (3, None)
    """
    if if_match is None or if_match.strip() == "*":
        return None
    found = _ETAG.fullmatch(if_match.strip())
    if found is None:
        raise BadRequest(f'If-Match {if_match!r} is no ETag of ours, such as "3"')
    return int(found[1])


async def _if_match(
    if_match: Annotated[
        str | None,
        Header(description='Only if it still has this ETag, as in `"3"`.', examples=['"3"']),
    ] = None,
) -> int | None:
    return version_of(if_match)


async def _if_none_match(
    if_none_match: Annotated[
        str | None,
        Header(description="Only if its ETag is none of these; `*` is any.", examples=["*"]),
    ] = None,
) -> str | None:
    return if_none_match


ThatVersion = Annotated[int | None, Depends(_if_match)]
EachVersion = Annotated[str | None, Depends(_if_none_match)]
