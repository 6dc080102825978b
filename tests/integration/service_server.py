"""A service of our own: on a free port of this machine, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from tamis.service import ServiceSettings, live_index, make_app
from tamis.service.limits import Limits
from tamis.storage import Database
from tamis.storage.keys import KeyStore

GENEROUS = Limits(requests_per_s=100_000, burst=100_000)

# Most services of tests end long before all kernels are compiled, and the next would begin anew:
# 0.7 s of a core each. So they are compiled as they are needed; `tamis serve` has them all first.
live_index._is_warm = True


@dataclass
class Service:
    """A service that runs."""

    url: str
    database: Database
    settings: ServiceSettings
    admin: str

    def key(self, owner: str, *scopes: str, **limits: Any) -> str:
        """A new key."""
        return KeyStore(self.database).create(owner, scopes or ("subscriber",), limits=limits)[1]

    def client(self, key: str | None = None) -> httpx.Client:
        """A client with a key, that of the admin if none is given."""
        headers = {"Authorization": f"Bearer {self.admin if key is None else key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=200)

    def wait_until_ready(self) -> None:
        """Wait until all subscriptions are loaded."""
        until = time.monotonic() + 280
        while httpx.get(self.url + "/readyz").status_code != 200:
            assert time.monotonic() < until
            time.sleep(0.05)


@contextmanager
def running_service(
    folder: Path, database_url: str | None = None, limits: Limits = GENEROUS
) -> Iterator[Service]:
    """A service, for as long as it is used."""
    settings = ServiceSettings(folder, database_url, limits=limits)
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(settings.database_url)
    database.migrate()
    _, admin = KeyStore(database).create("root", ["admin"])
    with serving(settings) as url:
        yield Service(url, database, settings, admin)
    database.close()


@contextmanager
def serving(settings: ServiceSettings) -> Iterator[str]:
    """The address of a service with these settings."""
    config = uvicorn.Config(
        make_app(settings), host="127.0.0.1", port=0, log_level="warning", access_log=False,
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
