"""Chat services: notifications by way of Apprise, which knows many of them."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import Any

from tamis.errors import InvalidDelivery, quoted
from tamis.service.sending.digest import Digest, write_digest
from tamis.service.sending.message import Message
from tamis.service.sending.outcomes import SENT, Outcome, failed, hopeless
from tamis.service.sending.settings import AppriseSettings, SenderSettings
from tamis.service.sending.transport_kind import Field, TransportKind

__all__ = ["TRANSPORT", "ChatTransport"]

_LONGEST_URL = 2_000
_SCHEMA = re.compile(r"([a-z][a-z0-9]*)://.", re.IGNORECASE)
_THREADS = 8


def _destination(address: str, settings: SenderSettings) -> str:
    found = _SCHEMA.match(address)
    allowed = settings.apprise.schemas
    if found is None or found[1].lower() not in allowed:
        given = f"{found[1]}://" if found else quoted(address[:12])
        raise InvalidDelivery(
            f"apprise {given} may not be used here; expected one of "
            + ", ".join(f"{one}://" for one in allowed)
        )
    if not address.isprintable() or len(address) > _LONGEST_URL:
        raise InvalidDelivery(
            f"apprise {found[1]}://… has characters that no URL has, or more than {_LONGEST_URL:,}"
        )
    # The address is a secret as a whole, and nobody reads its destination.
    return f"{found[1].lower()}/{sha256(address.encode()).hexdigest()[:16]}"


class ChatTransport:
    """Sends notifications to the services of Apprise that the settings allow.

    A service is told in a thread: Apprise waits for answers in its own way. It is imported there
    too, when something is first sent: it takes long, and most have nobody to tell by it.
    """

    def __init__(self, settings: AppriseSettings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(_THREADS, "tamis-chat")

    @cached_property
    def _asset(self) -> Any:
        from apprise import AppriseAsset

        return AppriseAsset(
            app_id="Tamis", app_desc="Tamis", app_url="", secure_logging=True,
            http_redirects=False, async_mode=False,
        )  # fmt: skip

    async def send(self, message: Message, at: datetime) -> Outcome:
        """Send a notification."""
        digest = write_digest(message)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(2 * self._settings.timeout.total_seconds()):
                return await loop.run_in_executor(
                    self._threads, self._tell, message.address, digest
                )
        except TimeoutError:
            return failed(f"no answer within {2 * self._settings.timeout.total_seconds():g} s")

    def _tell(self, address: str, digest: Digest) -> Outcome:
        from apprise import NotifyFormat

        service = self._service(address)
        if service is None:
            return hopeless("Apprise cannot use this address")
        is_sent = service.notify(
            title=digest.headline, body=digest.text, body_format=NotifyFormat.TEXT
        )
        return SENT if is_sent else failed("the service did not take it; Apprise does not say why")

    def _service(self, address: str) -> Any:
        """The service of an address; what the address says of timeouts and redirects is void."""
        from apprise import Apprise

        service = Apprise.instantiate(address, asset=self._asset)
        if service is None or not _schemas(service) & set(self._settings.schemas):
            return None
        service.redirects = False
        service.verify_certificate = True
        service.socket_connect_timeout = self._settings.timeout.total_seconds()
        service.socket_read_timeout = self._settings.timeout.total_seconds()
        return service

    async def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False)


def _schemas(service: Any) -> set[str]:
    """All schemas of a service: which one an address has is checked before."""
    found: set[str] = set()
    for given in (service.protocol, service.secure_protocol):
        found |= {given} if isinstance(given, str) else set(given or ())
    return found


TRANSPORT = TransportKind(
    _destination,
    lambda settings: ChatTransport(settings.apprise),
    # An address may hold commas.
    field=Field("Chat (Apprise)", placeholder="slack://…", hint="several with spaces"),
    place=3,
)
