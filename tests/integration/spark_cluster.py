"""A standalone cluster of Spark on this machine: a master and two workers, on loopback.

The classes are those of the pyspark package. A worker starts an executor, a Java process of its
own, for every application; an executor starts a Python daemon, which forks the Python workers.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark

from tamis.spark.class_archive import archive_options
from tamis.spark.java import java_home, own_folders
from tests.integration.ports import free_ports

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 90
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
}


class Cluster:
    """A master and its workers, with one core and 700 MB each."""

    def __init__(self, folder: Path, n_workers: int = 2) -> None:
        self.folder, self.n_workers = folder, n_workers
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self._port = str(port)
        self._processes: list[subprocess.Popen[bytes]] = []
        others = ("PYSPARK_", "SPARK_", "PYTHONPATH")
        held = {k: v for k, v in os.environ.items() if not k.startswith(others)}
        self.environ = {
            **held, "SPARK_HOME": str(SPARK_HOME), "JAVA_HOME": str(java_home()),
            "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "128m",
        }  # fmt: skip
        # A class archive that there is spares every Java process of the cluster some seconds.
        options = archive_options(java_home(), SPARK_HOME / "jars", next(own_folders()))
        if options and options[0].startswith("-XX:SharedArchiveFile="):
            self.environ["JDK_JAVA_OPTIONS"] += " " + " ".join(options)

    def start(self) -> None:
        """Start it, and wait until the master has registered the workers."""
        self._start("master", "master.Master", "--port", self._port)
        self._wait_for("master", "Starting Spark master", 1)
        for number in range(self.n_workers):
            work = self.folder / f"work-{number}"
            options = ["--cores", "1", "--memory", "700m", "--work-dir", work, self.master]
            self._start(f"worker-{number}", "worker.Worker", *options)
        self._wait_for("master", "Registering worker", self.n_workers)

    def stop(self) -> None:
        """Stop the workers, which end their executors, and the master."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(timeout=60)
        self._processes = []

    def submit(
        self, program: Path, *arguments: object, complaints: Path, environ: Mapping[str, str],
        **settings: str,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        """Run ``spark-submit``, in a process group of its own."""
        command: list[object] = [SPARK_HOME / "bin" / "spark-submit", "--master", self.master]
        for name, value in {**SETTINGS, **settings}.items():
            command += ["--conf", f"{name}={value}"]
        with complaints.open("ab") as log:
            return subprocess.Popen(
                [*map(str, command), str(program), *map(str, arguments)],
                env={**self.environ, **environ}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def executors(self) -> list[int]:
        """The process ids of the executors."""
        workers = {process.pid for process in self._processes[1:]}
        return [pid for pid, parent in parents().items() if parent in workers]

    def python_workers(self) -> list[int]:
        """The process ids of the Python workers of all executors."""
        parent_of = parents()
        executors = set(self.executors())
        daemons = {pid for pid, parent in parent_of.items() if parent in executors}
        return [pid for pid, parent in parent_of.items() if parent in daemons]

    def _start(self, name: str, main_class: str, *options: object) -> None:
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{main_class}"]
        places = ["--host", "127.0.0.1", "--webui-port", "0"]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*map(str, command), *places, *map(str, options)],
                env=self.environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self._processes.append(process)

    def _wait_for(self, name: str, text: str, n_times: int) -> None:
        log = self.folder / f"{name}.log"
        deadline = time.monotonic() + START_SECONDS
        while log.read_text().count(text) < n_times:
            assert time.monotonic() < deadline, log.read_text()[-4000:]
            time.sleep(0.1)


def parents() -> dict[int, int]:
    """The parent of every process that lives."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                after_name = (folder / "stat").read_text().rpartition(")")[2]
            except OSError:
                continue  # it has just ended
            state, parent = after_name.split()[:2]
            if state != "Z":
                found[int(folder.name)] = int(parent)
    return found
