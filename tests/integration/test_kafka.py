"""Kafka with a real broker: events in, matches out, through crashes of the broker and a replay.

The pipeline is ``tamis run``, a program. The sink is at-least-once. What that allows, and no more,
is checked by (event, subscription): every pair the oracle accepts is there, no other is, and
only a replayed batch comes twice, with the same content.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tamis import Event, Subscription, parse_filter
from tamis.language import evaluate
from tamis.spark.java import find_java
from tests.integration.kafka_broker import Broker
from tests.integration.kafka_topics import Pair, Reader, produce

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
SETTINGS = """
state = "state"
[events]
source = "kafka"
servers = "{servers}"
topic = "ads"
messages_per_batch = 200
[subscriptions]
path = "searches"
[matching]
tokens = 2
[matches]
servers = "{servers}"
topic = "matches"
[notifications]
outbox = "outbox"
interval = "1 s"
[spark]
"spark.master" = "local[2]"
"""


@pytest.fixture(scope="module")
def needs_jars(kafka_jars: str | None) -> None:
    if kafka_jars is None:
        return
    if os.environ.get("CI") == "true" and shutil.which("mvn"):
        pytest.fail(kafka_jars)
    pytest.skip(kafka_jars)


@pytest.fixture
def broker(needs_jars: None, tmp_path: Path) -> Iterator[Broker]:
    (tmp_path / "broker").mkdir()
    running = Broker(tmp_path / "broker", JAVA)
    try:
        running.start()
        yield running
    finally:
        running.stop()


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


class Pipeline:
    """A folder with the settings, the subscriptions, and what the pipeline leaves there."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder = folder
        (folder / "searches").mkdir()
        lines = (
            json.dumps({"sequence": number, **one.to_json()})
            for number, one in enumerate(SUBSCRIPTIONS, 1)
        )
        (folder / "searches" / "1.jsonl").write_text("\n".join(lines) + "\n")
        (folder / "pipeline.toml").write_text(SETTINGS.format(servers=servers))

    @contextmanager
    def run(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-c", "from tamis.cli import main; main()"]
        with (self.folder / "said").open("ab") as said:
            running = subprocess.Popen(
                [*command, "run", str(self.folder / "pipeline.toml"), *options],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )  # fmt: skip
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()
            running.wait()

    def said(self) -> str:
        return (self.folder / "said").read_text()[-4000:]

    def undo_last_commit(self) -> None:
        """As if Java had died after the matches were sent, and before Spark wrote that down."""
        commits = self.folder / "state" / "sender" / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        for path in (commits / str(last), commits / f".{last}.crc"):
            path.unlink()

    def wait_for_outbox(self, n_pairs: int) -> None:
        deadline = time.monotonic() + SECONDS
        while len(self.told()) < n_pairs:
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.5)

    def told(self) -> list[Pair]:
        """What is in the outbox."""
        found = []
        for file in (self.folder / "outbox").glob("batch=*/*.parquet"):
            for one in pq.ParquetFile(file).read(["subscription_id", "matches"]).to_pylist():
                found += [(held["event_id"], one["subscription_id"]) for held in one["matches"]]
        return found

    def dead(self) -> list[dict[str, Any]]:
        """The rows that nobody could read."""
        files = (self.folder / "state" / "matcher" / "matches").glob("batch=*/dead-*.parquet")
        return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


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
    priorities = {one.id: one.priority for one in SUBSCRIPTIONS}
    for (_, subscription), messages in reader.messages.items():
        key, value = messages[0]
        assert key == subscription.encode()
        assert value["priority"] == priorities[subscription]
        assert messages == [(key, value)] * len(messages)


def test_nothing_is_lost_and_only_a_replayed_batch_comes_twice(
    broker: Broker, tmp_path: Path
) -> None:
    broker.create("ads", "matches")
    pipeline = Pipeline(tmp_path, broker.servers)
    lots = [make_events(150, name, seed) for seed, name in enumerate("abcd")]

    def send(lot: int) -> None:
        produce(broker.servers, "ads", [message(e, i) for i, e in enumerate(lots[lot])])

    send(0)
    produce(broker.servers, "ads", BROKEN)
    with pipeline.run("--once") as running:
        assert running.wait(SECONDS) == 0, pipeline.said()
    assert sorted(read_all(broker, "matches", oracle(lots[0])).messages) == sorted(oracle(lots[0]))
    pipeline.undo_last_commit()
    send(1)
    with pipeline.run() as running:
        reader = read_all(broker, "matches", oracle(lots[0] + lots[1]))
        counts = {pair: len(messages) for pair, messages in reader.messages.items()}
        assert counts == dict.fromkeys(oracle(lots[0]), 2) | dict.fromkeys(oracle(lots[1]), 1)
        send(2)
        broker.kill()  # with the third lot on its way
        broker.start()
        send(3)
        expected = oracle([event for lot in lots for event in lot])
        reader = read_all(broker, "matches", expected)
        pipeline.wait_for_outbox(len(expected))
        running.send_signal(signal.SIGTERM)
        assert running.wait(SECONDS) == 0, pipeline.said()
    assert reader.messages.keys() == expected
    check_content(reader)

    assert sorted(pipeline.told()) == sorted(expected)
    dead = pipeline.dead()
    assert len(dead) == len(BROKEN)
    assert all(row["reason"] and json.loads(row["row"])["topic"] == "ads" for row in dead)


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
