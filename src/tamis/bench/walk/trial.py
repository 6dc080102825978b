"""A walk: events and subscriptions one at a time through a whole service, and when they pass."""

from __future__ import annotations

import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tamis.bench.ads import generate_ads
from tamis.bench.service.filling import fill_database
from tamis.bench.service.processes import (
    BenchFailed,
    free_port,
    new_key,
    tamis_command,
    wait_until_ready,
)
from tamis.bench.service.receiver import Told, receiving
from tamis.bench.walk import work
from tamis.bench.walk.moments import Watch, read_moments
from tamis.bench.walk.stages import EVENT_STAGES, EVENT_WHOLE, SUBSCRIPTION_STAGES, durations
from tamis.client import Client

TRACED = "traced"
N_EVENTS = 60
_N_FIRST = 5  # events before the others, with which everything is used once
_PAUSE_S = (0.8, 2.2)  # between two events, so that they meet the intervals anywhere
_WAIT_S = 1_200.0
_SENDER = '[webhook]\nallow_networks = ["127.0.0.0/8"]\n'

Listener = Callable[[str], None]
"""Told what comes next."""


@dataclass(slots=True)
class Walk:
    """A service with its pipeline and its sender, as `tamis serve` starts them."""

    folder: Path
    n_subscriptions: int
    listen: Listener
    told: Told = field(default_factory=Told, init=False)

    @property
    def data(self) -> Path:
        """What the service keeps."""
        return self.folder / "data"

    @property
    def database_url(self) -> str:
        """Its database."""
        return f"sqlite:///{self.folder}/tamis.db"

    def run(self) -> dict[str, Any]:
        """Fill, start, let some events and subscriptions pass, and measure the stages alone."""
        key = new_key(self.database_url)
        fill_database(self.database_url, self.n_subscriptions, self.folder, self.listen)
        self.listen("starting service and pipeline")
        begun = time.monotonic()
        with (
            self._serving() as url,
            receiving(self.told) as hook,
            Client(url, key, timeout_s=60.0) as client,
        ):
            ready_s = time.monotonic() - begun
            client.create("walk = true", id=TRACED, delivery={"webhook": hook})
            asked = self._publish(client, [f"first-{n}" for n in range(_N_FIRST)])
            self._wait_for(asked)
            first_told_s = time.monotonic() - begun
            with Watch(self.data, self.database_url, TRACED) as watch:
                asked, saved = self._pass(client)
                self._wait_for(asked)
        self.listen("starting once more")
        begun = time.monotonic()
        with self._serving():
            ready_again_s = time.monotonic() - begun
        self.listen("measuring the stages alone")
        moments = read_moments(self.data, self.database_url, TRACED, asked, saved, watch, self.told)
        return {
            "n_subscriptions": self.n_subscriptions,
            "ready_s": round(ready_s, 1),
            "first_told_s": round(first_told_s, 1),
            "ready_again_s": round(ready_again_s, 1),
            "event": durations(moments.events, (*EVENT_STAGES, EVENT_WHOLE)),
            "subscription": durations(moments.subscriptions, SUBSCRIPTION_STAGES),
            "work": work.measure_work(self.folder, self.data, _events(work.N_EVENTS, 1)),
        }

    @contextmanager
    def _serving(self) -> Iterator[str]:
        port, log = free_port(), self.folder / "service.log"
        settings = self.folder / "sender.toml"
        settings.write_text(_SENDER)
        command = tamis_command(
            "serve", "--data", str(self.data), "--database", self.database_url,
            "--port", str(port), "--sender", str(settings),
        )  # fmt: skip
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url, process, log, every_s=1.0, within_s=_WAIT_S)
            yield url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)

    def _publish(self, client: Client, ids: list[str]) -> dict[str, tuple[float, float]]:
        asked = {}
        for event in _events(len(ids), 2, ids):
            begun = time.time()
            client.publish([event])
            asked[event["id"]] = (begun, time.time())
        return asked

    def _pass(
        self, client: Client
    ) -> tuple[dict[str, tuple[float, float]], dict[str, tuple[float, float, float]]]:
        """Events one by one, and after every fourth a subscription; when each was asked for."""
        asked: dict[str, tuple[float, float]] = {}
        saved: dict[str, tuple[float, float, float]] = {}
        chance = random.Random(3)
        for number in range(N_EVENTS):
            self.listen(f"event {number + 1} of {N_EVENTS}")
            time.sleep(chance.uniform(*_PAUSE_S))
            asked |= self._publish(client, [f"walk-{number}"])
            if number % 4 == 0:
                saved |= _save(client, f"passing-{number}", number)
        return asked, saved

    def _wait_for(self, asked: dict[str, Any]) -> None:
        until = time.monotonic() + _WAIT_S
        while not all((id, TRACED) in self.told.by for id in asked):
            if time.monotonic() > until:
                text = (self.folder / "service.log").read_text()[-2_000:]
                raise BenchFailed(f"events were not told within {_WAIT_S:.0f} s: {text}")
            time.sleep(0.05)


def _save(client: Client, id: str, number: int) -> dict[str, tuple[float, float, float]]:
    """Save a subscription; when it was asked for, answered, and found by a match."""
    begun = time.time()
    client.create(f"passing = {number}", id=id)
    answered = time.time()
    if id not in client.match({"passing": number}).ids:
        raise BenchFailed(f"{id} was saved, but does not match")
    return {id: (begun, answered, time.time())}


def _events(n: int, seed: int, ids: list[str] | None = None) -> list[dict[str, Any]]:
    """Ads as a publisher sends them."""
    made = []
    for number, ad in enumerate(generate_ads(n, seed=seed)):
        event = ad.to_json()
        event["id"] = ids[number] if ids else f"alone-{number}"
        event["attributes"]["walk"] = True
        made.append(event)
    return made


def walk(n_subscriptions: int, listen: Listener) -> dict[str, Any]:
    """Measure a walk in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="tamis-walk-", ignore_cleanup_errors=True) as folder:
        return Walk(Path(folder), n_subscriptions, listen).run()
