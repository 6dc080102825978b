"""Files of events that come late, old ones that were read, and two pipelines for one state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tamis.bench.ads import generate_ads, generate_searches
from tests.integration.ad_market import Market
from tests.integration.test_run import PATIENCE_S, SETTINGS, program, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DAY = 86_400


def run_once(market: Market) -> None:
    with program(market, "--once", "--json") as running:
        _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, said[-3000:]


def age(market: Market, name: str, days: float) -> None:
    at = time.time() - days * DAY
    os.utime(market.folder / "ads" / name, (at, at))


def test_what_comes_late_is_read_and_only_then_removed(tmp_path: Path) -> None:
    """A file older than a week beside the newest is not passed over, and not removed unread."""
    market = Market(tmp_path, SETTINGS.replace('path = "ads"', 'path = "ads"\nkeep = "7 d"'))
    market.save(generate_searches(200, seed=5))
    ads = generate_ads(60, seed=5)
    market.post(ads[:20])
    run_once(market)
    market.post(ads[20:40])
    age(market, "0001.jsonl", 30)
    run_once(market)
    assert set(market.told()) == market.expected
    there = {path.name for path in (tmp_path / "ads").iterdir()}
    assert there == {"0000.jsonl", "0001.jsonl"}  # Spark may look at the last batch again
    market.post(ads[40:])
    run_once(market)
    assert set(market.told()) == market.expected
    there = {path.name for path in (tmp_path / "ads").iterdir()}
    assert there == {"0000.jsonl", "0002.jsonl"}


def status_of(market: Market) -> dict[str, float]:
    held: dict[str, float] = json.loads((market.folder / "state" / "status.json").read_text())
    return held


def test_a_second_pipeline_waits_and_takes_over(tmp_path: Path) -> None:
    market = Market(tmp_path, SETTINGS.replace("metrics_port = 0", ""))
    market.save(generate_searches(200, seed=6))
    ads = generate_ads(40, seed=6)
    market.post(ads[:20])
    with program(market, "--json") as first:
        wait_for(lambda: set(market.told()) == market.expected, first)
        wait_for(lambda: status_of(market)["events"] == 20, first)
        with program(market, "--json") as second:
            _say_waiting(second)
            with program(market, "--json") as third:
                _say_waiting(third)
                third.send_signal(signal.SIGTERM)
                assert json.loads(third.communicate(timeout=60)[0])["events"] == 0
                assert third.returncode == 0
            first.send_signal(signal.SIGTERM)
            first.communicate(timeout=PATIENCE_S)
            market.post(ads[20:])
            wait_for(lambda: set(market.told()) == market.expected, second)
            second.send_signal(signal.SIGTERM)
            assert json.loads(second.communicate(timeout=PATIENCE_S)[0])["events"] == 20
    assert len(market.told()) == len(market.expected)


def _say_waiting(running: subprocess.Popen[str]) -> None:
    assert running.stderr is not None
    line = running.stderr.readline()
    assert "another pipeline runs with the state" in line
