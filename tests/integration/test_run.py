"""``tamis run`` as a person starts it: a program, its signals, its metrics, its outbox."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tamis.bench.ads import generate_ads, generate_searches
from tamis.model import Subscription
from tests.integration.ad_market import Market

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SETTINGS = """
state = "state"
metrics_port = 0
[events]
path = "ads"
[subscriptions]
path = "searches"
[matching]
tokens = 2
[notifications]
outbox = "outbox"
interval = "300 ms"
[spark]
"spark.master" = "local[2]"
"""
PATIENCE_S = 240


def wait_for(is_done: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert running.poll() is None, running.communicate()[1][-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.2)


@contextmanager
def program(market: Market, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "from tamis.cli import main; main()"]
    running = subprocess.Popen(
        [*command, "run", str(market.folder / "pipeline.toml"), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


def metrics_of(running: subprocess.Popen[str]) -> Callable[[], dict[str, float]]:
    """What asks the program for its metrics, where it says they are."""
    assert running.stderr is not None
    address = ""
    while not address:
        line = running.stderr.readline()
        assert line, "the program ended"
        found = re.search(r"metrics: (http://\S+)", line)
        address = found[1] if found else ""

    def ask() -> dict[str, float]:
        with urllib.request.urlopen(address, timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.split() for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    return ask


def test_a_pipeline_is_stopped_and_goes_on(tmp_path: Path) -> None:
    market = Market(tmp_path, SETTINGS)
    ads = generate_ads(90, seed=3)
    market.save(generate_searches(300, seed=3))
    market.post(ads[:30], "{broken", '{"price": 1}')
    with program(market, "--json") as running:
        ask = metrics_of(running)
        wait_for(lambda: set(market.told()) == market.expected, running)
        newcomer = Subscription("newcomer", "kind IS NOT NULL", priority=0)
        market.save([newcomer], deleted=["s00001", "s00002"])
        market.post(ads[30:60])
        wait_for(lambda: set(market.told()) == market.expected, running)
        figures = ask()
        running.send_signal(signal.SIGTERM)
        printed, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0
    done: dict[str, Any] = json.loads(printed)
    assert (done["events"], done["dead_letters"]) == (60, 2)
    assert done["matches"] == len(market.expected)
    assert figures["tamis_events_total"] == 60
    assert figures["tamis_matches_total"] == len(market.expected)

    market.post(ads[60:])
    with program(market, "--once", "--json") as running:
        printed, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said[-3000:]
    assert json.loads(printed)["events"] == 30
    told = market.told()
    assert len(told) == len(set(told))
    assert set(told) == market.expected


def test_a_run_of_once_is_stopped_after_its_micro_batch(tmp_path: Path) -> None:
    market = Market(tmp_path, SETTINGS)
    market.save(generate_searches(50, seed=5))
    ads = generate_ads(200, seed=5)
    for at in range(200):
        market.post(ads[at : at + 1])
    options = ("--once", "--json", "--set", "events.files_per_batch=1")
    with program(market, *options) as running:
        log = tmp_path / "state" / "matcher" / "matches"
        wait_for(lambda: any(log.glob("batch=*")), running)
        running.send_signal(signal.SIGTERM)
        printed, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said[-3000:]
    assert 0 < json.loads(printed)["events"] < 200
    with program(market, "--once", "--json") as running:
        running.communicate(timeout=PATIENCE_S)
    told = market.told()
    assert len(told) == len(set(told))
    assert set(told) == market.expected
