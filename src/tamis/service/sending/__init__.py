"""The sender: notifications from the outbox to webhooks, mail and chat services."""

from tamis.service.sending.sender import Sender, Transport
from tamis.service.sending.settings import SenderSettings, read_sender_settings
from tamis.service.sending.transports import check_transports

__all__ = ["Sender", "SenderSettings", "Transport", "check_transports", "read_sender_settings"]
