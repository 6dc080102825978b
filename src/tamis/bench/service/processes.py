"""A service as its users have it: a process of its own, asked over HTTP."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from tamis.errors import TamisError
from tamis.storage import Database
from tamis.storage.keys import KeyStore

_START_S = 300.0  # an empty cache of kernels is filled first
_OWNER = "bench"
_UTIME = 11  # which field of /proc/PID/stat, after the name of the program


class BenchFailed(TamisError):
    """What was to be measured did not run."""


@dataclass(frozen=True, slots=True)
class Server:
    """A service that answers."""

    url: str
    key: str
    pid: int

    def cpu_s(self) -> float:
        """CPU seconds the service has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[_UTIME]) + int(fields[_UTIME + 1])) / os.sysconf("SC_CLK_TCK")


def tamis_command(*arguments: str) -> list[str]:
    """The command line of this installation."""
    return [sys.executable, "-m", "tamis", *arguments]


def new_key(database_url: str) -> str:
    """A key that may do everything as often as it likes; the tables are made."""
    database = Database(database_url)
    try:
        database.migrate()
        limits = {"requests_per_s": 1_000_000, "burst": 1_000_000, "subscriptions": 100_000_000}
        return KeyStore(database).create(_OWNER, ["admin"], limits=limits)[1]
    finally:
        database.close()


@contextmanager
def running_server(folder: Path, database_url: str, options: Sequence[str]) -> Iterator[Server]:
    """``tamis serve`` without a pipeline, until it is no longer needed."""
    key = new_key(database_url)
    port = free_port()
    command = tamis_command(
        "serve", "--data", str(folder), "--database", database_url, "--port", str(port),
        "--no-pipeline", *options,
    )  # fmt: skip
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url, process, folder / "service.log")
        yield Server(url, key, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(
    url: str,
    process: subprocess.Popen[bytes],
    log: Path,
    every_s: float = 0.1,
    within_s: float = _START_S,
) -> None:
    """Ask a service every so often whether it is ready."""
    until = time.monotonic() + within_s
    while True:
        with suppress(OSError), urlopen(f"{url}/readyz", timeout=5):
            return  # an answer of 503 is an OSError as well
        if process.poll() is not None or time.monotonic() > until:
            raise BenchFailed(f"the service did not become ready: {log.read_text()[-2_000:]}")
        time.sleep(every_s)
