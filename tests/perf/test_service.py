"""How fast the service saves subscriptions; the figures are printed (``-s``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("service_speed.py")


@pytest.mark.perf
@pytest.mark.timeout(600)
def test_imports_and_requests(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, text=True, check=True, timeout=500,
    )  # fmt: skip
    print(done.stdout)
    told = json.loads(done.stdout)
    assert told["import, sqlite, us"]["whole"] <= 120
    assert told["import, postgresql, us"]["whole"] <= 60
    for name in ("sqlite", "postgresql"):
        measured = told[f"300 requests a second, {name}"]
        assert measured["failed"] == 0
        assert measured["p99 ms"] <= 100
