"""The programs of a soak: started as people start them, killed, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tamis.bench.service.processes import BenchFailed, tamis_command, wait_until_ready
from tamis.bench.spark.memory import descendants
from tamis.service.pipeline import pipeline_text
from tamis.service.settings import ServiceSettings

ROLES = ("service", "sender", "pipeline", "java", "workers")
_END_S = 120.0

_SPANS = """\
interval = "5 s"
retention = "10 min"

[matching]
interval = "5 s"
keep = "5 min"
"""

_SENDER = """\
keep = "5 min"
keep_dead = "5 min"
first_retry = "1 s"

[webhook]
allow_networks = ["127.0.0.0/8"]
"""


@dataclass(slots=True)
class Programs:
    """A service with its pipeline, and a sender beside them."""

    folder: Path
    database_url: str
    port: int
    _service: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _sender: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        """The address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def write_settings(self) -> None:
        """Settings as the service writes them, but that all is kept for minutes, not for days."""
        settings = ServiceSettings(self.folder / "data", self.database_url)
        text = pipeline_text(settings).replace('keep = "7 d"', 'keep = "5 min"')
        (self.folder / "pipeline.toml").write_text(text + _SPANS)
        (self.folder / "sender.toml").write_text(_SENDER)

    def start(self) -> None:
        """Start what does not run; the service starts its pipeline itself."""
        if self._service is None or self._service.poll() is not None:
            self._service = self._started(
                "service", "serve", "--data", str(self.folder / "data"), "--port", str(self.port),
                "--database", self.database_url, "--no-sender",
                "--pipeline", str(self.folder / "pipeline.toml"),
                "--sender", str(self.folder / "sender.toml"),
            )  # fmt: skip
            wait_until_ready(self.url, self._service, self.folder / "service.log")
        if self._sender is None or self._sender.poll() is not None:
            self._sender = self._started(
                "sender", "send", "--database", self.database_url,
                "--settings", str(self.folder / "sender.toml"),
            )  # fmt: skip

    def stop(self) -> None:
        """Tell all to end, and wait for it."""
        running = [one for one in (self._sender, self._service) if one and one.poll() is None]
        for one in running:
            one.send_signal(signal.SIGTERM)
        for one in running:
            try:
                one.wait(_END_S)
            except subprocess.TimeoutExpired:
                one.kill()
                raise BenchFailed(f"{one.args!r} did not end within {_END_S:.0f} s") from None

    def kill(self, role: str, which: int = 0) -> int | None:
        """Kill a process of a role without warning; its number, None if there is none."""
        pids = self.pids()[role]
        if not pids:
            return None
        pid = pids[which % len(pids)]
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None
        for own in (self._service, self._sender):
            if own is not None and own.pid == pid:
                own.wait()
        return pid

    def pids(self) -> dict[str, list[int]]:
        """The processes there are now, by role."""
        found: dict[str, list[int]] = {role: [] for role in ROLES}
        for role, process in (("service", self._service), ("sender", self._sender)):
            if process is not None and process.poll() is None:
                found[role].append(process.pid)
        for service in found["service"]:
            for _, process_folder in descendants(service):
                try:
                    command = (process_folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue  # it ended meanwhile
                found[_role_of(command)].append(int(process_folder.name))
        return found

    def _started(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(tamis_command(*arguments), stdout=log, stderr=log)


def _role_of(command: list[bytes]) -> str:
    if b"java" in command[0]:
        return "java"
    return "workers" if any(b"daemon" in word for word in command) else "pipeline"
