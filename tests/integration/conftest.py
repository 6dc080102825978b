"""What the integration tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tamis.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of a test run, on two cores."""
    # Tests are short, and these options make Java start faster.
    java_options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    conf = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": java_options}
    running = session("tamis-tests", **conf)
    yield running
    running.stop()
