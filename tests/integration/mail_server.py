"""A mail server on the loopback interface that keeps mails, or refuses them."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller

from tests.integration.ports import free_ports


class Mailbox:
    """What arrived; ``refusals`` are the answers to recipients that are not taken."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.refusals: dict[str, str] = {}
        self.data_answer = "250 taken"
        self.n_connections = 0
        self.port = 0

    async def handle_EHLO(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        self.n_connections += 1
        return responses

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if address in self.refusals:
            return self.refusals[address]
        envelope.rcpt_tos.append(address)
        return "250 taken"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.data_answer.startswith("250"):
            made = email.message_from_bytes(envelope.content, policy=email.policy.default)
            assert isinstance(made, EmailMessage)
            self.mails.append(made)
            self.recipients += envelope.rcpt_tos
        return self.data_answer


@contextmanager
def running_mail_server() -> Iterator[Mailbox]:
    """A server, for as long as it is used."""
    mailbox = Mailbox()
    (mailbox.port,) = free_ports(1)
    controller = Controller(mailbox, hostname="127.0.0.1", port=mailbox.port)
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()
