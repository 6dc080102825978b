"""What the integration tests share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tamis.spark import session
from tamis.spark.kafka import connector_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA_JARS = Path(__file__).resolve().parents[2] / "scripts" / "kafka_jars.py"


@pytest.fixture(scope="session")
def kafka_jars() -> str | None:
    """Fetch the jars for Kafka if they are not there; why that failed, or None."""
    done = subprocess.run([sys.executable, KAFKA_JARS], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else None


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The one Spark session of a test run, on two cores; with Kafka if a test wants it."""
    # Tests are short, and these options make Java start faster.
    java_options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    conf = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": java_options}
    # Spark loads jars only when it starts, whichever test comes first.
    wants_kafka = any(
        "kafka_jars" in getattr(item, "fixturenames", ()) for item in request.session.items
    )
    if wants_kafka and request.getfixturevalue("kafka_jars") is None:
        conf |= connector_settings()
    running = session("tamis-tests", **conf)
    yield running
    running.stop()
