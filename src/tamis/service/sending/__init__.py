"""The sender: notifications from the outbox to webhooks, mail and chat services.

``unsubscribing.unsubscribe_router`` is for the API that runs beside it.
"""

from tamis.service.sending.running import RunningSender, make_sender, start_sender
from tamis.service.sending.sender import Sender
from tamis.service.sending.settings import SenderSettings, read_sender_settings
from tamis.service.sending.transport_kind import Transport
from tamis.service.sending.transports import check_transports, targets_of

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
]
