"""The pipeline beside a service: its settings file, and ``tamis run`` as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from tamis.errors import MissingExtra
from tamis.service.logs import log
from tamis.service.published import ID, PAYLOAD, TIME, UNTIL
from tamis.service.settings import ServiceSettings

__all__ = ["PipelineProcess", "pipeline_text", "write_pipeline"]

_RUN = "from tamis.cli import main; main()"
_END_S = 60.0
_AGAIN_S = 5.0


def pipeline_text(settings: ServiceSettings) -> str:
    """The settings of a pipeline that reads what a service writes.

    >>> print(pipeline_text(ServiceSettings(Path("/data"))).splitlines()[0])
    name = "tamis"
    """
    url = json.dumps(settings.database_url)
    if settings.kafka is None:
        # Beside the attributes, what is the event's own: see tamis.service.published.
        events = f"""\
source = "files"
path = {json.dumps(str(settings.events))}
format = "jsonl"
keep = "7 d"
[events.columns]
id = "{ID}"
time = "{TIME}"
payload = "{PAYLOAD}"
until = "{UNTIL}"
"""
    else:
        events = f"""\
source = "kafka"
servers = {json.dumps(settings.kafka.servers)}
topic = {json.dumps(settings.kafka.topic)}
"""
    return f"""\
name = "tamis"
state = {json.dumps(str(settings.data.absolute() / "pipeline"))}

[events]
{events}
[subscriptions]
source = "store"
url = {url}

[notifications]
outbox = {url}
"""


def write_pipeline(settings: ServiceSettings) -> Path:
    """Write the settings file, if there is none; it may be changed then.

    Only its owner may read it, as the address of the database may have a password in it.
    """
    path = settings.pipeline_file
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(pipeline_text(settings))
    return path


class PipelineProcess:
    """``tamis run``, started again when it fails, until it is stopped or this process ends."""

    def __init__(self, file: Path) -> None:
        if find_spec("pyspark") is None:
            raise MissingExtra(
                "the pipeline needs pyspark. Install it: pip install 'tamis[spark]'; or run the "
                "service alone: tamis serve --no-pipeline"
            )
        self._command = [sys.executable, "-c", _RUN, "run", str(file), "--until-eof"]
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="pipeline", daemon=True)

    def start(self) -> None:
        """Begin to run."""
        self._thread.start()

    def stop(self) -> None:
        """Let it end its micro-batches, and wait for that."""
        with self._lock:
            self._stopped.set()
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(signal.SIGTERM)
        self._thread.join(_END_S)
        if self._process is not None and self._process.poll() is None:
            log.warning("pipeline", problem=f"it did not end within {_END_S:.0f} s; killed")
            self._process.kill()
            self._thread.join()

    def _watch(self) -> None:
        while True:
            with self._lock:
                if self._stopped.is_set():
                    return
                # A session of its own: Ctrl-C is for us, and we tell it when to end. If we are
                # killed and cannot, its standard input ends with us.
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, start_new_session=True
                )
            code = self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
            if not self._stopped.is_set():
                log.error("pipeline", problem=f"it ended with {code}", again_in_s=_AGAIN_S)
                self._stopped.wait(_AGAIN_S)
