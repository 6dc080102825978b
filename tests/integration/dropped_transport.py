"""A transport that is one file: put into the folder of transports, and taken out again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tamis.service.routes import page
from tamis.service.sending import transports
from tamis.service.sending.transport_kind import TransportKind

PAGER = '''
"""Pagers: notifications as beeps."""

from tamis.errors import InvalidDelivery
from tamis.service.sending.outcomes import SENT
from tamis.service.sending.transport_kind import TransportKind

BEEPS = []


def destination(address, settings):
    if not address.isdigit():
        raise InvalidDelivery(f"pager {address!r} is not a number")
    return "pagers"


class PagerTransport:
    def __init__(self, settings):
        self.settings = settings

    async def send(self, message, at):
        BEEPS.append((message.address, message.subscription_id))
        return SENT

    async def close(self):
        BEEPS.append("closed")


TRANSPORT = TransportKind(destination, PagerTransport)
'''


@contextmanager
def dropped(folder: Path, text: str = PAGER, name: str = "pager") -> Iterator[None]:
    """The transports as a process finds them that starts with this file among them."""
    (folder / f"{name}.py").write_text(text)
    before = dict(transports.TRANSPORTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transports, "__path__", [*transports.__path__, str(folder)])
        try:
            fill_with(transports.find_transports())
            yield
        finally:
            fill_with(before)
            sys.modules.pop(f"{transports.__name__}.{name}", None)
            vars(transports).pop(name, None)


def fill_with(found: dict[str, TransportKind]) -> None:
    """Let the one dictionary that all modules share hold these, in their order."""
    transports.TRANSPORTS.clear()
    transports.TRANSPORTS.update(found)
    page._files.cache_clear()
