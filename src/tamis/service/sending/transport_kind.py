"""What a transport is: what sends, how its addresses are read, and what the page calls it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, Protocol

from tamis.service.sending.message import Message
from tamis.service.sending.outcomes import Outcome
from tamis.service.sending.settings import SenderSettings

__all__ = ["Field", "Transport", "TransportKind"]


class Transport(Protocol):
    """A way to send notifications."""

    async def send(self, message: Message, at: datetime) -> Outcome:
        """Try once to send a notification."""

    async def close(self) -> None:
        """Let go of all connections."""


class Field(NamedTuple):
    """The field of a transport on the page: a line of text, unless it says more.

    Without a ``label`` it is called as the transport is. ``type`` and ``inputmode`` are those of
    HTML. Several addresses are set apart by spaces; also by commas, if no address holds one.
    """

    label: str | None = None
    placeholder: str | None = None
    hint: str | None = None
    type: str | None = None
    inputmode: str | None = None
    has_commas: bool = False


class TransportKind(NamedTuple):
    """A kind of transport: how one of its addresses is read, and what sends there.

    ``destination`` names what fails together with an address, and raises InvalidDelivery for one
    that cannot be, or that leads where none may. ``make`` gives None where the settings have
    nothing to send with. ``takes_many``: settings may name a list of addresses. ``place``: where it
    stands among the others; those that do not say come last, by name.
    """

    destination: Callable[[str, SenderSettings], str]
    make: Callable[[SenderSettings], Transport | None]
    takes_many: bool = True
    field: Field = Field()
    place: int = 100
