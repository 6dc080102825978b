"""Kafka with a real broker: events in, matches out, through crashes of the broker and a replay.

The sink is at-least-once. What that allows, and no more, is checked by (event, subscription):
every pair the oracle accepts is there, no other is, and only a replayed batch comes twice, with
the same content.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from tamis import Event, Index, Subscription, parse_filter
from tamis.language import evaluate
from tamis.spark.java import find_java
from tamis.spark.kafka import read_kafka, write_kafka
from tests.integration.kafka_broker import Broker
from tests.integration.kafka_topics import Pair, Reader, produce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SECONDS = 150  # never waited for when all is well; a busy machine takes its time
JAVA = find_java().home / "bin" / "java"
JAVA_FROM_PIP = find_java({"PATH": ""}).home / "bin" / "java"
FILTERS = [f"brand = 'b{i % 5}' AND price BETWEEN {i * 20} AND {i * 20 + 300}" for i in range(40)]
FILTERS += ["NOT price < 500", "tag IN ('new')", "ce.type = 'ad' AND price > 100"]
SUBSCRIPTIONS = [Subscription(f"s{i}", text, priority=i % 10) for i, text in enumerate(FILTERS)]
BROKEN = [
    None,
    b"",
    b"{",
    b"\xff\xfe",
    b"[1, 2]",
    b'{"specversion": "1.0", "id": "c"}',
    b'{"id": ""}',
]


@pytest.fixture(scope="module")
def needs_jars(kafka_jars: str | None) -> None:
    if kafka_jars is None:
        return
    if os.environ.get("CI") == "true" and shutil.which("mvn"):
        pytest.fail(kafka_jars)
    pytest.skip(kafka_jars)


@pytest.fixture(scope="module")
def broker(needs_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    running = Broker(tmp_path_factory.mktemp("broker"), JAVA)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def index_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = Index()
    index.add_many(SUBSCRIPTIONS)
    path = tmp_path_factory.mktemp("index") / "saved"
    index.save(path)
    return path


def make_events(count: int, prefix: str, seed: int) -> list[Event]:
    chance = random.Random(seed)
    return [
        Event(
            f"{prefix}{i}",
            {
                "brand": f"b{chance.randrange(6)}",
                "price": chance.randrange(1200),
                **({"tag": ["new", "é 日"]} if i % 7 == 0 else {}),
                **({"ce.source": "test", "ce.type": "ad"} if i % 3 == 0 else {}),
            },
        )
        for i in range(count)
    ]


def message(event: Event, number: int) -> bytes:
    """The event in one of the three forms a message may have."""
    if number % 3 == 0:
        return json.dumps(event.to_cloudevent()).encode()
    envelope = event.to_json()
    flat = {"id": event.id, **envelope["attributes"]}
    return json.dumps(envelope if number % 3 == 1 else flat).encode()


def oracle(events: list[Event]) -> set[Pair]:
    filters = [(s.id, parse_filter(text)) for s, text in zip(SUBSCRIPTIONS, FILTERS, strict=True)]
    return {(e.id, id) for e in events for id, f in filters if evaluate(f, e.attributes)}


def matcher(path: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Stands for the pipeline: matches the events of a batch with a saved index."""

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = Index.open(path)
        for batch in batches:
            texts = batch.column("attributes").to_pylist()
            found = [
                (event_id, subscription_id)
                for event_id, text in zip(batch.column("id").to_pylist(), texts, strict=True)
                for subscription_id in index.match(Event.from_json(text, "any").attributes)
            ]
            columns = [pa.array([pair[i] for pair in found], pa.string()) for i in (0, 1)]
            yield pa.RecordBatch.from_arrays(columns, ["event_id", "subscription_id"])

    return match


