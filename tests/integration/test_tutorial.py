"""docs/tutorial.md, done as it says: files written, commands run, what they print compared."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import httpx
import pytest

from tests.integration.ports import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
_LONGEST_S = 240.0
_STEP = re.compile(r"(?:^`([\w.]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.M)


class Reader:
    """Somebody who does what the page says, in a folder of their own and on a port of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.port = str(port)
        self.serving: subprocess.Popen[str] | None = None
        programs = folder / "bin"
        programs.mkdir()
        for name, what in (("python", ""), ("tamis", '-c "from tamis.cli import main; main()"')):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
            (programs / name).chmod(stat.S_IRWXU)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def do(self, command: str) -> str:
        """What a command prints."""
        if command.startswith("export KEY="):
            self.environment["KEY"] = self._key()
            return ""
        if command.startswith("tamis serve"):
            return self._serve(command)
        with subprocess.Popen(
            ["sh", "-c", command], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        ) as running:  # fmt: skip
            try:
                printed, errors = running.communicate(timeout=_LONGEST_S)
            except BaseException:
                os.killpg(running.pid, signal.SIGKILL)
                raise
        assert running.returncode <= 1, f"{command}\n{errors}"  # explain: 1 is an answer
        return printed

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}"))

    def _serve(self, command: str) -> str:
        with (self.folder / "out").open("w") as out, (self.folder / "err").open("w") as errors:
            self.serving = subprocess.Popen(
                f"exec {command} --port {self.port}", shell=True, cwd=self.folder,
                env=self.environment, stdout=out, stderr=errors, text=True,
            )  # fmt: skip
        until = time.monotonic() + _LONGEST_S
        while time.monotonic() < until:
            assert self.serving.poll() is None, (self.folder / "err").read_text()
            with suppress(httpx.TransportError):
                if httpx.get(self.url + "/readyz").status_code == 200:
                    break
            time.sleep(0.1)
        return (self.folder / "out").read_text().replace(self.port, "8080")

    def _key(self) -> str:
        found = re.search(r"tamis_\w+", (self.folder / "out").read_text())
        assert found is not None
        return found[0]

    def interrupt(self) -> int:
        """Ctrl-C in the terminal of the service."""
        assert self.serving is not None
        self.serving.send_signal(signal.SIGINT)
        return self.serving.wait(_LONGEST_S)

    def end(self) -> None:
        if self.serving is not None and self.serving.poll() is None:
            self.serving.terminate()
            self.serving.wait(_LONGEST_S)  # killed, it would leave its pipeline running


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.end()


@pytest.mark.spark
def test_the_tutorial(reader: Reader) -> None:
    n_commands = 0
    for name, _, text in _STEP.findall(PAGE.read_text()):
        if name:
            reader.write(name, text)
            continue
        for command, expected in _COMMAND.findall(text):
            printed = reader.do(command)
            fits = OutputChecker().check_output(expected, printed, ELLIPSIS | NORMALIZE_WHITESPACE)
            assert fits, f"$ {command}\n{printed}\nexpected:\n{expected}"
            n_commands += 1
    assert n_commands == 19
    page = httpx.get(reader.url + "/")
    assert "<title>Tamis" in page.text
    assert reader.interrupt() == 130
    assert "Traceback" not in (reader.folder / "err").read_text()
