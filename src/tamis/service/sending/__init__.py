"""The sender: notifications from the outbox to webhooks, mail and chat services."""

from tamis.service.sending.running import RunningSender, make_sender, start_sender
from tamis.service.sending.sender import Sender, Transport
from tamis.service.sending.settings import SenderSettings, read_sender_settings
from tamis.service.sending.transports import check_transports, targets_of
from tamis.service.sending.unsubscribing import unsubscribe_router

__all__ = [
    "RunningSender",
    "Sender",
    "SenderSettings",
    "Transport",
    "check_transports",
    "make_sender",
    "read_sender_settings",
    "start_sender",
    "targets_of",
    "unsubscribe_router",
]
