"""Webhooks: notifications as signed HTTP requests.

The signature is that of the Standard Webhooks specification, with the secret of the owner.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from importlib.metadata import version

import httpcore
import httpx
from standardwebhooks import Webhook

from tamis.errors import InvalidDelivery, quoted
from tamis.service.sending.addresses import check_literal, name_problem, port_problem
from tamis.service.sending.guard import Connections, Forbidden, Resolve, resolve
from tamis.service.sending.message import Message
from tamis.service.sending.outcomes import Kind, Outcome, failed, hopeless
from tamis.service.sending.settings import SenderSettings
from tamis.service.sending.transport_kind import Field, TransportKind

__all__ = ["TRANSPORT", "WebhookTransport"]

_LONGEST_URL = 2_000
_REDIRECTS = (307, 308)  # those that keep the request as it is
_TRY_LATER = (408, 425, 429)
_GONE = 410
_HEADERS = {
    "content-type": "application/json",
    "user-agent": f"tamis/{version('tamis')}",
    "accept-encoding": "identity",
}
_PASSING = (
    httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError,
)  # fmt: skip


def _destination(address: str, settings: SenderSettings) -> str:
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidDelivery(f"webhook {quoted(address)} is not a URL: {error}") from None
    problem = _problem(url, settings)
    if problem is None and len(address) > _LONGEST_URL:
        problem = f"has {len(address):,} characters, more than {_LONGEST_URL:,}"
    if problem is not None:
        raise InvalidDelivery(f"webhook {quoted(address)} {problem}")
    is_usual = url.port in (None, {"http": 80, "https": 443}[url.scheme])
    return f"{url.scheme}://{_host(url)}" + ("" if is_usual else f":{url.port}")


def _problem(url: httpx.URL, settings: SenderSettings) -> str | None:
    """Why nothing may be sent to a URL, as far as the URL itself says it."""
    if url.scheme not in ("http", "https") or not url.raw_host:
        return "must begin with http:// or https:// and name a host"
    if url.userinfo:
        return "has a user or password in it, which would end up in logs; leave them out"
    return name_problem(url) or port_problem(url) or check_literal(url.host, settings.webhook)


def _host(url: httpx.URL) -> str:
    """The host as it is sent: in the letters of DNS, in brackets if it is an address of IPv6."""
    host = url.raw_host.decode("ascii")
    return f"[{host}]" if ":" in host else host


class WebhookTransport:
    """Sends notifications to webhooks."""

    def __init__(
        self,
        settings: SenderSettings,
        *,
        resolve: Resolve = resolve,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._connections = Connections(
            settings.webhook,
            keep=settings.concurrency,
            resolve=resolve,
            certificates=certificates,
        )

    async def send(self, message: Message, at: datetime) -> Outcome:
        """Send a notification; ``at`` is the time that is signed."""
        body = json.dumps(message.to_json(), separators=(",", ":"))
        signed = Webhook(message.claim.row.webhook_secret).sign(message.id, at, body)
        headers = {
            **_HEADERS,
            "webhook-id": message.id,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": signed,
        }
        try:
            async with asyncio.timeout(self._settings.webhook.timeout.total_seconds()):
                return await self._post(_url(message.address), body.encode(), headers, at)
        except TimeoutError:
            return failed(f"no answer within {self._settings.webhook.timeout.total_seconds():g} s")
        except Forbidden as error:
            return hopeless(str(error))
        except _PASSING as error:
            return failed(str(error) or type(error).__name__)

    async def _post(
        self, url: httpx.URL, body: bytes, headers: dict[str, str], at: datetime
    ) -> Outcome:
        """Post, and follow redirects."""
        for _ in range(self._settings.webhook.max_redirects + 1):
            async with self._connections.post(url, headers, body) as answer:
                told = _header(answer, b"location")
                if answer.status not in _REDIRECTS or told is None:
                    await self._pass_over_body(answer)
                    return _outcome(answer, at)
            try:
                target = url.join(told)
            except (httpx.InvalidURL, ValueError):
                return Outcome(Kind.REFUSED, "redirects to no URL", answer.status)
            problem = _redirect_problem(url, target) or _problem(target, self._settings)
            if problem is not None:
                return hopeless(f"redirects to {_host(target)}, which {problem}", answer.status)
            url = target
        most = self._settings.webhook.max_redirects
        return Outcome(Kind.REFUSED, f"redirects more than {most} times", answer.status)

    async def _pass_over_body(self, answer: httpcore.Response) -> None:
        """Read a short body, so that the connection can be used again; leave a long one."""
        left = self._settings.webhook.max_response_bytes
        try:
            async for part in answer.aiter_stream():
                left -= len(part)
                if left < 0:
                    return
        except _PASSING:
            return  # the status is the answer

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()


@lru_cache(maxsize=4_096)
def _url(address: str) -> httpx.URL:
    return httpx.URL(address)


def _header(answer: httpcore.Response, name: bytes) -> str | None:
    for one, value in answer.headers:
        if one.lower() == name:
            return value.decode("latin-1")
    return None


def _outcome(answer: httpcore.Response, at: datetime) -> Outcome:
    status = answer.status
    if 200 <= status < 300:
        return Outcome(Kind.SENT, status=status)
    problem = f"answered {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
    if status == _GONE:
        return hopeless(f"{problem}: it wants no more", status)
    if status in _TRY_LATER or status >= 500:
        asked = _retry_after(_header(answer, b"retry-after"), at)
        return Outcome(Kind.FAILED, problem, status, retry_after=asked)
    return Outcome(Kind.REFUSED, problem, status)


def _redirect_problem(source: httpx.URL, target: httpx.URL) -> str | None:
    same = source.scheme == target.scheme
    return None if same else f"is {target.scheme} and not {source.scheme}"


def _retry_after(header: str | None, at: datetime) -> timedelta | None:
    """How long to wait by the header Retry-After: seconds, or a date; None if it is neither.

    >>> _retry_after("120", datetime(2026, 1, 1, tzinfo=UTC))
    datetime.timedelta(seconds=120)
    >>> _retry_after("Thu, 01 Jan 2026 00:01:00 GMT", datetime(2026, 1, 1, tzinfo=UTC))
    datetime.timedelta(seconds=60)
    """
    if header is None:
        return None
    if header.isascii() and header.isdigit() and len(header) < 10:
        return timedelta(seconds=int(header))
    try:
        until = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(until - at, timedelta())


TRANSPORT = TransportKind(
    _destination,
    WebhookTransport,
    takes_many=False,
    field=Field(placeholder="https://…", type="url", inputmode="url"),
    place=1,
)
