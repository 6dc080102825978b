"""The guard of webhooks: every connection is made to an address that was checked.

A name is resolved, its addresses are checked, and the connection is made to one of those, not to
the name: an answer of DNS that changes in between cannot lead anywhere else. Host header and
certificate are those of the name. Redirects come this way too.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx

from tamis.service.sending.addresses import address_problem
from tamis.service.sending.settings import WebhookSettings

__all__ = ["Connections", "Forbidden", "Resolve", "resolve"]

_KEEP_S = 15.0  # how long an idle connection is used again

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
        except (OSError, UnicodeError) as error:  # the latter of a name that none can have
            raise httpcore.ConnectError(f"{host} has no address: {error}") from error
        if not addresses:
            raise httpcore.ConnectError(f"{host} has no address")
        problems = [address_problem(host, ip_address(one), self._settings) for one in addresses]
        allowed = [one for one, why in zip(addresses, problems, strict=True) if why is None]
        if not allowed:
            raise Forbidden(f"{host} may not be reached: {problems[0]}")
        return allowed


class Connections:
    """Connections to webhooks, each used again for the next request to its host.

    How many there are at a time is for the caller to bound; so many idle ones are kept at most.
    """

    def __init__(
        self,
        settings: WebhookSettings,
        *,
        keep: int,
        resolve: Resolve = resolve,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._backend = _GuardedBackend(settings, resolve)
        self._certificates = certificates or httpx.create_ssl_context()
        self._timeouts = {"connect": settings.timeout.total_seconds() / 3}
        self._keep = keep
        self._idle: OrderedDict[httpcore.AsyncHTTPConnection, tuple[str, float]] = OrderedDict()
        self._idle_of: dict[str, list[httpcore.AsyncHTTPConnection]] = {}

    @asynccontextmanager
    async def post(
        self, url: httpx.URL, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[httpcore.Response]:
        """Post a body, and give the answer as soon as its head is there."""
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        length = ("content-length", str(len(body)))
        request = httpcore.Request(
            "POST",
            target,
            headers=[("host", url.netloc), length, *headers.items()],
            content=body,
            extensions={"timeout": self._timeouts},
        )
        connection = await self._take(target.origin)
        try:
            answer = await connection.handle_async_request(request)
            try:
                yield answer
            finally:
                await answer.aclose()
        finally:
            await self._put_back(connection, target.origin)

    async def _take(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        taken, expired = self._take_idle(str(origin))
        for connection in expired:
            await connection.aclose()
        return taken or httpcore.AsyncHTTPConnection(
            origin, self._certificates, keepalive_expiry=_KEEP_S, network_backend=self._backend
        )

    def _take_idle(
        self, origin: str
    ) -> tuple[httpcore.AsyncHTTPConnection | None, list[httpcore.AsyncHTTPConnection]]:
        """A connection to use again, if there is one, and those that were too old for it."""
        expired: list[httpcore.AsyncHTTPConnection] = []
        idle = self._idle_of.get(origin, [])
        while idle:
            connection = idle.pop()
            del self._idle[connection]
            if not connection.has_expired():
                return connection, expired
            expired.append(connection)
        self._idle_of.pop(origin, None)
        return None, expired

    async def _put_back(
        self, connection: httpcore.AsyncHTTPConnection, origin: httpcore.Origin
    ) -> None:
        if not connection.is_idle():
            await connection.aclose()
            return
        self._idle[connection] = str(origin), time.monotonic()
        self._idle_of.setdefault(str(origin), []).append(connection)
        oldest, (of, since) = next(iter(self._idle.items()))
        if len(self._idle) > self._keep or since < time.monotonic() - _KEEP_S:
            del self._idle[oldest]
            self._idle_of[of].remove(oldest)
            await oldest.aclose()

    async def close(self) -> None:
        """Close all connections that are idle."""
        idle = list(self._idle)
        self._idle.clear()
        self._idle_of.clear()
        for connection in idle:
            await connection.aclose()
