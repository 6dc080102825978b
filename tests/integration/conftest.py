"""What the integration tests share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tamis.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA_JARS = Path(__file__).resolve().parents[2] / "scripts" / "kafka_jars.py"


@pytest.fixture(scope="session")
def kafka_jars() -> str | None:
    """Fetch the jars for Kafka if they are not there; why that failed, or None."""
    done = subprocess.run([sys.executable, KAFKA_JARS], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else None


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of a test run, on two cores."""
    # Tests are short, and these options make Java start faster.
    java_options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    conf = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": java_options}
    running = session("tamis-tests", **conf)
    yield running
    running.stop()
