"""The client of a service: the same calls for threads and for asyncio, with typed results."""

from tamis.client.asynchronous import AsyncClient
from tamis.client.failures import ServiceError
from tamis.client.results import (
    BroadSubscription,
    CostlySubscription,
    DeliveryFigures,
    DestinationState,
    EventFileCounts,
    Explained,
    HistoryPoint,
    ImportResult,
    IndexState,
    KeyInfo,
    ListedDelivery,
    Matched,
    NewKey,
    Notification,
    OperationsState,
    Previewed,
    Published,
    Rate,
    SavedSubscription,
)
from tamis.client.synchronous import Client

__all__ = [
    "AsyncClient",
    "BroadSubscription",
    "Client",
    "CostlySubscription",
    "DeliveryFigures",
    "DestinationState",
    "EventFileCounts",
    "Explained",
    "HistoryPoint",
    "ImportResult",
    "IndexState",
    "KeyInfo",
    "ListedDelivery",
    "Matched",
    "NewKey",
    "Notification",
    "OperationsState",
    "Previewed",
    "Published",
    "Rate",
    "SavedSubscription",
    "ServiceError",
]
