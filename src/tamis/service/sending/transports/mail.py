"""Mail: notifications as digests in plain text and HTML, by a mail server that relays them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import suppress
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import aiosmtplib

from tamis.errors import InvalidDelivery, quoted
from tamis.service.sending.digest import write_digest
from tamis.service.sending.message import Message
from tamis.service.sending.outcomes import SENT, Kind, Outcome, failed, hopeless
from tamis.service.sending.settings import MailSettings, SenderSettings
from tamis.service.sending.tokens import unsubscribe_url
from tamis.service.sending.transport_kind import Field, TransportKind

__all__ = ["TRANSPORT", "MailTransport", "compose"]

# What every mail server takes; quoted local parts and such are not worth their traps.
_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@"
    r"(?=.{1,253}\Z)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9-]{2,63}"
)
_LONGEST_SUBJECT = 200
_CLOSING = 421  # the server as a whole, whatever it was asked for


def _destination(address: str, settings: SenderSettings) -> str:
    if not _ADDRESS.fullmatch(address) or ".." in address or address.startswith("."):
        raise InvalidDelivery(
            f"mail {quoted(address)} is not an address such as name@example.org; names with other "
            "letters are written in their xn-- form"
        )
    return "mail"  # the server as a whole


def compose(message: Message, settings: MailSettings, at: datetime) -> EmailMessage:
    """The mail that tells a notification."""
    url = None
    if settings.public_url is not None:
        url = unsubscribe_url(
            settings.public_url,
            message.subscription_id,
            message.address,
            message.claim.row.webhook_secret,
        )
    digest = write_digest(message, url)
    mail = EmailMessage(policy=SMTP)
    mail["Message-ID"] = _message_id(message, settings)
    mail["Date"] = format_datetime(at)
    mail["From"] = Address(settings.sender_name, addr_spec=settings.sender)
    mail["To"] = Address(addr_spec=message.address)
    mail["Subject"] = " ".join(digest.headline.split())[:_LONGEST_SUBJECT]
    mail["Auto-Submitted"] = "auto-generated"
    if url is not None:
        mail["List-Unsubscribe"] = f"<{url}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail.set_content(digest.text, cte="quoted-printable")
    mail.add_alternative(digest.html, subtype="html", cte="quoted-printable")
    return mail


def _message_id(message: Message, settings: MailSettings) -> str:
    """The same in every attempt; the copies for several addresses are different mails."""
    domain = settings.sender.rpartition("@")[2]
    copy = hashlib.sha256(message.address.encode()).hexdigest()[:8]
    return f"<{message.id}.{copy}@{domain}>"


class MailTransport:
    """Sends notifications through a mail server, over connections that are used again."""

    def __init__(self, settings: MailSettings) -> None:
        self._settings = settings
        self._idle: list[aiosmtplib.SMTP] = []
        self._room = asyncio.Semaphore(settings.connections)

    async def send(self, message: Message, at: datetime) -> Outcome:
        """Send a notification."""
        mail = compose(message, self._settings, at)
        async with self._room:
            try:
                async with asyncio.timeout(self._settings.timeout.total_seconds()):
                    return await self._send(mail, message.address)
            except TimeoutError:
                within = self._settings.timeout.total_seconds()
                return failed(f"the mail server took more than {within:g} s")
            except aiosmtplib.SMTPRecipientsRefused as error:
                (refused,) = error.recipients
                return _refused(refused.code, refused.message)
            except aiosmtplib.SMTPResponseException as error:
                return _refused(error.code, error.message)
            except (aiosmtplib.SMTPException, OSError) as error:
                return failed(f"the mail server failed: {error}")

    async def _send(self, mail: EmailMessage, address: str) -> Outcome:
        server = await self._connect()
        is_well = False
        try:
            await server.send_message(mail, sender=self._settings.sender, recipients=[address])
            is_well = True
        finally:
            if is_well:
                self._idle.append(server)
            else:
                server.close()
        return SENT

    async def _connect(self) -> aiosmtplib.SMTP:
        while self._idle:
            server = self._idle.pop()
            if server.is_connected:
                with suppress(aiosmtplib.SMTPException, OSError):
                    await server.noop()  # it may have hung up meanwhile
                    return server
            server.close()
        settings = self._settings
        server = aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.port,
            username=settings.user,
            password=settings.password,
            use_tls=settings.security == "tls",
            start_tls=settings.security == "starttls",
            timeout=settings.timeout.total_seconds(),
        )
        try:
            await server.connect()
        except BaseException:
            server.close()
            raise
        return server

    async def close(self) -> None:
        """Take leave of the server."""
        for server in self._idle:
            with suppress(aiosmtplib.SMTPException, OSError):
                await server.quit()
            server.close()
        self._idle.clear()


def _refused(code: int, said: str) -> Outcome:
    problem = f"the mail server said {code} {said}"
    if code >= 500:
        return hopeless(problem, code)
    return Outcome(Kind.FAILED, problem, code, blames_destination=code == _CLOSING)


def _make(settings: SenderSettings) -> MailTransport | None:
    return None if settings.mail is None else MailTransport(settings.mail)


TRANSPORT = TransportKind(
    _destination,
    _make,
    field=Field(
        placeholder="zoe@example.org",
        hint="several with commas",
        inputmode="email",
        has_commas=True,
    ),
    place=2,
)
