"""Producing and consuming in tests, with Kafka's C client: not the code that is tested."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

Pair = tuple[str, str]
"""An event and a subscription."""


def produce(servers: str, topic: str, values: Iterable[bytes | None]) -> None:
    """Write messages; returns when the broker has them all."""
    failed: list[object] = []

    def note(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(topic, value=value, on_delivery=note)
    assert producer.flush(60) == 0, "the broker did not take all messages"
    assert not failed, failed


class Reader:
    """Reads a topic of matches from its beginning, and keeps every message of every pair."""

    def __init__(self, servers: str, topic: str, partitions: int = 2) -> None:
        self.messages: dict[Pair, list[tuple[bytes, dict[str, Any]]]] = defaultdict(list)
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"reader-of-{topic}",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self.consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])

    def read_until(self, expected: set[Pair], seconds: float) -> None:
        """Read until every expected pair was seen; fail if that takes too long."""
        deadline = time.monotonic() + seconds
        while not expected <= self.messages.keys():
            assert time.monotonic() < deadline, (
                f"missing: {sorted(expected - self.messages.keys())[:5]}"
            )
            self._poll(0.5)

    def read_rest(self) -> None:
        """Read what is there now, to the end of every partition."""
        ends = {
            tp.partition: self.consumer.get_watermark_offsets(tp, timeout=30)[1]
            for tp in self.consumer.assignment()
        }
        deadline = time.monotonic() + 30
        while any(tp.offset < ends[tp.partition] for tp in self._positions()):
            assert time.monotonic() < deadline, "the end of the topic was not reached"
            self._poll(0.5)

    def close(self) -> None:
        self.consumer.close()

    def _positions(self) -> list[TopicPartition]:
        # Negative before the first message of a partition: it is at its beginning.
        found = self.consumer.position(self.consumer.assignment())
        return [TopicPartition(tp.topic, tp.partition, max(tp.offset, 0)) for tp in found]

    def _poll(self, seconds: float) -> None:
        for message in self.consumer.consume(1000, seconds):
            assert message.error() is None, message.error()
            value = json.loads(message.value())
            pair = value["event_id"], value["subscription_id"]
            self.messages[pair].append((message.key(), value))
