"""Events that stay valid, for subscribers who come later: the event store."""

from tamis.events.store import EventStore

__all__ = ["EventStore"]
