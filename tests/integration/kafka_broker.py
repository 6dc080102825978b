"""A Kafka broker on this machine, for tests: one node in KRaft mode, on loopback."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tamis.spark.kafka import jar_folder
from tests.integration.ports import free_ports

START_SECONDS = 60
CLUSTER_ID = "dGFtaXMtdGVzdHMtMDAwMA"  # 16 bytes in base64; all nodes of a cluster share it
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Broker:
    """A broker whose data outlive its process: it can be killed and started again."""

    def __init__(self, folder: Path, java: Path) -> None:
        self.java, self.log = java, folder / "broker.log"
        self.settings = folder / "server.properties"
        self.port, controller_port = free_ports(2)
        self.servers = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.settings.write_text(
            SETTINGS.format(port=self.port, controller_port=controller_port, data=folder / "data")
        )
        self._java(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", self.settings
        ).wait()

    def start(self) -> None:
        """Start it and wait until it answers; ports and data are those it had before."""
        self.process = self._java("kafka.Kafka", self.settings)
        admin = self.admin()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the broker ended:\n{self.log.read_text()[-4000:]}"
            try:
                if admin.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                continue  # asked again: nothing listens yet
        raise AssertionError(f"the broker does not answer:\n{self.log.read_text()[-4000:]}")

    def kill(self) -> None:
        """End it as a crash would, with no time to write anything."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """End it in good order, or after a while anyhow."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def admin(self) -> AdminClient:
        # Refused connections are expected while it starts: log nothing, try again soon.
        quiet = {"log_level": 0, "error_cb": _ignore, "reconnect.backoff.max.ms": 200}
        return AdminClient({"bootstrap.servers": self.servers, **quiet})

    def create(self, *topics: str, partitions: int = 2) -> None:
        wanted = [NewTopic(topic, partitions, 1) for topic in topics]
        admin = self.admin()  # kept while it works: it gives up when nobody holds it
        for made in admin.create_topics(wanted).values():
            made.result(timeout=30)

    def _java(self, main_class: str, *arguments: object) -> subprocess.Popen[bytes]:
        options = ["-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        classes = ["-cp", f"{jar_folder('broker')}/*", main_class]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [self.java, *options, *classes, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


def _ignore(_error: object) -> None:
    """What librdkafka would print."""