class Pipeline:
    """A streaming query from one topic to another; what cannot be read goes to ``dead``."""

    def __init__(self, spark: SparkSession, servers: str, index: Path, folder: Path) -> None:
        self.spark, self.servers, self.index, self.folder = spark, servers, index, folder
        self.dead: list[Any] = []
        self.fails_after: int | None = None
        """The batch after whose writing the query fails, before Spark commits it."""

    def start(self, source: str, sink: str) -> StreamingQuery:
        def process(batch: DataFrame, batch_id: int) -> None:
            batch.persist()
            self.dead += batch.where("id is null").collect()
            function = matcher(str(self.index))
            matches = batch.where("id is not null").mapInArrow(
                function, "event_id string, subscription_id string"
            )
            write_kafka(matches, self.servers, sink)
            batch.unpersist()
            if batch_id == self.fails_after:
                self.fails_after = None
                raise RuntimeError("after the side effect, before the commit")

        events = read_kafka(self.spark, self.servers, source, max_per_batch=100)
        writer = events.writeStream.foreachBatch(process)
        return writer.option("checkpointLocation", str(self.folder / "checkpoint")).start()


@pytest.fixture
def pipeline(
    spark: SparkSession, broker: Broker, index_path: Path, tmp_path: Path
) -> Iterator[Pipeline]:
    yield Pipeline(spark, broker.servers, index_path, tmp_path)
    for query in spark.streams.active:
        query.stop()


def read_all(broker: Broker, topic: str, expected: set[Pair]) -> Reader:
    reader = Reader(broker.servers, topic)
    try:
        reader.read_until(expected, SECONDS)
        reader.read_rest()
    finally:
        reader.close()
    return reader


def check_content(reader: Reader) -> None:
    """Keys are the subscriptions', and messages of the same pair are equal."""
    for (event, subscription), messages in reader.messages.items():
        same = (subscription.encode(), {"event_id": event, "subscription_id": subscription})
        assert messages == [same] * len(messages)


def test_nothing_is_lost_when_the_broker_crashes(broker: Broker, pipeline: Pipeline) -> None:
    broker.create("ads", "matches")
    first, second, third = (make_events(150, name, seed) for seed, name in enumerate("abc"))
    produce(broker.servers, "ads", [message(e, i) for i, e in enumerate(first)] + BROKEN)
    query = pipeline.start("ads", "matches")
    read_all(broker, "matches", oracle(first))

    produce(broker.servers, "ads", [message(e, i) for i, e in enumerate(second)])
    broker.kill()  # with the second lot on its way
    broker.start()
    produce(broker.servers, "ads", [message(e, i) for i, e in enumerate(third)])

    expected = oracle(first + second + third)
    reader = read_all(broker, "matches", expected)
    assert query.exception() is None
    assert query.isActive
    assert reader.messages.keys() == expected
    check_content(reader)

    dead = sorted(pipeline.dead, key=lambda row: (row.partition, row.offset))
    assert sorted((bytes(row.value) if row.value is not None else None for row in dead),
                  key=repr) == sorted(BROKEN, key=repr)  # fmt: skip
    assert all(row.error and row.attributes is None and row.topic == "ads" for row in dead)


def test_only_a_replayed_batch_is_written_twice(broker: Broker, pipeline: Pipeline) -> None:
    broker.create("replayed-ads", "replayed-matches")
    first, second = make_events(80, "d", 7), make_events(80, "e", 8)
    produce(broker.servers, "replayed-ads", [message(e, i) for i, e in enumerate(first)])
    pipeline.fails_after = 0
    query = pipeline.start("replayed-ads", "replayed-matches")
    with pytest.raises(StreamingQueryException, match="before the commit"):
        query.awaitTermination(SECONDS)
    produce(broker.servers, "replayed-ads", [message(e, i) for i, e in enumerate(second)])
    query = pipeline.start("replayed-ads", "replayed-matches")
    query.processAllAvailable()

    reader = read_all(broker, "replayed-matches", oracle(first + second))
    counts = {pair: len(messages) for pair, messages in reader.messages.items()}
    assert counts == dict.fromkeys(oracle(first), 2) | dict.fromkeys(oracle(second), 1)
    check_content(reader)


def test_broker_also_runs_on_the_java_of_pip(needs_jars: None, tmp_path: Path) -> None:
    broker = Broker(tmp_path, JAVA_FROM_PIP)
    value = {"event_id": "e", "subscription_id": "s"}
    try:
        broker.start()
        broker.create("kept")
        produce(broker.servers, "kept", [json.dumps(value).encode()])
        broker.stop()
        broker.start()
        reader = read_all(broker, "kept", {("e", "s")})
    finally:
        broker.stop()
    assert reader.messages == {("e", "s"): [(None, value)]}
