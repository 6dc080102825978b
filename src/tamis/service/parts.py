"""The parts of a running service, and their beginning and end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from tamis.errors import StorageUnavailable
from tamis.service.event_log import EventLog, FileLog
from tamis.service.feed import Feed
from tamis.service.key_ring import KeyRing
from tamis.service.limits import TokenBuckets
from tamis.service.live_index import LiveIndex
from tamis.service.logs import log
from tamis.service.metrics import Metrics
from tamis.service.operations import Operations
from tamis.service.recent import RecentEvents
from tamis.service.sending import RunningSender, check_transports, start_sender, targets_of
from tamis.service.settings import ServiceSettings
from tamis.storage import Database, SubscriptionStore
from tamis.storage.delivery_log import replay, replay_dead
from tamis.storage.idempotency import forget_old
from tamis.storage.inbox import Inbox
from tamis.storage.keys import KeyStore

__all__ = ["Parts"]

_TIDY_EVERY_S = 60.0
_PREVIEWS_AT_ONCE = 2  # each may take seconds, and all requests share a few threads


class Parts:
    """All that the routes use."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        settings.data.mkdir(parents=True, exist_ok=True)
        self.database = Database(settings.database_url)
        self.subscriptions = SubscriptionStore(self.database)
        self.keys = KeyStore(self.database)
        self.key_ring = KeyRing(self.keys, settings.limits)
        self.inbox = Inbox(self.database)
        self.buckets = TokenBuckets()
        self.metrics = Metrics()
        self.index = LiveIndex(self.database, settings.index)
        self.feed = Feed(self.database)
        self.recent = RecentEvents(settings.n_recent_events)
        self.previewing = asyncio.Semaphore(_PREVIEWS_AT_ONCE)
        self.operations = Operations(self.database, self.index, self.recent, settings.pipeline_file)
        self.metrics.watch(self.operations)
        self.event_log: EventLog
        self.check_transports = partial(check_transports, settings=settings.sender)
        self._sender: RunningSender | None = None
        self._stopped = threading.Event()
        self._tidier = threading.Thread(target=self._tidy, name="tidier", daemon=True)

    def start(self) -> None:
        """Make the tables, open the event log, begin to follow."""
        self.database.migrate()
        self.event_log = self._open_log()
        self.recent.extend(self.event_log.recent(self.settings.n_recent_events))
        self.index.start()
        self.feed.start()
        self._tidier.start()
        self.operations.start(self.event_log)
        if self.settings.sends:
            self._sender = start_sender(self.database, self.settings.sender)

    def replay(self, id: str, owner: str | None) -> int:
        """Send a notification again; returns how many deliveries wait for that."""
        self.inbox.get(id, owner)
        sender = self.settings.sender
        return replay(
            self.database, id, partial(targets_of, settings=sender),
            now=datetime.now(UTC), max_age=sender.max_age,
        )  # fmt: skip

    def replay_dead(self, ids: Sequence[str] | None) -> int:
        """Try dead deliveries again, of notifications or all; returns how many."""
        max_age = self.settings.sender.max_age
        return replay_dead(self.database, now=datetime.now(UTC), max_age=max_age, ids=ids)

    def close(self) -> None:
        """End everything; what was acknowledged is written."""
        self._stopped.set()
        if self._sender is not None:
            self._sender.stop()
        self._tidier.join()
        self.operations.close()
        self.feed.close()
        self.index.close()
        self.event_log.close()
        try:
            self.key_ring.write_uses()
        except StorageUnavailable as error:
            log.warning("keys", problem=str(error))
        self.database.close()

    def _open_log(self) -> EventLog:
        if self.settings.kafka is None:
            return FileLog(self.settings.events)
        from tamis.service.kafka_log import KafkaLog

        return KafkaLog(self.settings.kafka)

    def _tidy(self) -> None:
        """What has to be done now and then."""
        while not self._stopped.wait(_TIDY_EVERY_S):
            try:
                self.key_ring.write_uses()
                forget_old(self.database)
            except StorageUnavailable as error:
                log.warning("tidying", problem=str(error))
