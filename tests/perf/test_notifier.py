"""How many subscriptions the notifier tells in a second; the figures are printed (``-s``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("notifier_speed.py")


@pytest.mark.perf
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_twenty_thousand_subscriptions_a_second(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, text=True, check=True, timeout=500,
    )  # fmt: skip
    print(done.stdout)
    assert json.loads(done.stdout)["subscriptions notified a second, median"] >= 20_000
