"""The sender, as far as the rest of the service knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tamis.service.settings import ServiceSettings

__all__ = ["check_transports", "start_sender"]


def check_transports(delivery: Mapping[str, Any]) -> None:
    """Raise InvalidDelivery for settings that no transport can use.

    The one place where the delivery settings of a request meet the sender's own checks.
    """


def start_sender(settings: ServiceSettings) -> Callable[[], None]:
    """Begin to send what is in the outbox; returns what ends it.

    The one place where ``tamis serve`` starts the sender.
    """
    return lambda: None
