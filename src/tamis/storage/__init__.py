"""What must not be lost, in a database: subscriptions and their changes, keys, the outbox."""

from tamis.storage.changes import ChangeLog, LoggedChange, Watch
from tamis.storage.database import Database
from tamis.storage.saved import Saved
from tamis.storage.subscriptions import SubscriptionStore

__all__ = ["ChangeLog", "Database", "LoggedChange", "Saved", "SubscriptionStore", "Watch"]
