"""The event log in a topic of Kafka."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from tamis.errors import MissingExtra, StorageUnavailable
from tamis.model import Event
from tamis.service.settings import KafkaSettings

__all__ = ["KafkaLog"]

_GIVE_UP_MS = 10_000


class KafkaLog:
    """An event log that a pipeline reads with ``source = "kafka"``.

    An event is acknowledged when all replicas that are in sync have it.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError as error:
            raise MissingExtra(
                f"Kafka needs confluent-kafka ({error}). Install it: pip install 'tamis[kafka]'"
            ) from error
        self._topic = settings.topic
        self._failures = (BufferError, KafkaException)
        self._producer = Producer(
            {
                "bootstrap.servers": settings.servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": _GIVE_UP_MS,
                **settings.options,
            }
        )
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="event-log", daemon=True)
        self._thread.start()

    def append(self, events: Sequence[Event]) -> Future[None]:
        """Send events; done when all of them are acknowledged."""
        done: Future[None] = Future()
        if not events:
            done.set_result(None)
            return done
        tally = _Tally(len(events), done)
        for sent, event in enumerate(events):
            text = json.dumps(event.to_json(), ensure_ascii=False, separators=(",", ":"))
            try:
                self._producer.produce(
                    self._topic, text.encode(), event.id.encode(), on_delivery=tally.count
                )
            except self._failures as error:  # too many wait already, or there is no such topic
                tally.fail(str(error), len(events) - sent)
                break
        return done

    def recent(self, n: int) -> list[Event]:
        """None: a topic is read from its beginning only."""
        return []

    def file_times(self) -> None:
        """None: there are no files."""

    def close(self) -> None:
        """Wait for what is on its way."""
        self._producer.flush(_GIVE_UP_MS / 1_000)
        self._is_closed.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._is_closed.is_set():
            self._producer.poll(0.1)


class _Tally:
    """Counts the events of one request that were told of."""

    def __init__(self, n_events: int, done: Future[None]) -> None:
        self._left, self._done, self._problem = n_events, done, ""
        self._lock = threading.Lock()

    def count(self, error: Any, message: Any) -> None:
        """One more is acknowledged, or will never be."""
        self.fail(str(error) if error is not None else "", 1)

    def fail(self, problem: str, n_events: int) -> None:
        """So many more are told of."""
        with self._lock:
            self._problem = self._problem or problem
            self._left -= n_events
            is_over = self._left == 0
        if not is_over:
            return
        if self._problem:
            self._done.set_exception(
                StorageUnavailable(f"Kafka did not take all events: {self._problem}")
            )
        else:
            self._done.set_result(None)
