"""The client of a service: the same calls for threads and for asyncio, with typed results."""

from tamis.client.asynchronous import AsyncClient
from tamis.client.failures import ServiceError
from tamis.client.results import (
    Explained,
    ImportResult,
    KeyInfo,
    Matched,
    NewKey,
    Notification,
    Previewed,
    Published,
    SavedSubscription,
)
from tamis.client.synchronous import Client

__all__ = [
    "AsyncClient",
    "Client",
    "Explained",
    "ImportResult",
    "KeyInfo",
    "Matched",
    "NewKey",
    "Notification",
    "Previewed",
    "Published",
    "SavedSubscription",
    "ServiceError",
]
