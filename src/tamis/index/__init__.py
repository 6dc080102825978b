"""The index: saved subscriptions, and which of them an event satisfies."""

from tamis.index.index import Index
from tamis.index.matches import MatchSet

__all__ = ["Index", "MatchSet"]
