"""What the integration tests share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tamis.spark import session
from tamis.storage import Database
from tests.integration.postgresql import PostgreSQL, running_postgresql

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
    running = session("tamis-tests", **{"spark.master": "local[2]"})
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """The one PostgreSQL server of a test run."""
    with running_postgresql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/tamis.db"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database with our tables, of each kind."""
    made = Database(database_url)
    made.migrate()
    yield made
    made.close()
