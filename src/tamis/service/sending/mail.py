"""Mail: notifications as digests in plain text and HTML, by a mail server that relays them."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import aiosmtplib

from tamis.service.sending.digest import write_digest
from tamis.service.sending.message import Message
from tamis.service.sending.outcomes import SENT, Kind, Outcome, failed, hopeless
from tamis.service.sending.settings import MailSettings
from tamis.service.sending.tokens import unsubscribe_url

__all__ = ["MailTransport", "compose"]

_LONGEST_SUBJECT = 200
_CLOSING = 421  # the server as a whole, whatever it was asked for


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
