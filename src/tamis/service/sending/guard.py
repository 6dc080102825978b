"""The guard of webhooks: every connection is made to an address that was checked.

A name is resolved, its addresses are checked, and the connection is made to one of those, not to the
name: an answer of DNS that changes in between cannot lead anywhere else. Host header and certificate
are those of the name. Redirects come this way too.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx

from tamis.service.sending.addresses import address_problem
from tamis.service.sending.settings import WebhookSettings

__all__ = ["Forbidden", "GuardedTransport", "Resolve", "resolve"]

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host."""


class Forbidden(Exception):
    """A host that webhooks may not reach."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the machine resolves names."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class _GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to addresses that may be reached, and to no other."""

    def __init__(self, settings: WebhookSettings, resolve: Resolve) -> None:
        self._settings = settings
        self._resolve = resolve
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for address in await self._checked(host, port):
            try:
                return await self._plain.connect_tcp(address, port, timeout, local_address)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # at least one address was tried
        raise failure

    async def _checked(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} has no address: {error}") from error
        if not addresses:
            raise httpcore.ConnectError(f"{host} has no address")
        problems = [address_problem(host, ip_address(one), self._settings) for one in addresses]
        allowed = [one for one, why in zip(addresses, problems, strict=True) if why is None]
        if not allowed:
            raise Forbidden(f"{host} may not be reached: {problems[0]}")
        return allowed


class GuardedTransport(httpx.AsyncBaseTransport):
    """What httpx sends requests through."""

    def __init__(
        self,
        settings: WebhookSettings,
        *,
        connections: int,
        resolve: Resolve = resolve,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=certificates or httpx.create_ssl_context(),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=15,
            network_backend=_GuardedBackend(settings, resolve),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        url = request.url
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                target,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    """The body of an answer, as it arrives."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._answer.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._answer.aclose()
