"""``tamis demo --keep``: after the demo a service goes on with its searches, until it is ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tamis.client import Client
from tests.integration.ports import free_ports
from tests.integration.test_serve import RUN

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

N_SEARCHES = 400
# As a person runs it, but for the digests of the next full minute, which it would wait for.
HURRIED = [*RUN[:-1], "from tamis.cli import demo, main; demo._LONGEST_S = 0; main()"]


def test_the_demo_goes_on_until_it_is_ended_and_leaves_nothing(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    mark = f"TAMIS_TEST={uuid4().hex}"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch), **dict([mark.split("=")])}
    sizes = ["--subscriptions", str(N_SEARCHES), "--seconds", "1", "--port", str(port)]
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as errors:
        process = subprocess.Popen(
            [*HURRIED, "demo", "--keep", *sizes], stdout=out, stderr=errors, env=environment
        )
    try:
        address = f"http://127.0.0.1:{port}/"
        wait_for(lambda: f"\n{address}\n" in (tmp_path / "out").read_text(), process)
        printed = (tmp_path / "out").read_text()
        assert "no match is missing" in printed
        assert "Ctrl-C ends it" in printed
        (key,) = re.findall(r"tamis_\w+", printed)
        with Client(address, key) as client:
            wait_for(lambda: is_told(client), process)
            assert client.operations().index.n_subscriptions == N_SEARCHES
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, (tmp_path / "err").read_text()[-3000:]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    until = time.monotonic() + 60
    while with_mark(mark):
        assert time.monotonic() < until, with_mark(mark)
        time.sleep(0.2)
    assert not list(scratch.glob("tamis-*"))
    assert "Traceback" not in (tmp_path / "err").read_text()


def is_told(client: Client) -> bool:
    """Whether somebody was told of an ad, by the service's own pipeline."""
    try:
        return bool(client.notifications()) and (client.operations().events.total or 0) > 0
    except Exception:  # it is starting
        return False


def wait_for(is_so: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 240
    while not is_so():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.2)


def with_mark(mark: str) -> list[str]:
    """The processes that were started with a variable in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it ended meanwhile
            continue
    return found
