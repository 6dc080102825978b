"""The event log in a topic of Kafka: acknowledged when the broker has it, told when it has not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tamis.errors import StorageUnavailable
from tamis.model import Event
from tamis.service.kafka_log import KafkaLog
from tamis.service.published import event_of
from tamis.service.settings import KafkaSettings
from tamis.spark.java import find_java
from tests.integration.kafka_broker import Broker

pytestmark = [pytest.mark.spark]


@pytest.fixture
def broker(kafka_jars: str | None, tmp_path: Path):
    if kafka_jars is not None:
        if os.environ.get("CI") == "true" and shutil.which("mvn"):
            pytest.fail(kafka_jars)
        pytest.skip(kafka_jars)
    made = Broker(tmp_path, find_java().home / "bin" / "java")
    made.start()
    yield made
    made.stop()


def read_events(servers: str, topic: str, n_events: int) -> list[Event]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = [consumer.poll(60) for _ in range(n_events)]
    consumer.close()
    return [Event.from_json(message.value()) for message in messages]


def test_what_is_acknowledged_is_in_the_topic(broker: Broker) -> None:
    broker.create("events", partitions=1)
    quick = {"message.timeout.ms": "3000", "log_level": "0"}
    log = KafkaLog(KafkaSettings(broker.servers, "events", quick))
    events = [event_of({"id": f"e{number}", "price": number}) for number in range(50)]
    log.append(events).result(60)
    log.append([]).result(1)
    assert read_events(broker.servers, "events", 50) == events
    broker.kill()
    with pytest.raises(StorageUnavailable, match="Kafka did not take all events"):
        log.append([event_of({"price": 1})]).result(60)
    broker.start()
    log.append([event_of({"id": "last", "price": 1})]).result(60)
    assert read_events(broker.servers, "events", 51)[-1].id == "last"
    log.close()
