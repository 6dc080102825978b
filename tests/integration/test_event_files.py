"""Files of events that come late, old ones that were read, and two pipelines for one state."""

from __future__ import annotations

import json
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
KEEPING = SETTINGS.replace("metrics_port = 0", "").replace('"ads"', '"ads"\nkeep = "7 d"')


def test_a_second_pipeline_waits_and_takes_over(tmp_path: Path) -> None:
    """Meanwhile a file comes that is older than a week: it is read, and only then removed."""
    market = Market(tmp_path, KEEPING)
    market.save(generate_searches(200, seed=6))
    ads = generate_ads(60, seed=6)
    market.post(ads[:20])
    with program(market, "--json") as first:
        wait_for(lambda: set(market.told()) == market.expected, first)
        with program(market, "--json") as second:
            _say_waiting(second)
            with program(market, "--json") as third:
                _say_waiting(third)
                third.send_signal(signal.SIGTERM)
                assert json.loads(third.communicate(timeout=60)[0])["events"] == 0
                assert third.returncode == 0
            # Beside the newest it is old, and Spark by itself would pass it over.
            market.post(ads[20:40], written_at=time.time() - 30 * DAY)
            wait_for(lambda: set(market.told()) == market.expected, first)
            wait_for(lambda: status_of(market)["events"] == 40, first)
            first.send_signal(signal.SIGTERM)
            assert json.loads(first.communicate(timeout=PATIENCE_S)[0])["events"] == 40
            # The second looks for what can go as soon as it runs.
            wait_for(lambda: status_of(market)["events"] == 0, second)
            assert files_of(market) == {"0000.jsonl", "0001.jsonl"}  # the last batch is not past
            market.post(ads[40:])
            wait_for(lambda: set(market.told()) == market.expected, second)
            wait_for(lambda: files_of(market) == {"0000.jsonl", "0002.jsonl"}, second)
            second.send_signal(signal.SIGTERM)
            assert json.loads(second.communicate(timeout=PATIENCE_S)[0])["events"] == 20
    assert len(market.told()) == len(market.expected)


def status_of(market: Market) -> dict[str, float]:
    held: dict[str, float] = json.loads((market.folder / "state" / "status.json").read_text())
    return held


def files_of(market: Market) -> set[str]:
    return {path.name for path in (market.folder / "ads").glob("*.jsonl")}


def _say_waiting(running: subprocess.Popen[str]) -> None:
    assert running.stderr is not None
    line = running.stderr.readline()
    assert "another pipeline runs with the state" in line
