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
from typing import TYPE_CHECKING, Any

import pytest

from tamis.bench.ads import generate_ads, generate_searches
from tamis.model import Subscription
from tamis.spark.pipeline import Pipeline
from tamis.spark.settings import read_settings
from tests.integration.ad_market import Market

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
interval = "1 s"
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


def _see_it_rest(offsets: Path) -> None:
    """With nothing to do there are hardly any micro-batches; with work, one a second."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        before = set(offsets.iterdir())
        time.sleep(2.5)
        if len(set(offsets.iterdir()) - before) <= 2:  # a log, and its checksum
            return
        assert time.monotonic() < deadline


def test_a_pipeline_is_stopped_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    market = Market(tmp_path, SETTINGS)
    ads = generate_ads(160, seed=3)
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
        _see_it_rest(tmp_path / "state" / "notifier" / "offsets")
        running.send_signal(signal.SIGTERM)
        printed, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0
    done: dict[str, Any] = json.loads(printed)
    assert (done["events"], done["dead_letters"]) == (60, 2)
    assert done["matches"] == len(market.expected)
    assert figures["tamis_events_total"] == 60
    assert figures["tamis_matches_total"] == len(market.expected)

    # Once more, a file a micro-batch, and stopped after the first: the rest is left for later.
    for ad in ads[60:]:
        market.post([ad])
    log = tmp_path / "state" / "matcher" / "matches"
    n_batches = len(list(log.glob("batch=*")))
    with program(market, "--once", "--json", "--set", "events.files_per_batch=1") as running:
        wait_for(lambda: len(list(log.glob("batch=*"))) > n_batches, running)
        running.send_signal(signal.SIGTERM)
        printed, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said[-3000:]
    n_events = json.loads(printed)["events"]
    assert 0 < n_events < 100
    Pipeline(read_settings(tmp_path / "pipeline.toml")).run_once()  # in the session of the tests
    told = market.told()
    assert len(told) == len(set(told))
    assert set(told) == market.expected
