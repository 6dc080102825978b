"""``tamis serve``: the API with the pipeline and the sender beside it, until it is stopped."""

from __future__ import annotations

import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn

from tamis.cli.sending import sender_settings
from tamis.cli.terminal import BadInput
from tamis.service import ServiceSettings, make_app
from tamis.service.logs import set_up_logs
from tamis.service.pipeline import PipelineProcess, write_pipeline
from tamis.service.settings import KafkaSettings
from tamis.storage import Database
from tamis.storage.keys import KeyStore

_GRACE_S = 5


@dataclass(slots=True)
class ServeJob:
    """The options of a service, and what it does with them."""

    data: Path
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    pipeline: Path | None = None
    has_pipeline: bool = True
    kafka: str | None = None
    sender: Path | None = None
    has_sender: bool = True

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C; then end everything in turn."""
        set_up_logs()
        settings = ServiceSettings(
            self.data, self.database, _kafka(self.kafka), sends=self.has_sender,
            sender=sender_settings(self.sender), pipeline=self.pipeline,
        )  # fmt: skip
        # Addresses and secrets are in it, in clear.
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        _print_first_key(settings)
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(settings), host=self.host, port=self.port, log_config=None,
                access_log=False, server_header=False, proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )  # fmt: skip
        # Uvicorn raises the signal that ended it once more, and by itself that would end us
        # before the others.
        before = signal.signal(signal.SIGTERM, _pass_over)
        with ExitStack() as stack:
            stack.callback(signal.signal, signal.SIGTERM, before)
            if self.has_pipeline:
                running = PipelineProcess(self.pipeline or write_pipeline(settings))
                stack.callback(running.stop)
                running.start()
            print(f"http://{self.host}:{self.port}/", flush=True)
            self._serve(server)

    def _serve(self, server: uvicorn.Server) -> None:
        with suppress(SystemExit):  # so uvicorn says that it has no port
            server.run()
        if not server.started:
            raise BadInput(f"the service could not start on {self.host}:{self.port}")


def _pass_over(signum: int, frame: FrameType | None) -> None:
    """The signal has done its work already."""


def _kafka(text: str | None) -> KafkaSettings | None:
    if text is None:
        return None
    servers, slash, topic = text.partition("/")
    if not servers or not slash or not topic:
        raise BadInput(f"--kafka {text!r}: expected SERVERS/TOPIC, as in broker-1:9092/events")
    return KafkaSettings(servers, topic)


def _print_first_key(settings: ServiceSettings) -> None:
    """Make a key for an admin where there is none: nobody could make one otherwise."""
    database = Database(settings.database_url)
    try:
        database.migrate()
        keys = KeyStore(database)
        if not keys.list():
            _, text = keys.create("admin", ["admin"], "first start")
            print(f"a key for an admin, shown this once: {text}", flush=True)
    finally:
        database.close()
